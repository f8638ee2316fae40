"""The same tables from Parquet, JSON lines, captures, and captures however they are cut."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.inputs.inputs import InputError, inputs_of
from tests.analytics.pcaps import rotated
from tests.rmqtool.command import rmqtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput
    from analytics.sql.relation import Relation

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
CAPTURE = SAMPLES / "fault-kill-5x.pcap"
TABLES = ("latency", "latency_network", "unanswered", "clients", "retry_attempts")
REPORTS = ("latency", "overview", "retries")
_PLACES = ("capture", "packet", "source", "conversation")
"""What rightly depends on how captures are cut."""

Found = Mapping[str, Sequence[Mapping[str, object]]]


def tables_of(spark: SparkSession, *names: str | Path, reports: Sequence[str] = ()) -> Found:
    """Return the tables that are read and those of reports, without the places to look up.

    Reports are made of the tables that are read alone: where those are the same, so are reports.
    """
    from analytics.inputs.filters import chosen
    from analytics.inputs.source import read_inputs
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed

    tables = read_inputs(spark, inputs_of([str(name) for name in names]))
    given = tables.given
    assert given.conversations is not None
    assert given.findings is not None
    found = {
        "exchanges": _rows_of(given, given.exchanges),
        "conversations": _rows_of(given, given.conversations),
        "findings": _rows_of(given, given.findings),
    }
    options = ReportOptions(tables=frozenset(TABLES))
    given = chosen(given) if reports else given
    for name in reports:
        (result,) = computed([_only_wanted(report_of(name))], given, options)
        for table, one in result.tables.items():
            found[table] = [_without_places(row) for row in one.rows()]
    spark.catalog.clearCache()
    return found


def _rows_of(given: ReportInput, relation: Relation) -> list[Mapping[str, object]]:
    """Return the types of columns, then the rows in an order that does not depend on the input."""
    table = given.kept.rows(relation)
    rows = [_without_places(row) for row in table.to_pylist()]
    types = {field.name: str(field.type) for field in table.schema}
    return [types, *sorted(rows, key=str)]


def _count(given: ReportInput, relation: Relation) -> int:
    return int(given.kept.rows(relation).num_rows)


def _without_places(row: Mapping[str, object]) -> Mapping[str, object]:
    return {k: v for k, v in row.items() if not any(place in k for place in _PLACES)}


def _only_wanted(report: object) -> object:
    from dataclasses import replace

    return replace(report, tables=tuple(t for t in report.tables if t.name in TABLES))


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The tables from a decoded log in Parquet."""
    folder = tmp_path_factory.mktemp("log")
    assert (
        rmqtool("decode", "pcap", CAPTURE, "--format", "parquet", "-o", folder / "log").status == 0
    )
    found = tables_of(spark, folder / "log", reports=REPORTS)
    assert set(found) == {"exchanges", "conversations", "findings", *TABLES}
    assert all(len(rows) > 1 for name, rows in found.items() if name not in TABLES)
    assert all(found.values())
    return found


def check(found: Found, expected: Found) -> None:
    """Every table that was made is the one that is expected, types of columns included."""
    assert {"exchanges", "conversations", "findings"} <= found.keys()
    for name, rows in found.items():
        assert rows == expected[name], name


def test_json_lines_give_the_same(spark: SparkSession, expected: Found, tmp_path: Path) -> None:
    assert (
        rmqtool("decode", "pcap", CAPTURE, "--format", "jsonl", "-o", f"{tmp_path}/log/").status
        == 0
    )
    check(tables_of(spark, tmp_path / "log"), expected)


def test_captures_give_the_same(spark: SparkSession, expected: Found) -> None:
    found = tables_of(spark, CAPTURE, reports=REPORTS)
    assert found.keys() == expected.keys()
    check(found, expected)


def test_rotated_captures_give_the_same(
    spark: SparkSession, expected: Found, tmp_path: Path
) -> None:
    assert len(rotated(CAPTURE, tmp_path, 3)) == 3
    check(tables_of(spark, tmp_path), expected)


@pytest.mark.parametrize("other", ["fault-kill-4x.pcap", "fault-slow-5x.pcap"])
def test_several_captures_give_what_one_run_gives(
    spark: SparkSession, tmp_path: Path, other: str
) -> None:
    """The first has a connection of the other one, so a task each would count it twice."""
    captures = (CAPTURE, SAMPLES / other)
    rmqtool("decode", "pcap", *captures, "--format", "parquet", "-o", tmp_path / "log")
    check(tables_of(spark, *captures), tables_of(spark, tmp_path / "log"))


def test_exchanges_are_those_of_decode(spark: SparkSession) -> None:
    from analytics.inputs.capture_source import CaptureSource
    from dissectors.rows.record import COLUMNS

    spark.dataSource.register(CaptureSource)
    found = spark.read.format("rocketmq_capture").load(str(CAPTURE)).collect()
    lines = rmqtool("decode", "pcap", CAPTURE, "--format", "jsonl").out.splitlines()
    assert len(found) == len(lines) > 100
    for row, line in zip(found, lines, strict=True):
        decoded = json.loads(line)
        for column in COLUMNS:
            value = row[column.name]
            if column.type != "time":
                assert value == decoded[column.name], column.name
            elif value is not None:
                text = decoded[column.name].replace("Z", "")
                assert value.isoformat(timespec="microseconds") == text, column.name


def test_conversations_are_unknown_where_one_input_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    from analytics.inputs.source import read_inputs

    rmqtool("decode", "pcap", CAPTURE, "--format", "parquet", "-o", tmp_path / "log")
    rmqtool("decode", "pcap", CAPTURE, "-o", tmp_path / "rows.jsonl")
    names = [str(tmp_path / "log"), str(tmp_path / "rows.jsonl")]
    tables = read_inputs(spark, inputs_of(names))
    assert tables.given.conversations is None
    assert any("rows.jsonl" in remark for remark in tables.notes)
    assert _count(tables.given, tables.given.exchanges) == 2 * 181


def test_lines_that_are_no_exchanges_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    from analytics.inputs.source import read_inputs

    rmqtool("decode", "pcap", CAPTURE, "-o", tmp_path / "rows.jsonl")
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"capture": "cut sho')
    tables = read_inputs(spark, inputs_of([str(tmp_path / "rows.jsonl")]))
    assert _count(tables.given, tables.given.exchanges) == 181
    (remark,) = tables.notes
    assert "1 lines" in remark
    assert "cut sho" in remark


HOSTILE_VALUES = (
    {"request_time": "2026-11-20T10:00:60Z", "response_time": "10:00", "latency_us": "77"},
    {"latency_us": 2**63 - 1, "opaque": 2**63, "queue_id": 1.5, "request_packet": True},
    {"latency_us": -1, "topic": 7, "findings": [1, "x", None], "end": {"a": []}, "keys": None},
    {"topic": "\u2028 \x00 '`\\ {x}", "request_time": "9999-12-31T23:59:59.999999Z"},
    {"topic": "x", "request_time": "0001-01-01T00:00:00Z", "findings": "none"},
)
"""What lines may say of columns: values of other types, and what is hardly one."""
NO_ROWS = (
    b"[]",
    b"{nonsense",
    b'"text"',
    b'{"topic": NaN}',
    b'{"a": 1} {"b": 2}',
    b"\xff{}",
    b'{"topic": "\\ud800"}',
)


@pytest.mark.parametrize("small", [True, False])
def test_lines_with_hostile_values_are_the_same_for_both_engines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    from analytics.inputs.source import read_here, read_inputs

    good = json.loads(rmqtool("decode", "pcap", CAPTURE, "-T", "jsonl").out.splitlines()[0])
    lines = [json.dumps({**good, **values}).encode() for values in (good, *HOSTILE_VALUES)]
    bad_text = lines[0].replace(b'"answered"', b'"\xff\xc3"').replace(b": ", b":\r ")
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join((*lines, bad_text, b" ", *NO_ROWS)))
    inputs = inputs_of([str(path)])
    here = read_here(inputs)
    if not small:
        monkeypatch.setattr("analytics.inputs.inputs.SMALL_ROWS", -1)
    there = read_inputs(spark, inputs)
    (remark,) = here.notes[:1]
    assert f"{len(NO_ROWS)} lines" in remark
    assert there.notes == here.notes
    found, expected = (_rows_of(one.given, one.given.exchanges) for one in (there, here))
    assert len(expected) == len(lines) + 2
    assert found == expected


def test_a_log_without_the_newest_columns_is_read(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet

    from analytics.inputs.source import read_inputs

    rmqtool("decode", "pcap", CAPTURE, "-o", tmp_path / "new.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "new.parquet")
    old = table.drop_columns(["rtt_us", "end", "offset_msg_id"])
    pyarrow.parquet.write_table(old, tmp_path / "old.parquet")
    names = [str(tmp_path / "new.parquet"), str(tmp_path / "old.parquet")]
    given = read_inputs(spark, inputs_of(names)).given
    assert _count(given, given.exchanges) == 2 * 181
    known = given.exchanges.where("rtt_us is not null")
    assert _count(given, known.where("source like '%old%'")) == 0
    assert _count(given, known.where("source like '%new%'")) > 0


def test_what_is_no_input_is_said(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and then nothing")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "commands.jsonl").write_text('{"src": "a", "dst": "b", "flag": 0}\n')
    (tmp_path / "broken.jsonl").write_text("{nonsense\n")
    rmqtool("decode", "pcap", CAPTURE, "-o", tmp_path / "new.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "new.parquet")
    newer = table.replace_schema_metadata({"rmqtool.schema_version": "99"})
    pyarrow.parquet.write_table(newer, tmp_path / "newer.parquet")
    for name, said in (
        ("nothing-here", "no such file"),
        ("/dev/null", "is not a capture or log"),
        ("empty", "no capture"),
        ("bad.parquet", "damaged or unfinished"),
        ("other.parquet", "has no exchanges"),
        ("commands.jsonl", "has commands"),
        ("broken.jsonl", "not a JSON object"),
        ("newer.parquet", "newer rmqtool"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            inputs_of([str(tmp_path / name)])
        assert "\n" not in caught.value.message  # the hint is shown once


def test_a_log_that_lost_a_part_is_said(tmp_path: Path) -> None:
    rmqtool("decode", "pcap", CAPTURE, "--format", "parquet", "-o", tmp_path / "log")
    part = tmp_path / "log" / "exchanges" / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"part-00000\.parquet is a damaged"):
        inputs_of([str(tmp_path / "log")])
    part.unlink()
    with pytest.raises(InputError, match="is missing"):
        inputs_of([str(tmp_path / "log")])


def test_two_logs_of_one_capture_are_said(tmp_path: Path) -> None:
    from analytics.inputs.source import read_here

    for name in ("one", "two"):
        rmqtool("decode", "pcap", CAPTURE, "--format", "parquet", "-o", tmp_path / name)
    logs = [str(tmp_path / "one"), str(tmp_path / "two")]
    (remark,) = read_here(inputs_of(logs)).notes
    assert remark == (
        f"{logs[0]} and {logs[1]} both have {CAPTURE.name}: its exchanges are counted more than"
        " once"
    )
    assert read_here(inputs_of(logs[:1])).notes == []


def test_the_same_input_twice_is_one(tmp_path: Path) -> None:
    rmqtool("decode", "pcap", CAPTURE, "--format", "parquet", "-o", tmp_path / "log")
    (tmp_path / "link").symlink_to(tmp_path / "log")
    assert len(inputs_of([str(tmp_path / "log"), f"{tmp_path}/log/", str(tmp_path / "link")])) == 1


@pytest.mark.parametrize(
    "where",
    [
        "latency > 20ms and topic ~ '^Fault'",
        "status == unanswered or request_time < 02:46:12",
        "expert == MIDSTREAM or has unique_key and not (queue_id == 0)",
    ],
)
def test_a_filter_chooses_what_it_chooses_for_decode(spark: SparkSession, where: str) -> None:
    from analytics.inputs.filters import chosen
    from analytics.inputs.source import read_inputs

    given = read_inputs(spark, inputs_of([str(CAPTURE)])).given
    rows = chosen(given, where).exchanges.select("conversation", "opaque", "request_packet")
    lines = rmqtool(
        "decode", "pcap", CAPTURE, "--format", "jsonl", "--where", where
    ).out.splitlines()
    expected = [json.loads(line) for line in lines]
    assert 0 < len(expected) < 181
    found = given.kept.rows(rows).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted(
        (row["conversation"], row["opaque"], row["request_packet"]) for row in expected
    )


def test_times_choose_what_they_choose_for_decode(spark: SparkSession) -> None:
    from analytics.inputs.filters import chosen
    from analytics.inputs.source import read_inputs
    from dissectors.times import moment_of

    given = read_inputs(spark, inputs_of([str(CAPTURE)])).given
    found = chosen(given, "", moment_of("02:46:15"), moment_of("2026-11-21T02:46:20"))
    window = ("--since", "02:46:15", "--until", "2026-11-21T02:46:20")
    lines = rmqtool("decode", "pcap", CAPTURE, "--format", "jsonl", *window).out.splitlines()
    rows = given.kept.rows
    assert rows(found.exchanges).num_rows == len(lines) > 10
    assert found.conversations is not None
    assert 0 < rows(found.conversations).num_rows < rows(given.conversations).num_rows
