"""Packets around problems: kept with their diagnosis, only the connections that matter, bounded."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from analytics.diagnosis.context import Context
from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.overload.disk_full import RULE
from dissectors.decode.pipeline import Decode
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from rmqtool.summary.watch import ProblemChange, ProblemEvent
from rmqtool.watch import incident_capture
from rmqtool.watch.incident_capture import keep_incident
from rmqtool.watch.incidents import IncidentKeeper, IncidentOrder, KnownConnections
from tests.analytics.diagnosis.made_rows import START, exchange, problems
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import SECOND, End, Talk, merged

from .test_replayed import SAMPLE, by_event, refusing, watched

pytestmark = pytest.mark.slow


def quiet(at: int, seconds: int, client: End, server: End) -> Talk:
    """A client that sends once a second, all of it stored."""
    talk = Talk(client, server, at=at).open()
    for number in range(seconds):
        talk.say(0, send(number).frame).say(1, sent(number, number).frame).wait(SECOND)
    return talk


def packets_of(path: Path) -> list[int]:
    """The times of the packets of a capture."""
    data = path.read_bytes()
    reader = reader_of(0, data[:PCAP_HEADER])
    assert reader is not None
    return [one.ts for one in reader.receive(data[PCAP_HEADER:])]


def test_the_packets_around_a_problem_are_kept_with_their_diagnosis(tmp_path: Path) -> None:
    start = Talk().now
    bad = refusing(start + 200 * SECOND)
    same = quiet(start, 400, End("10.0.0.7", 41000), End("10.0.0.1", 10911))
    other = quiet(start, 400, End("10.0.0.8", 42000), End("10.0.0.2", 10911))
    status, events, err = watched(
        pcap_of(merged(bad, same, other)),
        *("--ring-dir", tmp_path / "ring", "--incidents", tmp_path / "kept"),
        *("--before", "50s", "--after", "20s"),
    )
    assert (status, err) == (0, "")
    (kept,) = by_event(events, "incident_kept")
    folder = Path(kept["path"])
    times = packets_of(folder / "capture.pcapng")
    assert len(times) == kept["packets"]
    assert 150 <= len(times) < 400  # two packets a second of 400 s, and those of the problem
    rows = [row for rows in Decode([str(folder / "capture.pcapng")]).records() for row in rows]
    assert {row.server_address for row in rows} == {"10.0.0.1:10911"}
    assert times[0] >= bad.segments[0].ts - 51 * SECOND
    assert times[-1] > bad.segments[-1].ts
    said = json.loads((folder / "diagnosis.json").read_text())
    assert [one["rule"] for one in said["reason"]] == ["send-queue-timeout"]
    assert "send-queue-timeout" in {one["rule"] for one in said["problems"]}
    assert "refused 3 sends" in (folder / "diagnosis.txt").read_text()
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "capture.pcapng").stat().st_mode & 0o077 == 0


def test_problems_of_a_lower_severity_are_not_kept(tmp_path: Path) -> None:
    _, events, _ = watched(
        SAMPLE.read_bytes(),
        *("--ring-dir", tmp_path / "ring", "--incidents", tmp_path / "kept"),
        *("--rule", "send-retried"),
    )
    assert [one["rule"] for one in by_event(events, "started")] == ["send-retried"]
    assert list((tmp_path / "kept").iterdir()) == []


def order(folder: Path, capture: Path, name: str, **others: object) -> IncidentOrder:
    given: dict[str, object] = {
        "files": [str(capture)],
        "begin": 0,
        "end": 1 << 62,
        "connections": [],
        "servers": ["127.77.0.11:10911", "127.77.0.1:9876"],
        "clients": [],
        "known": [],
        "problems": [],
        "folder": str(folder),
        "name": name,
        "most": 3,
        "size": 1 << 20,
    }
    return IncidentOrder(**given | others)  # type: ignore[arg-type]


def test_the_oldest_incidents_make_room_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    for number in range(5):
        kept = keep_incident(order(tmp_path, SAMPLE, f"2026-{number}"))
        assert (kept.error, kept.packets > 0) == ("", True)
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["2026-2", "2026-3", "2026-4", "mine"]
    (tmp_path / "2026-2" / "notes.txt").write_text("keep")
    kept = keep_incident(order(tmp_path, SAMPLE, "2026-5", most=1))
    assert kept.removed == 2
    assert (tmp_path / "2026-2" / "notes.txt").exists()


def test_an_incident_is_cut_at_its_size_and_lost_files_are_counted(tmp_path: Path) -> None:
    files = [str(tmp_path / "gone.pcapng"), str(SAMPLE)]
    kept = keep_incident(order(tmp_path, SAMPLE, "x", files=files, size=40_000))
    assert (kept.error, kept.cut, kept.missing) == ("", True, 1)
    assert 0 < kept.bytes <= 10_500


def test_no_packets_are_no_error(tmp_path: Path) -> None:
    kept = keep_incident(order(tmp_path, SAMPLE, "x", files=[]))
    assert (kept.error, kept.packets) == ("", 0)
    assert "no packets" in (tmp_path / "x" / "diagnosis.txt").read_text()


def test_packets_are_kept_when_their_diagnosis_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(*_: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(incident_capture, "fed", hang)
    kept = keep_incident(order(tmp_path, SAMPLE, "x"))
    assert (kept.error, kept.diagnosed, kept.packets > 0) == ("", False, True)
    assert len(packets_of(tmp_path / "x" / "capture.pcapng")) == kept.packets
    assert "not diagnosed" in (tmp_path / "x" / "diagnosis.txt").read_text()
    assert json.loads((tmp_path / "x" / "diagnosis.json").read_text())["problems"] is None


def test_packets_are_kept_when_their_diagnosis_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(incident_capture, "fed", fail)
    kept = keep_incident(order(tmp_path, SAMPLE, "x"))
    assert (kept.error, kept.diagnosed, kept.packets > 0) == ("", False, True)
    assert len(packets_of(tmp_path / "x" / "capture.pcapng")) == kept.packets
    assert "not diagnosed: 'x'" in (tmp_path / "x" / "diagnosis.txt").read_text()


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(incident_capture, "SegmentReader", fail)
    assert keep_incident(order(tmp_path, SAMPLE, "x")).error == "'x'"
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_takes_too_long_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(*_: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(incident_capture, "SegmentReader", hang)
    kept = keep_incident(order(tmp_path, SAMPLE, "x"))
    assert "took longer than" in kept.error
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_is_set_back_delays_no_incident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[IncidentOrder] = []
    monkeypatch.setattr(IncidentKeeper, "_start", lambda _, order: started.append(order))
    keeper = IncidentKeeper(
        *(tmp_path, ProblemSeverity.INFO, SECOND, SECOND, 3, 1 << 20, lambda *_: []),
        KnownConnections(),
    )
    (problem,) = problems(RULE, [exchange(0, 310, 14, topic="t", remark="disk is full")])
    before, after = START + 7200 * SECOND, START + SECOND  # two hours back
    keeper.take([ProblemEvent(ProblemChange.STARTED, before, problem, None)], Context())
    keeper.look(before)
    keeper.look(0)  # no packet by the new clock yet
    assert started == []
    keeper.look(after)
    assert len(started) == 1
    keeper._waiting = None
    keeper.take([ProblemEvent(ProblemChange.STARTED, after, problem, None)], Context())
    assert keeper._waiting is not None
