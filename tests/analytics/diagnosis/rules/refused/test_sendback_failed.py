"""When sendback-failed speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.sendback_failed import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import problems, problems_of_sample
from ...refusal_checks import NAMED, check_made, check_recorded, refusals

REMARK = "look message by offset failed, 12345"
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, RequestCode.CONSUMER_SEND_MSG_BACK)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    check_made(
        RULE,
        rows,
        "broker-a refused 2 messages returned by group shop: look message by offset failed",
    )


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="no master available along with 10.0.0.1")])


def test_messages_that_were_taken_back() -> None:
    assert not problems_of_sample(RULE, "push-retry-dlq-5x.pcap")


def test_access_control_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="AclException: No acl config for eve, org.x")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "return-failed-4x.pcap",
            2,
            "broker-a refused 2 messages returned by group back_group: look message by offset"
            " failed",
        ),
        (
            "return-failed-5x.pcap",
            2,
            "broker-a refused 2 messages returned by group back_group: look message by offset"
            " failed",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE, name, title, count, Subject(broker="broker-a", topic="BackTopic", group="back_group")
    )
