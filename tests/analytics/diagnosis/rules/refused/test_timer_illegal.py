"""When timer-illegal speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.timer_illegal import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems, problems_of_sample
from ...refusal_checks import NAMED, check_made, check_recorded, refusals

REMARK = (
    "timer message illegal, the delay time should not be bigger than the max delay "
    "259200000ms; or if set del msg"
)
refused = refusals(ResponseCode.MESSAGE_ILLEGAL, REMARK)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    check_made(
        RULE,
        rows,
        "broker-a refused 2 sends of timed messages: the delay exceeds 3 days",
    )


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="the message is illegal, maybe msg body")])


def test_other_reasons() -> None:
    said = {
        "accurate timer message is not enabled, timerWheelEnable is false": "its timer is off",
        "timer message is under flow control, max num limit is 2": "too many messages are due",
    }
    for remark, why in said.items():
        row = refused(0, remark=remark)
        row.response_code = int(ResponseCode.SYSTEM_ERROR)
        (one,) = problems(RULE, [row])
        assert why in one.title


def test_timed_messages_that_are_stored() -> None:
    assert not problems_of_sample(RULE, "send-timer-5x.pcap")


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "timer-refused-5x.pcap",
            10,
            "broker-a refused 10 sends of timed messages: 3 because its timer is off, "
            "1 because the delay exceeds 3 days, 6 because too many messages "
            "are due at that time",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="TimerTopic", group="sample_group"),
    )
