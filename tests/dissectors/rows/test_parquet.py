"""Exchanges as Parquet, read back by pyarrow; pandas and DuckDB are in test_decoded_log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet

from dissectors.rows.parquet import ParquetRows, exchange_table
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.times import text_of_time

from ..made_rows import record, unanswered

NAMES = [column.name for column in COLUMNS]
EVIL = "\x1b[31m=1+1\n[bold]\u202e\x9b"


def written(rows: list[ExchangeRecord], folder: Path, cut: int = 1000) -> list[dict]:  # type: ignore[type-arg]
    path = folder / "a.parquet"
    out = ParquetRows(str(path), exchange_table(), {"a": "b"})
    for start in range(0, len(rows), cut):
        out.write(rows[start : start + cut])
    out.finish()
    assert out.rows == len(rows)
    table = pyarrow.parquet.read_table(path)
    assert table.schema.metadata[b"a"] == b"b"
    assert table.schema.names == NAMES
    return table.to_pylist()


def test_values(tmp_path: Path) -> None:
    rows = [record(topic=EVIL, findings=["GAP"]), unanswered()]
    for got, row in zip(written(rows, tmp_path), rows, strict=True):
        for column in COLUMNS:
            value = getattr(row, column.name)
            if column.type == "time" and value is not None:
                assert got[column.name].isoformat(timespec="microseconds") == (
                    text_of_time(value).replace("Z", "+00:00")
                )
            else:
                assert got[column.name] == value


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 4095, 4096, 40_000])
def test_any_size_of_batch_gives_the_same_rows(tmp_path: Path, cut: int) -> None:
    count = 5000 if cut == 1 else 70_000
    rows = [record(opaque=number) for number in range(count)]
    assert [row["opaque"] for row in written(rows, tmp_path, cut)] == list(range(count))


def test_what_does_not_fit_is_clamped(tmp_path: Path) -> None:
    row = record(queue_id=2**80, topic="\ud800", request_time=2**80, keys=None)
    (got,) = written([row], tmp_path)
    assert got["queue_id"] == 2**63 - 1
    assert got["topic"] == "?"
    assert got["request_time"].year == 9999


def test_no_rows(tmp_path: Path) -> None:
    assert written([], tmp_path) == []


@pytest.mark.slow
def test_pandas_is_not_imported_and_still_works(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")

    code = (
        "import sys\n"
        "from dissectors.rows.parquet import exchange_table\n"
        "from tests.dissectors.made_rows import record\n"
        "batch = exchange_table().batch_of([record()])\n"
        "assert 'pandas' not in sys.modules\n"
        "assert batch.to_pandas().topic[0] == 'OrderTopic'\n"
        "import pandas, pyarrow\n"
        "assert pyarrow.array(pandas.Series([1, None]))[1].as_py() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
