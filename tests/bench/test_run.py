"""The benchmark's own judgement: outputs compared, processes measured, floors applied."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.captures.captures import Capture
from bench.captures.truth import Truth
from bench.decode.floors import HELD, MISSED, NOT_JUDGED, judge, judge_outputs
from bench.decode.jobs import VIEWS, missed
from bench.decode.startup import Startup
from bench.decode.verify import differences, found_in_exchanges
from bench.measure import Measured, RunFailed, measure, medians

ANSWERED = {
    "status": "answered", "opaque": 5, "request_code": 11, "response_code": 0,
    "request_bytes": 300, "response_bytes": 4000, "message_count": 3,
}  # fmt: skip
ONEWAY = {"status": "oneway", "opaque": 6, "request_code": 15, "request_bytes": 200}
ORPHAN = {"status": "orphan", "opaque": 7, "response_code": 0, "response_bytes": 100}


@pytest.fixture
def capture() -> Capture:
    truth = Truth(messages_in_pulls=3)
    truth.add_command(11, 5, 0, 296, 0, False)
    truth.add_command(0, 5, 1, 3996, 3800, False)
    truth.add_command(15, 6, 2, 196, 0, False)
    truth.add_command(0, 7, 1, 96, 0, False)
    truth.exchanges.update(answered=1, oneway=1, orphan=1)
    return Capture(Path("none"), truth.as_dict())


def test_right_rows_agree(capture: Capture) -> None:
    assert differences(found_in_exchanges([ONEWAY, ANSWERED, ORPHAN]), capture) == []


@pytest.mark.parametrize(
    ("rows", "complaints"),
    [
        ([ANSWERED, ORPHAN], ["commands", "multiset", "exchanges"]),
        ([ANSWERED, ONEWAY, {**ORPHAN, "opaque": 8}], ["multiset"]),
        ([ANSWERED, {**ONEWAY, "status": "unanswered"}, ORPHAN], ["multiset", "exchanges"]),
        ([{**ANSWERED, "message_count": 2}, ONEWAY, ORPHAN], ["messages_in_pulls"]),
    ],
)
def test_wrong_rows_are_named(
    capture: Capture, rows: list[dict[str, object]], complaints: list[str]
) -> None:
    lines = differences(found_in_exchanges(rows), capture)
    assert [line.partition(":")[0] for line in lines] == complaints


@pytest.mark.slow
def test_a_child_is_not_charged_with_its_parents_memory(tmp_path: Path) -> None:
    ballast = bytearray(128 << 20)
    ballast[:: 1 << 12] = b"x" * len(ballast[:: 1 << 12])
    took = measure([sys.executable, "-c", "pass"], tmp_path / "out", dict(os.environ))
    assert 3 < took.rss < 64
    assert 0 < took.wall < 30


@pytest.mark.slow
def test_memory_and_cpu_of_the_child_are_seen(tmp_path: Path) -> None:
    code = "x = b'x' * (100 << 20); print(sum(range(10**6)))"
    took = measure([sys.executable, "-c", code], tmp_path / "out", dict(os.environ))
    assert took.rss > 100
    assert took.cpu > 0
    assert (tmp_path / "out").read_text() == "499999500000\n"


def test_a_failing_command_is_told_with_its_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such capture')"]
    with pytest.raises(RunFailed, match="no such capture"):
        measure(command, tmp_path / "out", dict(os.environ))
    with pytest.raises(RunFailed, match="cannot be run"):
        measure([str(tmp_path / "absent")], tmp_path / "out", dict(os.environ))


def test_medians() -> None:
    runs = [Measured(3, 2, 10, 0), Measured(1, 1, 30, 0.5), Measured(2, 9, 20, 0)]
    assert medians(runs) == Measured(2, 2, 30, 0)


def outcomes(packets: int, **wall: float) -> dict[str, str]:
    quick = Measured(0.2, 0.2, 30, 0)
    figures = {key: Measured(seconds, seconds, 100, 0) for key, seconds in wall.items()}
    started = Startup(quick, quick, [])
    return {verdict.what: verdict.outcome for verdict in judge(packets, figures, started)}


def test_floors_are_judged_at_full_size_only() -> None:
    against = "jsonl at least 25 times as fast as lua"
    assert outcomes(1_000_000, jsonl=2, lua=50)[against] == HELD
    assert outcomes(1_000_000, jsonl=2, lua=49)[against] == MISSED
    assert outcomes(100_000, jsonl=2, lua=49)[against] == NOT_JUDGED
    assert outcomes(1_000_000, jsonl=2)[against] == NOT_JUDGED


def test_memory_and_start_up_are_judged_at_any_size() -> None:
    got = outcomes(1000, jsonl=2, parquet=3)
    assert got["jsonl below 64 MiB"] == MISSED
    assert got["parquet below 220 MiB"] == HELD
    quick = Measured(0.2, 0.2, 30, 0)
    heavy = judge(1000, {}, Startup(quick, quick, ["scapy"]))[-1]
    assert (heavy.outcome, "scapy" in heavy.measured) == (MISSED, True)
    slow = Startup(quick, Measured(1.7, 1.61, 30, 0), [])
    assert judge(1000, {}, slow)[-1].outcome == MISSED


def test_outputs_are_judged() -> None:
    assert judge_outputs(0, [])[0].outcome == NOT_JUDGED
    assert judge_outputs(4, [])[0].outcome == HELD
    assert judge_outputs(4, ["jsonl: commands: 1, should be 2"])[0].outcome == MISSED


def test_gains_of_several_processes_are_judged() -> None:
    def took(wall: float) -> Measured:
        return Measured(wall, wall, 30.0, 0.0)

    figures = {(view, jobs): took(8.0 / jobs) for view in VIEWS for jobs in (1, 2)}
    assert missed(figures) == []
    figures["commands as JSONL", 2] = took(6.0)
    figures["exchanges as Parquet", 2] = took(9.0)
    assert missed(figures) == [
        "commands as JSONL: two processes are 1.33 times as fast, at least 1.6"
    ]
