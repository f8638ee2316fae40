"""The local engine: what does not fit into memory goes to a private folder, for its time."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import duckdb
import pyarrow
import pytest

from analytics.errors import ReportError
from analytics.report import TableColumn
from analytics.sql import local
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation

ROWS = 1_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def on_machine(monkeypatch: pytest.MonkeyPatch, threads: int, memory: str) -> None:
    """Let DuckDB see a machine of some size."""
    connect = duckdb.connect

    def connected(database: str) -> duckdb.DuckDBPyConnection:
        connection = connect(database)
        connection.execute(f"set threads = {threads}; set memory_limit = '{memory}'")
        return connection

    monkeypatch.setattr(duckdb, "connect", connected)


def engine_with_rows() -> tuple[LocalEngine, Relation]:
    engine = LocalEngine(small=False)
    held = engine.hold(pyarrow.table({"number": range(ROWS)}))
    # no column can be left out, and the rows are far from sorted
    mixed = held.adding({"mixed": "xxhash64(number)", "text": "concat('x', number, number)"})
    return engine, mixed


@pytest.mark.parametrize(
    ("threads", "memory", "of_thread"),
    [(8, "32MiB", local.MEMORY), (2, "8GiB", 24)],
    ids=["little memory", "many rows"],
)
def test_rows_beyond_the_memory_are_sorted_in_a_private_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, threads: int, memory: str, of_thread: int
) -> None:
    on_machine(monkeypatch, threads, memory)
    monkeypatch.setattr(local, "MEMORY", of_thread)
    engine, mixed = engine_with_rows()
    seen, used, last = 0, 0, -1
    for batch in engine.batches(mixed.sorted_by(["mixed"])):
        if not seen:
            (made,) = folder.iterdir()
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
            used = sum(file.stat().st_size for file in made.rglob("*"))
        values = [int(value or 0) for value in batch.column("mixed").to_pylist()]
        assert values == sorted(values)
        assert last <= values[0]
        seen, last = seen + batch.num_rows, values[-1]
    assert seen == ROWS
    assert used > 10_000_000
    engine.close()
    assert not list(folder.iterdir())


def test_the_folder_is_removed_with_the_engine(folder: Path) -> None:
    engine, mixed = engine_with_rows()
    assert engine.rows(mixed.grouped((), {"rows": "count(*)"})).column(0)[0].as_py() == ROWS
    assert list(folder.iterdir())
    del engine
    assert not list(folder.iterdir())


def test_a_small_input_needs_no_folder(folder: Path) -> None:
    engine = LocalEngine()
    assert engine.rows(engine.hold(pyarrow.table({"a": [1]})).sorted_by(["a"])).num_rows == 1
    assert not list(folder.iterdir())


def test_too_little_memory_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine(monkeypatch, 1, "1MiB")
    engine, mixed = engine_with_rows()
    with pytest.raises(ReportError, match="too little memory"):
        engine.rows(mixed.grouped(("mixed", "text"), {"rows": "count(*)"}))
    assert list(folder.iterdir())


@pytest.mark.parametrize("how", ["rows", "batches"])
def test_a_query_that_cannot_spill_gets_more_memory(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_machine(monkeypatch, 2, "2GiB")
    monkeypatch.setattr(local, "MEMORY", 8)
    engine, mixed = engine_with_rows()
    lists = mixed.grouped((), {"numbers": "list(number)"})
    limits = mixed.grouped((), {"memory": "max(current_setting('memory_limit'))"})
    assert engine.rows(limits).to_pylist() == [{"memory": "16.0 MiB"}]
    tables = [engine.rows(lists)] if how == "rows" else list(engine.batches(lists))
    assert len(tables[0].column("numbers")[0]) == ROWS
    assert engine.rows(limits).to_pylist() == [{"memory": "16.0 MiB"}]
    assert list(folder.iterdir())


@pytest.mark.parametrize("how", ["keep", "by_group"])
def test_a_full_disk_is_said(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, rows: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local, "MOST_HELD", 0)
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    engine, mixed = engine_with_rows()
    parts = mixed.adding({"part": "number % 5"})
    columns = [TableColumn("part", "int", "", "")]
    with pytest.raises(ReportError, match="the disk for temporary files is full") as raised:
        _ = (
            engine.keep(mixed)
            if how == "keep"
            else engine.by_group(parts, "part", made_of, columns)
        )
    assert "TMPDIR" in str(raised.value.hint)
    engine.close()
    assert not list(folder.iterdir())


def made_of(rows: pyarrow.Table) -> pyarrow.Table:
    """Return the rows of some groups."""
    return rows.select(["part"])


@pytest.mark.parametrize("most", [0, local.MOST_HELD], ids=["in files", "in memory"])
def test_what_is_kept_is_equal_in_a_file_and_in_memory(
    most: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MOST_HELD", most)
    monkeypatch.setattr(local, "_ROW_GROUP", 8192)
    engine = LocalEngine(small=False)
    numbers = engine.hold(pyarrow.table({"number": range(100_000)}))
    columns = {
        "text": "if(number % 3 = 0, null, concat('x', number))",
        "time": "timestamp_micros(number)",
        "whole": "number * 10000000000",
        "list": "array(concat('a', number))",
        "place": "named_struct('a', number, 'b', null)",
        "nothing": "null",
        "part": "number % 5",
    }
    mixed = numbers.adding(columns)
    kept = engine.keep(mixed)
    assert (kept.rows is None) == (most == 0)
    found, wanted = (engine.rows(some).sort_by("number") for some in (kept, mixed))
    assert found.schema.names == wanted.schema.names
    assert found.to_pylist() == wanted.to_pylist()
    assert not engine.rows(kept.where("nothing = 'a' or place.b = 'a'")).num_rows
    by_group = engine.by_group(kept, "part", made_of, [TableColumn("part", "int", "", "")])
    counts = by_group.grouped(("part",), {"rows": "count(*)"})
    assert engine.rows(counts).column("rows").to_pylist() == [20_000] * 5
    none = engine.keep(kept.where("false"))
    assert engine.rows(none).num_rows == 0
    files = list(folder.rglob("*.parquet"))
    assert len(files) == (2 if most == 0 else 0)
    for relation in (kept, by_group, none):
        engine.drop(relation)
    assert not list(folder.rglob("*.parquet"))
