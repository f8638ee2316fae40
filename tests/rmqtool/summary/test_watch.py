"""Problems while they happen: each starts, changes and ends, as events and as lines."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rules
from dissectors.decode.pending import Pending
from dissectors.rows.record import ExchangeRecord
from rmqtool.summary import watch as of
from rmqtool.summary.watch import ProblemChange, ProblemEvent
from tests.analytics.diagnosis.made_rows import START, connection, exchange

SECOND = 1_000_000_000
SEND = 310
REFUSED = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"
OPEN: dict[str, Any] = {"end": "open", "ended_by": None}


class Passing:
    """A capture that goes on, and what is said of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *only: str) -> None:
        self.engine = Engine(rules(), only or None)
        self._steady = 1000.0
        self._pending = Pending(0, [], [])
        self._watch = of.Watch(self.engine, lambda: self._pending)
        monkeypatch.setattr(of.time, "monotonic", lambda: self._steady)

    def events(self, seconds: float, *requests: ExchangeRecord) -> list[ProblemEvent]:
        """Return what happened up to a time, at which these requests wait."""
        self._steady += 60
        now = [connection(0, 1000, **OPEN)] if requests else []
        self._pending = Pending(START + int(seconds * SECOND), list(requests), now)
        return self._watch.look()

    def lines(self, seconds: float, *requests: ExchangeRecord) -> list[str]:
        return of.event_lines(self.events(seconds, *requests))


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    return Passing(monkeypatch)


def waiting(at_ms: float) -> ExchangeRecord:
    return exchange(at_ms, SEND, None, topic="T", end="open")


def kinds(events: list[ProblemEvent]) -> list[tuple[str, str, str | None]]:
    return [(str(one.kind), one.problem.rule, one.state) for one in events]


def test_a_problem_is_said_when_it_appears_and_when_it_is_over(passing: Passing) -> None:
    assert passing.lines(0) == []
    passing.engine.add_exchanges([exchange(0, SEND, 2, remark=REFUSED, topic="T\x1b[2J")])
    (line,) = passing.lines(1)
    assert "ERROR 10.0.0.1:10911 refused 1 send" in line
    assert line.endswith("(send-queue-timeout)")
    passing.engine.add_exchanges([exchange(5, SEND, 2, remark=REFUSED, topic="T\x1b[2J")])
    assert passing.lines(2) == [], "that it grew is not worth a line yet"
    (line,) = passing.lines(31.1)
    assert " ended: ERROR " in line
    assert "\x1b" not in line
    assert passing.lines(32) == []
    passing.engine.add_exchanges([exchange(33_000, SEND, 2, remark=REFUSED)])
    assert [" ended: " in line for line in passing.lines(33.5)] == [False]


def test_what_happens_again_hours_later_is_said_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    passing = Passing(monkeypatch, "send-queue-timeout")
    passing.engine.add_exchanges([exchange(0, SEND, 2, remark=REFUSED)])
    later = 3 * 3600
    assert [" ended: " in line for at in (1, 40) for line in passing.lines(at)] == [False, True]
    passing.engine.add_exchanges(
        [exchange(later * 1000, SEND, 2, remark=REFUSED) for _ in range(2)]
    )
    (line,) = passing.lines(later + 1)
    assert " ended: " not in line
    assert "refused 2 sends" in line
    assert passing.lines(later + 2) == []
    (line,) = passing.lines(later + 40)
    assert " ended: " in line
    assert passing.lines(later + 50) == []


def test_a_hang_starts_grows_and_ends(passing: Passing) -> None:
    passing.engine.add_exchanges([exchange(at, SEND, topic="T") for at in range(0, 900, 100)])
    rows = [waiting(1000), waiting(1100)]
    assert passing.events(3) == []
    found = {at: kinds(passing.events(at, *rows)) for at in (4.5, 10, 15, 20, 30, 36, 40)}
    hung = "broker-hung", "ongoing"
    assert found == {
        4.5: [("started", *hung)],
        10: [],
        15: [("changed", *hung)],
        20: [],
        30: [],
        36: [("changed", *hung)],
        40: [],
    }
    passing.engine.add_exchanges([exchange(at, SEND, 0, 40_000, topic="T") for at in (1000, 1100)])
    ended = [one for one in kinds(passing.events(42)) if one[1] == "broker-hung"]
    assert ended == [("ended", "broker-hung", "ended")]


def test_a_graver_problem_is_a_change_at_once(passing: Passing) -> None:
    poll = exchange(900, 11, None, topic="T", group="g", end="closed")
    passing.engine.add_exchanges([exchange(at, SEND, topic="T") for at in range(0, 900, 100)])
    lost = connection(0, 1000, end="fin", ended_by="server")
    passing.engine.add_connections([lost])
    passing.engine.add_exchanges([poll])
    ((kind, rule, state),) = kinds(passing.events(4.5))
    assert (kind, rule, state) == ("started", "broker-gone", "ongoing")
    passing.engine.add_connections(
        [connection(5000 + at, 0, 5 + at, end="refused", ended_by="server", server_bytes=0,
                    commands=0) for at in range(3)]
    )  # fmt: skip
    (event,) = passing.events(5.5)
    assert (event.kind, str(event.problem.confidence)) == (ProblemChange.CHANGED, "certain")


def test_what_is_explained_otherwise_is_withdrawn(passing: Passing) -> None:
    passing.engine.add_exchanges([exchange(at, SEND, topic="T") for at in range(0, 900, 100)])
    passing.engine.add_connections([connection(0, 1000, end="fin", ended_by="server")])
    (line,) = passing.lines(4.5)
    assert " seems gone since " in line
    passing.engine.add_connections([connection(6000, 10, 2)])
    (line,) = passing.lines(6.5)
    assert " withdrawn: WARNING 10.0.0.1:10911 seems gone since " in line


def test_a_problem_whose_subject_is_better_known_is_the_same(passing: Passing) -> None:
    """A topic is named while it is the only one."""
    passing.engine.add_exchanges([exchange(0, 34, 3, topic="T", group="g")])
    ((kind, rule, _),) = kinds(passing.events(1))
    assert (kind, rule) == ("started", "version-mismatch")
    passing.engine.add_exchanges([exchange(1500, 34, 3, topic="U", group="h")])
    assert passing.events(2) == []
    assert kinds(passing.events(12)) == [("changed", "version-mismatch", None)]


def test_what_was_over_when_it_was_seen_is_one_line(passing: Passing) -> None:
    passing.engine.add_exchanges([exchange(at, SEND, topic="T") for at in range(0, 900, 100)])
    rows = [exchange(1000 + at, SEND, 0, 2500 - at, topic="T") for at in (0, 100)]
    passing.engine.add_exchanges(rows)
    events = [one for one in passing.events(4) if one.problem.rule == "broker-hung"]
    assert kinds(events) == [("started", "broker-hung", "ended"), ("ended", "broker-hung", "ended")]
    (line,) = of.event_lines(events)
    assert line.endswith("(broker-hung), ended")
    assert [one for one in passing.events(5) if one.problem.rule == "broker-hung"] == []


def test_an_event_is_the_problem_with_what_happened(passing: Passing) -> None:
    passing.engine.add_exchanges([exchange(at, SEND, topic="T") for at in range(0, 900, 100)])
    (event,) = passing.events(5, waiting(1000), waiting(1100))
    value = json.loads(json.dumps(event.as_json()))
    assert list(value)[:3] == ["event", "time", "rule"]
    assert (value["event"], value["time"]) == ("started", "2026-11-18T11:06:45.000000Z")
    assert (value["rule"], value["state"], value["severity"]) == (
        "broker-hung",
        "ongoing",
        "error",
    )
    assert [one["packet"] for one in value["evidence"]] == [10_001, 11_001]
    assert " hung since 11:06:41 UTC (4 s so far): 2 requests wait" in value["title"]


def test_looks_that_take_long_are_rarer_but_not_much(
    passing: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = [0.0]
    monkeypatch.setattr(of.time, "monotonic", lambda: steady[0])
    monkeypatch.setattr(of.time, "thread_time", lambda: steady[0])
    looks = []

    def slow() -> Pending:
        looks.append(steady[0])
        steady[0] += 1.0
        return Pending(START, [], [])

    watch = of.Watch(passing.engine, slow)
    while steady[0] < 20:
        watch.look()
        steady[0] += 0.2
    assert [round(two - one) for one, two in pairwise(looks)] == [3] * 6
