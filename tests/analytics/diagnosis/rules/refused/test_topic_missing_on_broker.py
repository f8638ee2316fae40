"""When topic-missing-on-broker speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.topic_missing_on_broker import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample
from ...refusal_checks import check_recorded

MISSING = int(ResponseCode.TOPIC_NOT_EXIST)


def refused(code: int, topic: str) -> ExchangeRecord:
    remark = f"topic[{topic}] not exist, apply first please!"
    return exchange(0, code, MISSING, remark=remark, topic=topic, group="g", broker_name="broker-a")


def test_recorded() -> None:
    (one,) = problems_of_sample(RULE, "fault-unknown-topic-5x.pcap")
    assert one.title == (
        "topic NobodysTopic does not exist, and broker-a and broker-b do not create it: 6 sends"
        " refused"
    )
    assert one.subject == Subject(topic="NobodysTopic", group="sample_group")
    assert one.count == 6
    assert one.details[-1] == (
        "2 messages sent up to 3 times, and refused each time: retries are pointless, only creating"
        " the topic helps"
    )
    assert same_in_any_order(RULE, sample("fault-unknown-topic-5x.pcap").exchanges)


def test_a_pull() -> None:
    (one,) = problems(RULE, [refused(int(RequestCode.PULL_MESSAGE), "Orders")])
    assert one.title == "topic Orders does not exist on broker-a: 1 pull refused"


@pytest.mark.parametrize("name", ["send-unknown-topic-4x.pcap", "send-unknown-topic-5x.pcap"])
def test_a_topic_that_the_broker_makes_is_no_problem(name: str) -> None:
    assert not problems_of_sample(RULE, name)


@pytest.mark.parametrize(
    ("code", "topic"),
    [
        (int(RequestCode.PULL_MESSAGE), "%RETRY%g"),
        (int(RequestCode.GET_TOPIC_STATS_INFO), "Orders"),
        (int(RequestCode.GET_ROUTEINFO_BY_TOPIC), "Orders"),
    ],
)
def test_retry_topics_administrators_and_routes_are_left_out(code: int, topic: str) -> None:
    assert not problems(RULE, [refused(code, topic)])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "topic-deleted-4x.pcap",
            41,
            "topic OrphanTopic does not exist, and broker-a does not create it: 41 requests"
            " refused",
        ),
        (
            "topic-deleted-5x.pcap",
            48,
            "topic OrphanTopic does not exist, and broker-a does not create it: 48 requests"
            " refused",
        ),
    ],
)
def test_a_topic_that_was_deleted(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(broker="broker-a", topic="OrphanTopic"))
