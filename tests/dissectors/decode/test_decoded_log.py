"""The decoded log: whole or not there, and readable by what people read Parquet with."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet

from dissectors.decode.decoded_log import (
    FINDING_COLUMNS,
    FORMS,
    DecodedLogError,
    FindingRecord,
    Manifest,
    file_in,
    finding_of,
    is_decoded_log,
    manifest_of,
    read_manifest,
)
from dissectors.decode.log_writer import DecodedLogWriter
from dissectors.decode.pipeline import CaptureStats, Decode, DecodeOptions, DecodeStats
from dissectors.decode.totals import TOTALS, RunTotals
from dissectors.findings import Finding, FindingKind
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.record import COLUMNS

from ..made_rows import START, record, unanswered
from .decoded_log_docs import field_texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "fault-kill-4x.pcap"
INFO = Finding(FindingKind.GAP, "1448 bytes are missing", START, (1 << 40) + 7, 3, 8192)


def stats() -> DecodeStats:
    capture = CaptureStats("a.pcap", "pcap", None, 8, 999, START, START + 10**9, {"not TCP": 1})
    return DecodeStats(
        captures=[capture],
        conversations=4,
        rocketmq_conversations=2,
        not_decoded={"TLS": 2},
        frames=7,
        commands=6,
        gaps=1,
        gap_bytes=1448,
        finding_counts={FindingKind.GAP: 1},
    )


def manifest() -> Manifest:
    return manifest_of(stats(), "0.1.0", START, {"where": "topic == A"})


def written(folder: Path, replace: bool = False) -> Path:
    log = DecodedLogWriter(folder, replace)
    log.write([record(), unanswered()])
    log.write_findings([finding_of(INFO, ["a.pcap", "b.pcap"])])
    log.write([record(opaque=99)])
    log.finish(manifest())
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_layout_and_manifest(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    assert names_in(tmp_path) == [
        "log",
        "log/.rmqtool-files.json",
        "log/conversations.parquet",
        "log/exchanges",
        "log/exchanges/part-00000.parquet",
        "log/findings.parquet",
        "log/manifest.json",
    ]
    assert json.loads((log / "manifest.json").read_text()) == {
        "format": "rmqtool-decoded-log",
        "schema_version": 2,
        "rmqtool": "0.1.0",
        "created": "2026-11-20T10:00:00.000000Z",
        "options": {"where": "topic == A"},
        "captures": [
            {
                "name": "a.pcap",
                "format": "pcap",
                "compression": None,
                "packets": 8,
                "bytes": 999,
                "first_time": "2026-11-20T10:00:00.000000Z",
                "last_time": "2026-11-20T10:00:01.000000Z",
                "skipped": {"not TCP": 1},
            }
        ],
        "exchanges": 3,
        "parts": [
            {
                "file": "exchanges/part-00000.parquet",
                "rows": 3,
                "first_time": "2026-11-20T10:00:00.123456Z",
                "last_time": "2026-11-20T10:00:00.123456Z",
            }
        ],
        "messages": None,
        "message_parts": [],
        "partition": None,
        "conversation_parts": [],
        "finding_parts": [],
        "conversations": 4,
        "rocketmq_conversations": 2,
        "not_decoded": {"TLS": 2},
        "replication_conversations": 0,
        "replications": [],
        "frames": 7,
        "commands": 6,
        "gaps": 1,
        "gap_bytes": 1448,
        "findings": {"GAP": 1},
    }
    assert read_manifest(log).parts[0].rows == 3


def test_parts_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissectors.decode.log_parts.PART_ROWS", 2)
    log = DecodedLogWriter(tmp_path / "log")
    for opaque in range(5):
        log.write([record(opaque=opaque)])
    log.finish(manifest())
    parts = read_manifest(tmp_path / "log").parts
    assert [(part.file, part.rows) for part in parts] == [
        ("exchanges/part-00000.parquet", 2),
        ("exchanges/part-00001.parquet", 2),
        ("exchanges/part-00002.parquet", 1),
    ]


def test_pandas_reads_it(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(written(tmp_path / "log") / "exchanges")
    assert list(frame.columns) == [column.name for column in COLUMNS]
    assert frame.latency_us.sum() == 2468
    assert frame.request_time[0] == pandas.Timestamp("2026-11-20T10:00:00.123456Z")


def test_duckdb_reads_it(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    log = written(tmp_path / "log")
    rows = duckdb.sql(
        f"select status, count(*), max(epoch_us(request_time)) from '{log}/exchanges/*.parquet' "
        "group by status order by status"
    ).fetchall()
    micros = (START + 123_456_789) // 1000
    assert rows == [("answered", 2, micros), ("unanswered", 1, micros)]
    findings = duckdb.sql(f"select * from '{log}/findings.parquet'")
    assert findings.columns == [column.name for column in FINDING_COLUMNS]
    (row,) = findings.select("* exclude time").fetchall()
    assert row == ("b.pcap", 7, 3, "GAP", "warning", "1448 bytes are missing", 8192)


def test_a_finding_about_no_packet_has_no_packet() -> None:
    info = Finding(FindingKind.CAPTURE_DAMAGED, "x", 0, 0, -1, 24)
    assert finding_of(info, ["a"]) == FindingRecord(
        None, None, None, None, "CAPTURE_DAMAGED", "error", "x", 24
    )


def test_options_of_any_bytes_are_in_the_manifest(tmp_path: Path) -> None:
    log = DecodedLogWriter(tmp_path / "log")
    log.write([record()])
    log.finish(manifest_of(stats(), "0.1.0", START, {"where": "topic != 'a\udce9'"}))
    assert read_manifest(tmp_path / "log").options == {"where": "topic != 'a?'"}


def test_a_stopped_run_leaves_nothing(tmp_path: Path) -> None:
    log = DecodedLogWriter(tmp_path / "log")
    log.write([record()])
    assert not (tmp_path / "log").exists()
    assert not any(is_decoded_log(path) for path in tmp_path.iterdir())
    log.discard()
    assert names_in(tmp_path) == []


def test_a_killed_run_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    DecodedLogWriter(tmp_path / "log").write([record()])
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".")
    assert not is_decoded_log(left)
    written(tmp_path / "log")  # what was left is not in the way
    assert {path.name for path in tmp_path.iterdir()} == {"log", left.name}


def test_an_existing_log_is_replaced_only_when_asked(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    with pytest.raises(DecodedLogError, match="--force"):
        DecodedLogWriter(log)
    replacing = DecodedLogWriter(log, replace=True)
    assert read_manifest(log).exchanges == 3  # until the new one is whole
    replacing.write([record()])
    replacing.finish(manifest())
    assert read_manifest(log).exchanges == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_folder_that_is_no_log_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(DecodedLogError, match="not a decoded log"):
        DecodedLogWriter(tmp_path / "photos", replace=True)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(DecodedLogError, match="not a folder"):
        DecodedLogWriter(tmp_path / "file", replace=True)
    with pytest.raises(DecodedLogError, match="not a folder"):
        DecodedLogWriter(tmp_path / "none" / "log")


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert is_decoded_log(written(tmp_path / "log"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no manifest.json"),
        ("{", "cannot be read"),
        ('{"format": "x"}', "cannot be read"),
    ],
)
def test_what_is_no_log_says_why(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(DecodedLogError, match=reason):
        read_manifest(tmp_path)
    with pytest.raises(DecodedLogError, match="no such folder"):
        read_manifest(tmp_path / "none")


def test_a_file_may_have_the_name_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "part" / "part"
    path.parent.mkdir()
    path.touch()
    assert file_in(tmp_path, "part/part") == path
    with pytest.raises(DecodedLogError, match="not a regular file"):
        file_in(tmp_path, "part")


def test_a_log_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    path = log / "manifest.json"
    path.write_text(path.read_text().replace('"schema_version": 2', '"schema_version": 3'))
    with pytest.raises(DecodedLogError, match="newer"):
        read_manifest(log)


@pytest.mark.slow
def test_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    frame = spark.read.parquet(str(log / "exchanges"))
    assert frame.columns == [column.name for column in COLUMNS]
    kinds = {"string": "string", "int": "bigint", "time": "timestamp", "list": "array<string>"}
    assert dict(frame.dtypes) == {column.name: kinds[column.type] for column in COLUMNS}
    latest = frame.selectExpr("max(unix_micros(request_time))").first()
    assert latest is not None
    assert latest[0] == (START + 123_456_789) // 1000
    assert spark.read.parquet(str(log / "findings.parquet")).count() == 1


def test_the_documentation_is_that_of_the_code() -> None:
    from .decoded_log_docs import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), (
        "python -m tests.dissectors.decode.decoded_log_docs writes it anew"
    )


def test_the_filters_in_the_documentation_are_filters() -> None:
    import re

    from dissectors.where.fields import exchange_fields
    from dissectors.where.filter import compile_where

    from .decoded_log_docs import PAGE

    section = PAGE.read_text(encoding="utf-8").split("## Filters")[1]
    block = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert block is not None
    for line in block[1].splitlines():
        assert compile_where(line, exchange_fields())(record()) in (True, False)


def test_connections_are_read_back(tmp_path: Path) -> None:
    decode = Decode([str(SAMPLE)], DecodeOptions(conversations=True))
    log = DecodedLogWriter(tmp_path / "log")
    wanted = []
    for batch in decode.records():
        log.write(batch)
        rows = decode.take_conversations()
        log.write_conversations(rows)
        wanted += rows
    log.finish(manifest())
    table = pyarrow.parquet.read_table(tmp_path / "log" / "conversations.parquet")
    assert table.schema.names == [column.name for column in CONVERSATION_COLUMNS]
    assert len(wanted) == table.num_rows > 3
    for row, read in zip(wanted, table.to_pylist(), strict=True):
        assert (row.client_address, row.end, row.rtt_us, row.commands) == (
            read["client_address"],
            read["end"],
            read["rtt_us"],
            read["commands"],
        )
        assert read["start_time"].timestamp() * 1e6 == pytest.approx(row.start_time / 1e3, abs=1)


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    for form in FORMS:
        log = DecodedLogWriter(tmp_path / form, form=form)
        decode = Decode([str(SAMPLE)], DecodeOptions(conversations=True))
        for batch in decode.records():
            log.write(batch)
            log.write_conversations(decode.take_conversations())
            log.write_findings(finding_of(one, decode.sources) for one in decode.take_findings())
        log.finish(manifest())
    for name in ("exchanges/part-00000", "conversations", "findings"):
        table = pyarrow.parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        lines = (tmp_path / "jsonl" / f"{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        assert [list(row) for row in rows] == [table.schema.names] * table.num_rows
        assert [_with_texts(row) for row in table.to_pylist()] == rows, name
    assert read_manifest(tmp_path / "jsonl").parts[0].file == "exchanges/part-00000.jsonl"


def _with_texts(row: dict[str, object]) -> dict[str, object]:
    def text(value: object) -> object:
        if isinstance(value, datetime):
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return value

    return {name: text(value) for name, value in row.items()}


def test_the_manifest_has_the_totals_of_a_run() -> None:
    """With their types and meanings, and every capture with what was read of it."""
    totals = RunTotals.__annotations__
    assert {name: Manifest.__annotations__.get(name) for name in TOTALS} == totals
    written = dict(field_texts(Manifest))
    assert {name: written[name] for name in TOTALS} == dict(field_texts(RunTotals))
