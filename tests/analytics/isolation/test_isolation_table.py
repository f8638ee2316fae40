"""Rows of the isolation tables for the attempts of one producer, from Arrow, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.isolation import isolation_input
from analytics.isolation.isolation_table import MOST_SENDS, Assumed, isolation_rows
from analytics.report import TableColumn
from analytics.schema import arrow_rows
from analytics.sends import attempts as words
from replay.fault import FaultSettings

BASE = 1_795_000_000_000_000
SECOND = 1_000_000
_TEXTS = ("client", "process", "group", "topic", "broker", "last_broker", "outcome", "cause")
_MORE = ("tie", "language", "version_name", "capture", "gone")
_NUMBERS = (
    "key",
    "begin",
    "end",
    "attempt",
    "request_packet",
    "connects_failed",
    "unseen_from",
    "unseen_to",
)
COLUMNS = (
    *(TableColumn(name, "string", "", "") for name in (*_TEXTS, *_MORE)),
    *(TableColumn(name, "int", "", "") for name in _NUMBERS),
)
Row = dict[str, object]


def attempt(second: float, broker: str = "a", outcome: str = words.STORED, **values: object) -> Row:
    """Return an attempt at BASE + so many seconds that took 2 ms."""
    begin = BASE + int(second * SECOND)
    return {
        "client": "10.0.0.9",
        "process": "7-0A",
        "group": "g",
        "topic": "T",
        "broker": broker,
        "outcome": outcome,
        "cause": outcome,
        "begin": begin,
        "end": None if outcome == words.UNKNOWN else begin + 2000,
        "attempt": 1,
        "key": int(second * 10),
        "language": "JAVA",
        "version_name": "V5_3_3",
        "capture": "c",
        "request_packet": int(second * 10),
        **values,
    }


def tables(
    rows: list[Row], assumed: Assumed | None = None, batch: int = 100
) -> dict[str, list[Row]]:
    """Return the rows of each table."""
    made = isolation_rows(assumed or Assumed())(arrow_rows(rows, COLUMNS).to_batches(batch))
    found = defaultdict(list)
    for row in (row for batch in made for row in batch.to_pylist()):
        found[str(row["kind"])].append(row)
    return found


def refused(second: float, broker: str = "a") -> Row:
    return attempt(second, broker, words.REFUSED)


def test_rows_need_not_come_by_time() -> None:
    rows = [attempt(n, "ab"[n % 2]) for n in range(5)] + [refused(5), attempt(6, "b")]
    forwards, backwards = tables(rows), tables(rows[::-1])
    assert forwards.keys() == backwards.keys()
    for kind, found in forwards.items():
        assert sorted(found, key=str) == sorted(backwards[kind], key=str)


def test_a_window_names_the_attempt_that_opened_it() -> None:
    (window,) = tables([attempt(0), refused(5), attempt(30, "b")])["window"]
    assert (window["key"], window["request_packet"]) == (50, 50)
    assert (window["cause"], window["length_us"], window["open"]) == (
        words.REFUSED,
        10 * SECOND,
        False,
    )
    (still,) = tables([attempt(0), refused(5), attempt(9, "b")])["window"]
    assert still["open"]


def test_time_counts_as_far_as_the_producer_was_seen() -> None:
    found = tables([attempt(0), refused(5), attempt(8, "b")])
    broker = next(row for row in found["broker"] if row["broker"] == "a")
    assert broker["isolated_us"] == 3 * SECOND
    assert broker["isolated_share"] == pytest.approx(3 / 8, abs=0.001)


def test_a_broker_that_is_not_used_again_is_given_up() -> None:
    later = [attempt(20 + 5 * n, "b") for n in range(30)]
    used = tables([attempt(0), refused(5), *later, attempt(170)])
    assert [row["abandoned"] for row in used["broker"]] == [None, None]
    gone = tables([attempt(0), refused(5), *later])
    abandoned = {row["broker"]: (row["abandoned"], row["elsewhere"]) for row in gone["broker"]}
    assert abandoned == {"a": (True, 30), "b": (None, None)}
    soon = tables([attempt(0), refused(5), *later[:10]])
    assert [row["abandoned"] for row in soon["broker"]] == [False, None]


def test_what_other_generations_would_have_done() -> None:
    rows = [attempt(0), attempt(1, "b"), refused(5), attempt(30, "b"), refused(31), attempt(40)]
    settings = {row["setting"]: row for row in tables(rows)["setting"]}
    assert [settings[name]["used"] for name in ("4.7", "4.8", "5.1")] == [False, False, True]
    assert settings["5.1"]["attempts_moved"] == 1
    assert settings["5.1"]["failures_avoided"] == 0
    old = settings["4.8"]
    assert (old["windows"], old["attempts_moved"], old["failures_avoided"]) == (1, 2, 1)


def test_the_user_may_know_better() -> None:
    rows = [attempt(0), refused(5), attempt(30, "b")]
    assumed = Assumed("4.8", enabled=False)
    found = tables(rows, assumed)
    assert found["window"][0]["length_us"] == 600 * SECOND
    assert {row["strategy"] for row in found["producer"]} == {"off"}
    own = Assumed(latency_max=(1, 100), not_available=(5, 7000))
    lengths = [row["length_us"] for row in tables(rows, own)["window"]]
    assert lengths == [5000, 7 * SECOND, 5000]
    assert own.settings_of(None) == FaultSettings(
        latency_max=(1, 100), not_available=(5, 7000), rules=FaultSettings.of_version(None).rules
    )


def test_all_attempts_at_isolated_brokers_are_counted_and_the_first_listed() -> None:
    rows = [attempt(0), attempt(1, "b"), refused(5)]
    rows += [attempt(6 + n / 1000) for n in range(MOST_SENDS + 5)]
    found = tables(rows)
    assert found["producer"][0]["to_isolated"] == MOST_SENDS + 5
    assert found["producer"][0]["not_followed"] == MOST_SENDS + 5
    assert len(found["send"]) == MOST_SENDS
    assert found["send"][0]["key"] == 60


def test_a_producer_without_answers_has_no_windows() -> None:
    found = tables([attempt(n, outcome=words.UNKNOWN) for n in range(3)])
    assert not found["window"]
    assert found["producer"][0]["strategy"] == "unknown"
    assert found["producer"][0]["failures"] == 0


def test_producers_of_one_number_are_told_apart() -> None:
    """Spark groups by a number; an absent process is not the same as an absent group."""
    names: list[Row] = [
        {"process": "03E818B4AAC2", "group": None},
        {"process": None, "group": "03E818B4AAC2"},
        {"client": "10.0.0.8", "process": None, "group": None},
    ]
    rows = [attempt(n, **names[n % 3]) for n in range(9)] + [attempt(20, "b", **names[0])]
    found = tables(rows)["producer"]
    assert {(row["client"], row["process"], row["group"]): row["attempts"] for row in found} == {
        ("10.0.0.9", "1000-18B4AAC2", None): 4,
        ("10.0.0.9", None, "03E818B4AAC2"): 3,
        ("10.0.0.8", None, None): 3,
    }


_OUTCOMES = (
    *(words.STORED, words.STORED, words.STORED, words.REFUSED, words.RESET, words.TIMED_OUT),
    *(words.ONEWAY, words.UNKNOWN),
)


@st.composite
def attempts_made(draw: st.DrawFn) -> list[Row]:
    """Attempts of some producers, many of them close together."""
    steps = st.sampled_from([0, 1, 7, 400, 15_000, 21_000, 300_000, 2_000_000, 31_000_000])
    rows: list[Row] = []
    at = 0
    for number in range(draw(st.integers(1, 60))):
        at += draw(steps)
        outcome = draw(st.sampled_from(_OUTCOMES))
        took = draw(st.sampled_from([1, 900, 19_999, 600_000, 3_000_000, 16_000_000]))
        rows.append(
            attempt(
                at / SECOND,
                draw(st.sampled_from("abc")),
                outcome,
                begin=BASE + at,
                end=None if outcome == words.UNKNOWN else BASE + at + took,
                process=draw(st.sampled_from(["7-0A", "7-0A", "8-0B", None])),
                topic=draw(st.sampled_from(["T", "T", "U", None])),
                last_broker=draw(st.sampled_from([None, None, "a", "b"])),
                version_name=draw(st.sampled_from(["V5_3_3", "V5_3_3", "V4_9_4"])),
                key=number,
                request_packet=number,
            )
        )
    return draw(st.permutations(rows))


@given(made=attempts_made(), most=st.integers(1, 25), part=st.integers(1, 9))
@settings(max_examples=150)
def test_rows_in_files_give_the_same_tables(made: list[Row], most: int, part: int) -> None:
    expected = tables(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation_input, "MOST_ROWS", most)
        patch.setattr(isolation_input, "_PART", part)
        patch.setattr(isolation_input, "_BATCH", 3)
        found = tables(made, batch=5)
    for kind in expected:
        assert sorted(map(str, found[kind])) == sorted(map(str, expected[kind]))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_attempts_of_a_producer() -> None:
    program = (
        "import resource, sys\n"
        "from analytics.isolation import isolation_input\n"
        "from analytics.isolation.isolation_table import Assumed, isolation_rows\n"
        "from bench.reports.attempts import batches\n"
        "isolation_input.MOST_ROWS, isolation_input._PART = 100_000, 8\n"
        "made = isolation_rows(Assumed())(batches(int(sys.argv[1])))\n"
        "print(sum(batch.num_rows for batch in made))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    rows, peaks = [], []
    for count in (200_000, 1_200_000):
        done = subprocess.run(
            [sys.executable, "-c", program, str(count)],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / ".ci")},
            check=True,
            capture_output=True,
            text=True,
        )
        made, peak = map(int, done.stdout.split())
        rows.append(made)
        peaks.append(peak)
    assert rows[1] >= rows[0] > 100
    assert peaks[1] < 1.25 * peaks[0]
