"""The isolation report: on recorded fault runs the clients' fault items; on rows, each rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from replay.fault import AttemptEvent
from tests.analytics.reported import Tables, tables_of
from tests.replay.recorded import ALL_RUNS, SAMPLES, run_of, wire_attempts_of

STRATEGY_ON = tuple(name for name in ALL_RUNS if run_of(name).settings.enabled)
STRATEGY_OFF = tuple(name for name in ALL_RUNS if not run_of(name).settings.enabled)
NEAR_MS = 5


@pytest.fixture(scope="module")
def recorded() -> Tables:
    """The report of all recorded fault runs together."""
    files = [str(SAMPLES / f"{name}.pcap") for name in ALL_RUNS]
    return tables_of("isolation", files, send_timeout_ms=1500)


def logged_windows(name: str) -> list[tuple[str, int, int]]:
    """Return the isolations that the fault items show: broker, from when, until when, in ms."""
    run = run_of(name)
    windows: list[tuple[str, int, int]] = []
    until: dict[str, int] = {}
    for step in run.steps:
        for update in step.updates:
            broker, now = update.broker, update.now
            failed = update.event is not AttemptEvent.ANSWERED
            duration = run.settings.duration_of(update.latency, failed)
            if duration:
                assert until.get(broker, 0) <= now, "no recorded isolation is prolonged"
                item = next(item for item in step.items if item.name == broker)
                windows.append((broker, now, item.start_timestamp))
                until[broker] = item.start_timestamp
            else:
                assert run.settings.generation == "5.1" or until.get(broker, 0) <= now
    return windows


def ms(time: object) -> float:
    assert isinstance(time, datetime)
    return time.replace(tzinfo=UTC).timestamp() * 1000


def process_of(name: str) -> str:
    """Return the process of a run, as its UNIQ_KEYs have it."""
    key = next(iter(wire_attempts_of(name)))
    return f"{int(key[-24:-20], 16)}-{key[-20:-12]}"


def of_run(rows: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    return [row for row in rows if row["process"] == process_of(name)]


@pytest.mark.parametrize("name", STRATEGY_ON)
def test_windows_are_those_of_the_fault_items(recorded: Tables, name: str) -> None:
    windows = of_run(recorded["isolation_windows"], name)
    expected = logged_windows(name)
    assert [window["broker"] for window in windows] == [broker for broker, _, _ in expected]
    for window, (_, start, end) in zip(windows, expected, strict=True):
        assert ms(window["start"]) == pytest.approx(start, abs=NEAR_MS)
        assert ms(window["end"]) == pytest.approx(end, abs=NEAR_MS)


def test_most_recorded_runs_have_windows() -> None:
    counts = {name: len(logged_windows(name)) for name in STRATEGY_ON}
    assert sum(count > 0 for count in counts.values()) == 13
    assert [name for name, count in counts.items() if not count] == [
        "fault-read-only-4x",
        "fault-read-only-5x",
    ]


@pytest.mark.parametrize("name", ALL_RUNS)
def test_the_strategy_is_found_on_and_off_as_it_was(recorded: Tables, name: str) -> None:
    """And unknown where no broker failed, for then nothing tells."""
    (producer,) = of_run(recorded["isolation_producers"], name)
    assert producer["generation"] == run_of(name).settings.generation
    if not run_of(name).settings.enabled:
        assert producer["strategy"] == "off"
        assert producer["not_followed"]
    else:
        assert producer["strategy"] == ("on" if logged_windows(name) else "unknown")
        assert producer["to_isolated"] == 0


@pytest.mark.parametrize("name", STRATEGY_OFF)
def test_sends_at_isolated_brokers_are_listed(recorded: Tables, name: str) -> None:
    (producer,) = of_run(recorded["isolation_producers"], name)
    listed = of_run(recorded["isolation_sends"], name)
    assert len(listed) == producer["to_isolated"]
    assert {row["why"] for row in listed} <= {"no strategy", "at the edge"}
    assert all(row["window_start"] <= row["time"] <= row["window_end"] for row in listed)


def test_skew_is_the_distance_from_evenly_loaded_queues(recorded: Tables) -> None:
    """Pearson's chi-square; its deviations by Wilson and Hilferty."""
    queues = [row for row in recorded["skew_queues"] if row["topic"] == "FaultTopic"]
    counts = [int(str(row["attempts"])) for row in queues]
    even = sum(counts) / len(counts)
    chi_square = sum((count - even) ** 2 / even for count in counts)
    freedom = len(counts) - 1
    spread = 2 / (9 * freedom)
    (topic,) = (row for row in recorded["skew_topics"] if row["topic"] == "FaultTopic")
    assert topic["chi_square"] == pytest.approx(chi_square)
    deviations = ((chi_square / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5
    assert topic["deviations"] == pytest.approx(deviations)
    assert (topic["queues"], topic["brokers"], topic["uneven"]) == (4, 2, deviations > 3.1)
    assert sum(float(str(row["share"])) for row in queues) == pytest.approx(1)


def test_brokers_of_a_topic_are_compared_by_their_queues(recorded: Tables) -> None:
    queues = recorded["skew_queues"]
    assert [row["attempts"] for row in queues] == sorted(
        (int(str(row["attempts"])) for row in queues), reverse=True
    )
    counts: dict[tuple[object, object], list[int]] = {}
    for row in queues:
        counts.setdefault((row["topic"], row["broker"]), []).append(int(str(row["attempts"])))
    several = [topic for topic, _ in counts]
    found = recorded["skew_brokers"]
    assert len(found) > 1
    assert len(found) == sum(several.count(topic) > 1 for topic in several)
    for row in found:
        of_topic = [some for (topic, _), some in counts.items() if topic == row["topic"]]
        mine = counts[row["topic"], row["broker"]]
        even = sum(map(sum, of_topic)) / sum(map(len, of_topic)) * len(mine)
        assert row["excess"] == pytest.approx(sum(mine) - even)
        assert row["load"] == pytest.approx(sum(mine) / even)


def test_remarks_say_that_the_strategy_is_off_and_nothing_more(recorded: Tables) -> None:
    from analytics.reports.isolation import report_notes

    gone, off = report_notes(recorded)
    assert gone.startswith("2 producers had failed connection attempts (broker-b)")
    assert off.startswith(f"Strategy apparently off: {len(STRATEGY_OFF)} of 17 producers")
    assert report_notes({}) == []


# what the client knew and the packets do not show


@pytest.fixture(scope="module")
def kept() -> Tables:
    """A client of 4.3.2, which keeps its connection at a timeout, and a broker that stood still."""
    names = "isolation_windows", "isolation_producers"
    return tables_of("isolation", [str(SAMPLES / "fault-freeze-43.pcap")], *names)


def test_an_answer_after_the_timeout_isolates_from_the_timeout(kept: Tables) -> None:
    """The answer came after 4.2 s; the client had isolated the broker at 3 s, for ten minutes."""
    known = json.loads((SAMPLES / "fault-freeze-43.producer.json").read_text())
    (gone,) = (one for one in known if one.get("error"))
    (item,) = (one for one in gone["items"] if one["currentLatency"] > 3000)
    (window,) = kept["isolation_windows"]
    assert (window["broker"], window["cause"]) == (item["name"], "stored too late")
    assert ms(window["end"]) == pytest.approx(item["startTimestamp"], abs=NEAR_MS)
    assert ms(window["start"]) == pytest.approx(item["startTimestamp"] - 600_000, abs=NEAR_MS)


def test_a_client_that_kept_its_connection_kept_to_its_strategy(kept: Tables) -> None:
    (producer,) = kept["isolation_producers"]
    assert (producer["strategy"], producer["generation"]) == ("on", "4.7")
    assert (producer["failures"], producer["to_isolated"], producer["not_followed"]) == (1, 0, 0)


def test_connects_of_another_program_are_not_the_producers() -> None:
    """The producer had the strategy on; a broker was killed, and probed all the time."""
    file = str(SAMPLES / "fault-kill-beside-4x.pcap")
    names = "isolation_producers", "isolation_sends", "isolation_windows"
    tables = tables_of("isolation", [file], *names, send_timeout_ms=1500)
    (producer,) = tables["isolation_producers"]
    assert (producer["strategy"], producer["not_followed"]) == ("on", 0)
    assert (producer["failures"], producer["unreachable"]) == (1, "broker-b")
    assert {one["why"] for one in tables["isolation_sends"]} == {"after unseen attempts"}
    assert [one["cause"] for one in tables["isolation_windows"]] == [
        "response after 620 ms",
        "connection reset",
    ]
