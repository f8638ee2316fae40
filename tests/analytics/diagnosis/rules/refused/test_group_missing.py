"""When group-missing speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.group_missing import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import problems
from ...refusal_checks import NAMED, check_made, check_recorded, refusals

REMARK = "subscription group [shop] does not exist, See https://rocketmq.apache.org"
refused = refusals(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, REMARK, RequestCode.PULL_MESSAGE)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    check_made(RULE, rows, "consumer group shop does not exist on broker-a: 2 pulls refused")


def test_the_group_in_other_remarks() -> None:
    notes = ("subscription group not exist, late See https", "Group late not exist!")
    for remark in notes:
        back = refused(0, RequestCode.CONSUMER_SEND_MSG_BACK, remark=remark, group=None)
        (one,) = problems(RULE, [back])
        assert one.subject.group == "late"


def test_administrators_are_told_themselves() -> None:
    assert not problems(RULE, [refused(0, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "group-missing-4x.pcap",
            13,
            "consumer group nobodys_group does not exist on broker-a: 13 pulls refused",
        ),
        (
            "group-missing-5x.pcap",
            1,
            "consumer group nobodys_group does not exist on broker-a: 1 pull refused",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="GroupTopic", group="nobodys_group"),
    )
