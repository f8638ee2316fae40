"""Decoded logs that runs add to: all of a run or nothing of it, and nothing twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from dissectors.decode import growing_log, log_parts
from dissectors.decode.decoded_log import (
    FORMS,
    DecodedLogError,
    FindingRecord,
    Manifest,
    manifest_of,
    read_manifest,
)
from dissectors.decode.log_writer import DecodedLogWriter
from dissectors.decode.partition import NO_TIME, Partition
from dissectors.decode.pipeline import CaptureStats, DecodeStats
from dissectors.rows.record import ExchangeRecord

from ..made_rows import START, record

DAY, HOUR = 86_400_000_000_000, 3_600_000_000_000


def at(time: int, **changes: object) -> ExchangeRecord:
    """Return an exchange of 1 ms that began at a time."""
    return record(request_time=time, response_time=time + 1_000_000, **changes)


def manifest(name: str = "a.pcap", start: int = START, connections: int = 4) -> Manifest:
    capture = CaptureStats(name, "pcap", None, 8, 999, start, start + 10**9, {})
    stats = DecodeStats(captures=[capture], conversations=connections, frames=7)
    return manifest_of(stats, "0.1.0", start, {})


def added(
    folder: Path,
    rows: list[ExchangeRecord],
    run: Manifest,
    partition: Partition = Partition.date,
    form: str = "parquet",
) -> Manifest:
    """Add rows as a run does; return what the log says then."""
    log = DecodedLogWriter(folder, form=form, partition=partition)
    log.write(rows)
    log.finish(run)
    return read_manifest(folder)


def exchanges_in(folder: Path) -> list[dict[str, object]]:
    """Return the rows of all parts that the manifest names, in order."""
    return [
        row
        for part in read_manifest(folder).parts
        for row in pyarrow.parquet.ParquetFile(folder / part.file).read().to_pylist()
    ]


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_a_row_is_in_the_folder_of_its_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    midnight = START - START % DAY + DAY
    found = added(log, [at(midnight - 1), at(midnight), at(midnight + HOUR)], manifest())
    assert [(part.file, part.rows) for part in found.parts] == [
        ("exchanges/date=2026-11-20/part-00000.parquet", 1),
        ("exchanges/date=2026-11-21/part-00001.parquet", 2),
    ]
    assert [(part.first_time, part.last_time) for part in found.parts] == [
        ("2026-11-20T23:59:59.999999Z", "2026-11-20T23:59:59.999999Z"),
        ("2026-11-21T00:00:00.000000Z", "2026-11-21T01:00:00.000000Z"),
    ]
    hours = added(tmp_path / "hours", [at(midnight + HOUR)], manifest(), Partition.hour)
    assert hours.parts[0].file == "exchanges/date=2026-11-21/hour=01/part-00000.parquet"


def test_a_second_run_adds(tmp_path: Path) -> None:
    log = tmp_path / "log"
    added(log, [at(START, conversation=3)], manifest())
    before = files_in(log)
    found = added(log, [at(START + DAY, conversation=0)], manifest("b.pcap", START + DAY))
    assert set(before) < set(files_in(log))
    assert (found.exchanges, found.conversations, found.frames) == (2, 8, 14)
    assert [capture.name for capture in found.captures] == ["a.pcap", "b.pcap"]
    assert [row["conversation"] for row in exchanges_in(log)] == [3, 4]  # unique in the log


def test_hive_readers_see_the_folders_as_a_column(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    log = tmp_path / "log"
    added(log, [at(START), at(START + DAY)], manifest())
    rows = duckdb.sql(
        f"select date, count(*) from read_parquet('{log}/exchanges/**/*.parquet',"
        " hive_partitioning = true) group by date order by date"
    ).fetchall()
    assert [(str(date), count) for date, count in rows] == [("2026-11-20", 1), ("2026-11-21", 1)]


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_a_time_have_a_folder(tmp_path: Path, form: str) -> None:
    log = DecodedLogWriter(tmp_path / "log", form=form, partition=Partition.hour)
    log.write_findings([FindingRecord(None, None, None, None, "CAPTURE_DAMAGED", "error", "x", 24)])
    log.finish(manifest())
    (part,) = read_manifest(tmp_path / "log").finding_parts
    assert part.file == f"findings/date={NO_TIME}/hour={NO_TIME}/part-00000.{form}"
    assert (part.first_time, part.rows) == (None, 1)


def test_few_parts_are_open_and_few_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_parts, "MOST_OPEN", 2)
    monkeypatch.setattr(log_parts, "MOST_PARTS", 6)
    log = DecodedLogWriter(tmp_path / "log", partition=Partition.date)
    for turn in range(3):
        for day in range(4):
            log.write([at(START + day * DAY, opaque=turn)])
            table = log._tables["exchanges"]
            assert isinstance(table, log_parts.LogParts)
            assert len(table._open) <= 2
    log.finish(manifest())
    parts = read_manifest(tmp_path / "log").parts
    assert len(parts) == 7
    assert f"date={NO_TIME}" in parts[-1].file
    assert parts[-1].first_time is not None  # readers still know of when it is
    assert len(exchanges_in(tmp_path / "log")) == 12


def fails_to_write(path: Path, _: Manifest) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_a_run_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its files have their names already, and only the manifest was to be written."""
    log = tmp_path / "log"
    added(log, [at(START)], manifest())
    before = files_in(log), (log / "manifest.json").read_bytes()

    with monkeypatch.context() as patched:
        patched.setattr(growing_log, "write_manifest", fails_to_write)
        writer = DecodedLogWriter(log, partition=Partition.date)
        writer.write([at(START + DAY)])
        with pytest.raises(OSError, match="No space"):
            writer.finish(manifest("b.pcap", START + DAY))
        writer.discard()
    assert read_manifest(log).exchanges == 1
    assert (log / "manifest.json").read_bytes() == before[1]
    assert len(files_in(log)) > len(before[0])  # nobody reads them
    found = added(log, [at(START + DAY)], manifest("b.pcap", START + DAY))
    named = {part.file for part in (*found.parts, *found.conversation_parts, *found.finding_parts)}
    assert {name for name in files_in(log) if "date=" in name} == named


def test_a_first_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    DecodedLogWriter(tmp_path / "log", partition=Partition.date).discard()
    assert not (tmp_path / "log").exists()


def test_a_first_run_that_cannot_be_finished_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its files have their names already, and in folders of tables that were there."""
    log = tmp_path / "log"
    (log / "messages").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(growing_log, "write_manifest", fails_to_write)
        writer = DecodedLogWriter(log, partition=Partition.date)
        writer.write([at(START)])
        with pytest.raises(OSError, match="No space"):
            writer.finish(manifest())
        writer.discard()
    assert not log.exists()


def test_a_first_run_that_fails_leaves_files_of_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (log / "exchanges").mkdir(parents=True)
    (log / "exchanges" / "notes.txt").touch()
    DecodedLogWriter(log, partition=Partition.date).discard()
    assert files_in(log) == ["exchanges/notes.txt"]
    added(log, [at(START)], manifest())  # the lock was released


def test_one_run_writes_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = DecodedLogWriter(log, partition=Partition.date)
    with pytest.raises(DecodedLogError, match="another run"):
        DecodedLogWriter(log, partition=Partition.date)
    first.discard()
    added(log, [at(START)], manifest())


@pytest.mark.parametrize("again", ["a.pcap", "renamed.pcap"])
def test_a_capture_is_added_once(tmp_path: Path, again: str) -> None:
    log = tmp_path / "log"
    added(log, [at(START)], manifest())
    with pytest.raises(DecodedLogError, match=rf"{again} is in .* already"):
        added(log, [at(START)], manifest(again))
    assert read_manifest(log).exchanges == 1


def test_an_impossible_number_of_connections_is_damage(tmp_path: Path) -> None:
    log = tmp_path / "log"
    added(log, [at(START)], manifest())
    path = log / "manifest.json"
    path.write_text(
        re.sub(r'"conversations": \d+', f'"conversations": {1 << 63}', path.read_text())
    )
    with pytest.raises(DecodedLogError, match="damaged: conversations"):
        DecodedLogWriter(log, partition=Partition.date)


def test_a_file_that_is_there_is_refused_before_it_is_read(tmp_path: Path) -> None:
    log, capture = tmp_path / "log", tmp_path / "a.pcap"
    capture.write_bytes(b"x" * 999)
    added(log, [at(START)], manifest("elsewhere/a.pcap"))
    with pytest.raises(DecodedLogError, match=r"already as elsewhere/a\.pcap; leave it out"):
        DecodedLogWriter(log, partition=Partition.date, inputs=[str(capture)])


def test_days_may_be_removed(tmp_path: Path) -> None:
    import shutil

    log = tmp_path / "log"
    added(log, [at(START), at(START + DAY)], manifest())
    for table in log.glob("*/date=2026-11-20"):
        shutil.rmtree(table)
    found = added(log, [at(START + 2 * DAY)], manifest("b.pcap", START + 2 * DAY))
    assert found.exchanges == 2
    assert [row["request_time"].day for row in exchanges_in(log)] == [21, 22]  # type: ignore[attr-defined]


def test_logs_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    plain = DecodedLogWriter(tmp_path / "plain")
    plain.finish(manifest())
    with pytest.raises(DecodedLogError, match="without partitions"):
        DecodedLogWriter(tmp_path / "plain", partition=Partition.date)
    log = tmp_path / "log"
    added(log, [at(START)], manifest())
    with pytest.raises(DecodedLogError, match="--partition date adds to it"):
        DecodedLogWriter(log, replace=True)
    with pytest.raises(DecodedLogError, match="use --partition date"):
        DecodedLogWriter(log, partition=Partition.hour)
    with pytest.raises(DecodedLogError, match="use -T parquet"):
        DecodedLogWriter(log, partition=Partition.date, form="jsonl")
    with pytest.raises(DecodedLogError, match="no table of messages"):
        DecodedLogWriter(log, partition=Partition.date, messages=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(DecodedLogError, match="not a decoded log"):
        DecodedLogWriter(tmp_path / "photos", partition=Partition.date)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 23)).map(
                lambda place: START + place[0] * DAY + place[1] * HOUR
            ),
            max_size=6,
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=25, deadline=None)
def test_every_row_of_every_run_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[int]]
) -> None:
    log = tmp_path_factory.mktemp("grown") / "log"
    for number, times in enumerate(runs):
        rows = [at(time, opaque=100 * number + i) for i, time in enumerate(times)]
        added(log, rows, manifest(f"{number}.pcap", START + number * 1000))
    wanted = sorted(
        (100 * number + i, time // 1000)
        for number, times in enumerate(runs)
        for i, time in enumerate(times)
    )
    rows = exchanges_in(log)
    assert sorted((row["opaque"], _micros(row["request_time"])) for row in rows) == wanted


def _micros(time: object) -> int:
    from datetime import UTC, datetime, timedelta

    assert isinstance(time, datetime)
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
