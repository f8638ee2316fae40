"""When async-retry-stale-queue speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.async_retry_stale_queue import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order
from ...refusal_checks import check_recorded

SEND = int(RequestCode.SEND_MESSAGE_V2)
KEY = "C000020A18BC4E0E2F2A67912D760000"
OTHER = "10.0.0.3:10911"
REMARK = (
    "request queueId[6] is illegal, TopicConfig [topicName=Orders, readQueueNums=4,"
    " writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
    " Producer: 10.0.0.9:40000"
)


def send(at_ms: float, answer: int | None, **values: Any) -> ExchangeRecord:
    made = {"topic": "Orders", "group": "shop", "broker_name": "broker-a", "queue_id": 6, **values}
    return exchange(at_ms, SEND, answer, **made)


def named() -> ExchangeRecord:
    """Return a send that tells the name of the other broker."""
    return send(0, 0, server_address=OTHER, broker_name="broker-b")


def test_a_queue_that_was_chosen_for_another_broker() -> None:
    code = int(ResponseCode.INVALID_PARAMETER)
    rows = [named(), send(10, code, remark=REMARK, server_address=OTHER)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-b refused 1 send to queue 6 of topic Orders (its queues are 0 to 3); the queue"
        " was chosen"
        " for broker-a"
    )
    assert one.subject == Subject(topic="Orders", group="shop")
    assert one.count == 1
    assert same_in_any_order(RULE, rows)


def test_an_old_route() -> None:
    code = int(ResponseCode.SYSTEM_ERROR)
    (one,) = problems(RULE, [send(0, 0), send(10, code, remark=REMARK)])
    assert one.title == "broker-a refused 1 send to queue 6 of topic Orders (its queues are 0 to 3)"
    assert (
        one.details[-1] == "the requests name no other broker: the client's route may be outdated"
    )


def test_a_retry_with_the_header_of_the_first_attempt_that_was_stored() -> None:
    first = send(10, None, unique_key=KEY, end="reset")
    again = send(20, 0, unique_key=KEY, server_address=OTHER, conversation=1)
    (one,) = problems(RULE, [named(), send(1, 0), first, again])
    assert one.title == (
        "1 retry of topic Orders went to broker-b with the queue number that was chosen for"
        " broker-a"
    )
    assert one.severity is ProblemSeverity.INFO
    assert one.subject == Subject(topic="Orders", group="shop")


def test_a_retry_that_was_refused_is_counted_once() -> None:
    first = send(10, None, unique_key=KEY, end="reset")
    code = int(ResponseCode.INVALID_PARAMETER)
    values: dict[str, Any] = {"server_address": OTHER, "conversation": 1, "remark": REMARK}
    again = send(20, code, unique_key=KEY, **values)
    (one,) = problems(RULE, [named(), send(1, 0), first, again])
    assert (one.count, one.severity) == (1, ProblemSeverity.ERROR)


def test_a_synchronous_retry_is_normal() -> None:
    first = send(10, None, unique_key=KEY, end="reset")
    values: dict[str, Any] = {"server_address": OTHER, "conversation": 1, "broker_name": "broker-b"}
    again = send(20, 0, unique_key=KEY, **values)
    assert not problems(RULE, [named(), send(1, 0), first, again])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "queue-illegal-4x.pcap",
            2,
            "broker-b refused 2 sends to queues 3 and 4 of topic UnevenTopic (its queues are 0"
            " and 1); the queue was chosen for broker-a",
        ),
        (
            "queue-illegal-5x.pcap",
            12,
            "broker-b refused 12 sends to queues 2 to 7 of topic UnevenTopic (its queues are 0"
            " and 1); the queue was chosen for broker-a",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(topic="UnevenTopic", group="sample_group"))
