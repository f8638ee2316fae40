"""Files of rows as Arrow tables: of other programs, too."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from analytics.inputs import rows
from analytics.inputs.inputs import InputError
from analytics.inputs.rows_here import json_lines_here, parquet_here
from dissectors.rows.record import COLUMNS


def test_values_of_another_type_are_absent_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    time = datetime(2026, 11, 20, 10, tzinfo=UTC)
    given = {
        "queue_id": pyarrow.array([1.0, float("nan")]),
        "latency_us": pyarrow.array([1.0, None]),
        "opaque": pyarrow.array(["x", "y"]),
        "topic": pyarrow.array([["Orders"], []]),
        # nanoseconds that are no whole microseconds
        "request_time": pyarrow.array([int(time.timestamp()) * 10**9 + 7, None]).cast(
            pyarrow.timestamp("ns", tz="UTC")
        ),
    }
    pyarrow.parquet.write_table(pyarrow.table(given), path)
    found = parquet_here([str(path)], COLUMNS, "log").select([*given, "source"]).to_pylist()
    others = {"queue_id": None, "opaque": None, "topic": None, "source": "log"}
    assert found == [
        {"latency_us": 1, "request_time": time, **others},
        {"latency_us": None, "request_time": None, **others},
    ]


def test_a_column_that_expands_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FREE_BYTES", 1 << 20)
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"topic": pyarrow.array(["T" * 10_000] * 5_000)})
    pyarrow.parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match="column topic expands to 5"):
        parquet_here([str(path)], COLUMNS, "log")


def test_invalid_lines_are_counted_and_the_first_is_an_example(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"topic":"Orders"}\nfirst\n' + "other\n" * 10_000)
    table, broken, first = json_lines_here([str(path)], COLUMNS, "log")
    assert (table.num_rows, broken, first) == (1, 10_001, "first")
