"""When not-leader-for-queue speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.not_leader_for_queue import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import NAMED, check_made, check_recorded, refusals

REMARK = "Orders-3 does not exit in request process of current broker broker-a"
refused = refusals(ResponseCode.NOT_LEADER_FOR_QUEUE, REMARK)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    check_made(
        RULE, rows, "broker-a refused 2 sends of topic Orders: the queue is at another broker now"
    )


def test_other_answers() -> None:
    row = refused(0)
    row.response_code = int(ResponseCode.SYSTEM_ERROR)
    assert not problems(RULE, [row])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "queue-moved-5x.pcap.gz",
            9,
            "broker-a refused 9 sends of topic StaticTopic: the queue is at another broker now",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE,
        name,
        title,
        count,
        Subject(broker="broker-a", topic="StaticTopic", group="sample_group"),
    )
