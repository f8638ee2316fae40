"""Logs that were written before columns were added: reading them makes the columns."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import pyarrow
import pyarrow.parquet

from analytics.inputs.inputs import inputs_of
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_records
from analytics.inputs.source import Tables, read_here
from analytics.sql.local import LocalEngine
from dissectors.decode.decoded_log import read_manifest
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.record import COLUMNS, DERIVED
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.rmqtool.command import Result

Rows = list[dict[str, Any]]
_PLACE = [(name, "ascending") for name in ("conversation", "opaque", "request_time")]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with outcomes of all kinds, and sends."""
    folder = tmp_path_factory.mktemp("log") / "log"
    names = ("acl-5x", "request-timeout-5x", "push-consumer-4x")
    captures = (SAMPLES / f"{name}.pcap" for name in names)
    assert rmqtool("decode", "pcap", *captures, "-T", "parquet", "-o", folder).status == 0
    return folder / "exchanges"


@pytest.fixture(scope="module")
def older(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a program before these columns wrote it."""
    table = _older(pyarrow.parquet.read_table(log))
    path = tmp_path_factory.mktemp("older") / "older.parquet"
    pyarrow.parquet.write_table(table, path)
    return path


def _older(table: pyarrow.Table) -> pyarrow.Table:
    """Return rows as they were before these columns; the client id was among the facts."""
    facts = [
        [f"client={client}", *texts] if client is not None else texts
        for client, texts in zip(
            table.column("client_id").to_pylist(), table.column("facts").to_pylist(), strict=True
        )
    ]
    place = table.column_names.index("facts")
    with_clients = pyarrow.array(facts, table.schema.field(place).type)
    return table.set_column(place, "facts", with_clients).drop_columns([*DERIVED])


def _derived(table: pyarrow.Table) -> Rows:
    assert {*DERIVED} <= {*table.column_names}
    wanted = table.sort_by(_PLACE).select([*DERIVED])
    rows = wanted.to_pylist()
    return [{**row, "key_time": _plain(row["key_time"])} for row in rows]


def _plain(moment: Any) -> object:
    return None if moment is None else moment.replace(tzinfo=None)


@pytest.fixture(scope="module")
def expected(log: Path) -> Rows:
    rows = _derived(pyarrow.parquet.read_table(log))
    assert len({row["outcome_class"] for row in rows}) > 3
    assert len({row["client_id"] for row in rows}) > 3
    assert 10 < sum(row["key_time"] is not None for row in rows) < len(rows)
    return rows


def _table(tables: Tables) -> pyarrow.Table:
    return tables.given.kept.rows(tables.given.exchanges)


def test_rows_in_this_process(older: Path, expected: Rows) -> None:
    (given,) = inputs_of([str(older)])
    assert _derived(_table(read_here([given]))) == expected
    rows = [row for batch in exchange_rows(given) for row in batch]
    rows.sort(key=lambda row: (row.conversation, row.opaque, row.request_time or 0))
    assert [row.outcome_class for row in rows] == [one["outcome_class"] for one in expected]
    assert [row.client_id for row in rows] == [one["client_id"] for one in expected]
    assert [row.original_topic for row in rows] == [one["original_topic"] for one in expected]
    assert sum(row.key_time is not None for row in rows) == sum(
        one["key_time"] is not None for one in expected
    )


@pytest.fixture
def mixed(log: Path, older: Path) -> list[str]:
    """Files of a log that an older program began."""
    return [str(older), *map(str, log.glob("*.parquet"))]


def _twice(rows: Rows) -> Rows:
    return [row for row in rows for _ in range(2)]


def test_files_that_duckdb_reads(mixed: list[str], expected: Rows) -> None:
    engine = LocalEngine(mixed, small=False)
    relation = engine.parquet(mixed, COLUMNS, "older")
    assert _derived(engine.rows(relation)) == _twice(expected)
    engine.close()


def test_json_lines(log: Path, expected: Rows, tmp_path: Path) -> None:
    table = _older(pyarrow.parquet.read_table(log))
    path = tmp_path / "older.jsonl"
    with path.open("w") as out:
        for row in table.to_pylist():
            times = {name: row[name] and row[name].isoformat() for name in row if "_time" in name}
            out.write(json.dumps({**row, **times}) + "\n")
    assert _derived(_table(read_here(inputs_of([str(path)])))) == expected


@pytest.fixture(params=["parquet", "jsonl"])
def former_ends(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log whose connections end with `no_answer`, as a program before `no_response` wrote it."""
    log = tmp_path / "log"
    capture = SAMPLES / "address-refused-5x.pcap"
    assert rmqtool("decode", "pcap", capture, "-T", request.param, "-o", f"{log}/").status == 0
    path = log / f"conversations.{request.param}"
    if request.param == "jsonl":
        rows = [{**json.loads(line), "end": "no_answer"} for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return log
    table = pyarrow.parquet.read_table(path)
    former = pyarrow.array(["no_answer"] * len(table))
    written = table.set_column(table.column_names.index("end"), "end", former)
    pyarrow.parquet.write_table(written, path)
    return log


def test_ends_of_connections_have_their_current_names(former_ends: Path) -> None:
    inputs = inputs_of([str(former_ends)])
    ends = [row.end for batch in conversation_rows(inputs[0]) for row in batch]
    tables = read_here(inputs)
    connections = tables.given.conversations
    assert connections is not None
    stored = tables.given.kept.rows(connections).column("end").to_pylist()
    assert set(stored) == set(ends) == {"no_response"}
    assert connections.columns[:-1] == tuple(column.name for column in CONVERSATION_COLUMNS)


@pytest.mark.spark
def test_ends_of_connections_have_their_current_names_in_spark(
    spark: SparkSession, former_ends: Path
) -> None:
    from analytics.inputs.source import read_inputs

    tables = read_inputs(spark, inputs_of([str(former_ends)]))
    connections = tables.given.conversations
    assert connections is not None
    stored = tables.given.kept.rows(connections).column("end").to_pylist()
    assert set(stored) == {"no_response"}


@pytest.mark.spark
@pytest.mark.slow
def test_files_that_spark_reads(
    spark: SparkSession, mixed: list[str], expected: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analytics.inputs.spark_reader import SparkReader

    monkeypatch.setattr("analytics.inputs.spark_reader.is_small", lambda _: False)
    reader = SparkReader(spark, [])
    relation = reader.parquet(mixed, COLUMNS, "older")
    assert relation.rows is None
    assert _derived(reader.engine.rows(relation)) == _twice(expected)


# -- a log of the first schema, written by the program of that time -------------------------------

OLD_LOG = Path(__file__).with_name("schema-1-log.tar.xz")
"""`decode pcap samples/address-refused-5x.pcap --partition date -o log`"""


@pytest.fixture
def old_log(tmp_path: Path) -> Path:
    with tarfile.open(OLD_LOG) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "log"


def _kinds(log: Path) -> list[str]:
    (given,) = inputs_of([str(log)])
    return sorted(row.kind for batch in finding_records(given) for row in batch)


def _reports_of(log: Path, *options: str, run: Callable[..., Result] = rmqtool) -> object:
    result = run("report", "diagnosis", "quality", "latency", log, *options, "-T", "json")
    assert result.status == 0, result.err
    found = json.loads(result.out)["reports"]
    text = json.dumps(found).replace(str(log), "LOG").replace(str(SAMPLES), "samples")
    return json.loads(text)


@pytest.fixture
def same_log(tmp_path: Path) -> Path:
    """The log that this program writes of the same capture."""
    log = tmp_path / "new" / "log"
    log.parent.mkdir()
    capture = SAMPLES / "address-refused-5x.pcap"
    assert rmqtool("decode", "pcap", capture, "--partition", "date", "-o", log).status == 0
    return log


def test_a_partitioned_log_of_the_first_schema_keeps_its_findings(
    old_log: Path, same_log: Path
) -> None:
    assert '"expert_parts"' in (old_log / "manifest.json").read_text()
    assert _kinds(old_log) == _kinds(same_log) == ["MIDSTREAM", *["RESET"] * 13]
    assert _reports_of(old_log) == _reports_of(same_log)


def test_adding_to_a_log_of_the_first_schema_loses_nothing(old_log: Path) -> None:
    before = _kinds(old_log)
    capture = SAMPLES / "cut-short-5x.pcap"
    added = rmqtool("decode", "pcap", capture, "--partition", "date", "-o", old_log)
    assert added.status == 0, added.err
    assert _kinds(old_log) == sorted([*before, "CAPTURE_TRUNCATED", "MIDSTREAM"])
    manifest = read_manifest(old_log)
    folders = [part.file.partition("/")[0] for part in manifest.finding_parts]
    assert folders[0] == "expert"
    assert set(folders[1:]) == {"findings"}
    assert sum(part.rows for part in manifest.finding_parts) == sum(manifest.findings.values())


@pytest.mark.spark
@pytest.mark.slow
def test_spark_reads_logs_of_both_schemas(
    old_log: Path, rmqtool_here: Callable[..., Result]
) -> None:
    capture = SAMPLES / "cut-short-5x.pcap"
    assert rmqtool("decode", "pcap", capture, "--partition", "date", "-o", old_log).status == 0
    by_spark = _reports_of(old_log, "--engine", "spark", run=rmqtool_here)
    assert by_spark == _reports_of(old_log)
