"""Problems while they happen: said once when they appear, and when they are over."""

from __future__ import annotations

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rules
from rmqtool.summary import watch as of
from tests.analytics.diagnosis.made_rows import exchange

REFUSED = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"


def test_a_problem_is_said_when_it_appears_and_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine(rules())
    watch = of.Watch(engine)
    now = [1000.0]
    monkeypatch.setattr(of.time, "monotonic", lambda: now[0])
    start = exchange(0, 310, 2).request_time or 0
    monkeypatch.setattr(of.time, "time_ns", lambda: start)

    def said() -> list[str]:
        now[0] += 60
        watch.look()
        return capsys.readouterr().err.splitlines()

    assert said() == []
    engine.add_exchanges([exchange(0, 310, 2, remark=REFUSED, topic="T\x1b[2J")])
    (line,) = said()
    assert "ERROR 10.0.0.1:10911 refused 1 send" in line
    assert line.endswith("(send-queue-timeout)")
    engine.add_exchanges([exchange(5, 310, 2, remark=REFUSED, topic="T\x1b[2J")])
    assert said() == []
    monkeypatch.setattr(of.time, "time_ns", lambda: start + 31_000_000_000)
    (line,) = said()
    assert " over: ERROR " in line
    assert "\x1b" not in line
    assert said() == []
    engine.add_exchanges([exchange(32_000, 310, 2, remark=REFUSED)])
    assert [" over: " in line for line in said()] == [False]


def test_what_happens_again_hours_later_is_said_once_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine(rules(), {"send-queue-timeout"})
    watch = of.Watch(engine)
    now = [1000.0]
    monkeypatch.setattr(of.time, "monotonic", lambda: now[0])
    start = exchange(0, 310, 2).request_time or 0
    later = 3 * 3_600_000

    def said(at_ms: int) -> list[str]:
        now[0] += 60
        monkeypatch.setattr(of.time, "time_ns", lambda: start + at_ms * 1_000_000)
        watch.look()
        return capsys.readouterr().err.splitlines()

    engine.add_exchanges([exchange(0, 310, 2, remark=REFUSED)])
    assert len(said(1000)) == 1
    (line,) = said(40_000)
    assert " over: " in line
    engine.add_exchanges([exchange(later, 310, 2, remark=REFUSED) for _ in range(2)])
    (line,) = said(later + 1000)
    assert " over: " not in line
    assert "refused 2 sends" in line
    assert said(later + 2000) == []
    (line,) = said(later + 40_000)
    assert " over: " in line
    assert said(later + 50_000) == []
