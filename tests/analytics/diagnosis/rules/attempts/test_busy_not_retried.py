"""busy-not-retried: SYSTEM_BUSY and clients before 5.3.0."""

from __future__ import annotations

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.attempts.busy_not_retried import RULE
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.versions import V4_9_5, V5_3_1

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .made_sends import OTHER, send

BUSY = int(ResponseCode.SYSTEM_BUSY)


def test_an_old_client() -> None:
    old = {"version": V4_9_5, "version_name": "V4_9_5"}
    rows = [send(0, 9), *(send(500 + n, n, BUSY, **old) for n in (1, 2)), send(3000, 3)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "2 sends of group shop were refused by a busy broker and not retried on another one:"
        " only clients since 5.3.0 do that"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert same_in_any_order(RULE, rows)


def test_a_new_client_that_tries_another_broker_is_silent() -> None:
    rows = [send(0, 1, BUSY, version=V5_3_1), send(3, 1, server_address=OTHER, version=V5_3_1)]
    assert problems(RULE, rows) == []
    assert problems_of_sample(RULE, "fault-disk-full-4x.pcap") == []
