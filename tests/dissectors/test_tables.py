"""Exchanges as JSON lines, CSV and Parquet: every value comes back, whatever the network sent."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.record import COLUMNS, ExchangeRecord
from dissectors.tables import csv_header, csv_of, jsonl_of, safe_cell
from dissectors.times import moment_of, text_of_time

from .rows import START, record, unanswered

NAMES = [column.name for column in COLUMNS]
EVIL = "\x1b[31m=1+1\n[bold]\u202e\x9b"


def csv_rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((csv_header() + data).decode(), newline="")))


def test_columns_are_the_fields_of_the_record() -> None:
    assert tuple(NAMES) == ExchangeRecord.__struct_fields__


def test_jsonl_has_the_columns_in_order_and_exact_values() -> None:
    rows = [record(topic=EVIL, expert=["GAP", "BAD_BODY"]), unanswered()]
    lines = jsonl_of(rows).decode().split("\n")
    assert lines.pop() == ""
    for line, row in zip(lines, rows, strict=True):
        decoded = json.loads(line)
        assert list(decoded) == NAMES
        for column in COLUMNS:
            value = getattr(row, column.name)
            if column.type == "time" and value is not None:
                value = text_of_time(value)
            assert decoded[column.name] == value
    assert json.loads(lines[0])["request_time"] == "2026-11-20T10:00:00.123456Z"


def test_jsonl_does_not_change_the_records() -> None:
    row = record()
    jsonl_of([row])
    assert row == record()


def test_jsonl_survives_half_a_surrogate_pair_and_huge_numbers() -> None:
    decoded = json.loads(jsonl_of([record(topic="a\ud800b", queue_id=2**80)]))
    assert decoded["topic"] == "a?b"
    assert decoded["queue_id"] == 2**80


def test_csv_is_one_line_a_record_and_safe_to_open() -> None:
    data = csv_of([record(topic=EVIL, keys='=cmd|"x"', remark="@a,b"), unanswered()])
    assert data.count(b"\n") == 2
    first, second = csv_rows(data)
    assert list(first) == NAMES
    assert first["topic"] == r"\x1b[31m=1+1\n[bold]\u202e\x9b"
    assert first["keys"] == '\'=cmd|"x"'
    assert first["remark"] == "'@a,b"
    assert first["request_time"] == "2026-11-20T10:00:00.123456Z"
    assert first["queue_id"] == "3"
    assert second["latency_us"] == ""
    assert second["status"] == "unanswered"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_never_a_formula(start: str) -> None:
    assert safe_cell(start + "1").startswith("'")


def test_csv_writes_negative_numbers_as_numbers() -> None:
    assert csv_rows(csv_of([record(response_code=-1006)]))[0]["response_code"] == "-1006"


def test_csv_lists_are_separated_by_blanks() -> None:
    assert csv_rows(csv_of([record(expert=["GAP", "BAD_BODY"])]))[0]["expert"] == "GAP BAD_BODY"


_TEXT = st.none() | st.text(max_size=20)
_INT = st.none() | st.integers(-(2**70), 2**70)
_RECORDS = st.builds(
    lambda **changes: record(**changes),
    topic=_TEXT,
    keys=_TEXT,
    remark=st.none() | st.text(st.characters(), max_size=20),
    queue_id=_INT,
    queue_offset=_INT,
    request_time=st.none() | st.integers(0, 2**66),
    response_time=st.none() | st.integers(START, START + 10**9),
    expert=st.lists(st.sampled_from(["GAP", "BAD_BODY"])),
)


@given(st.lists(_RECORDS, max_size=5))
def test_any_record_can_be_written_as_text(rows: list[ExchangeRecord]) -> None:
    lines = jsonl_of(rows).decode().split("\n")[:-1]
    assert [json.loads(line)["keys"] for line in lines] == [row.keys for row in rows]
    cells = csv_rows(csv_of(rows))
    assert len(cells) == len(rows)
    for row, cell in zip(rows, cells, strict=True):
        assert (row.queue_id is None) == (cell["queue_id"] == "")
        assert cell["topic"].isprintable()


def test_times_come_back() -> None:
    for ns in (0, START, START + 999_999_000, 4_102_444_800_000_000_000):
        moment = moment_of(text_of_time(ns))
        assert moment is not None
        assert moment.ns == ns
        assert moment.has_date


@pytest.mark.parametrize("text", ["", "x", "10", "25:00", "2026-13-01", "2026-11-20T", "10:00Z"])
def test_what_is_no_time(text: str) -> None:
    assert moment_of(text) is None


def test_times_that_no_calendar_has_are_shown_as_its_ends() -> None:
    assert text_of_time(2**80).startswith("9999-12-31T23:59:59")
    assert text_of_time(-1).startswith("1970-01-01T00:00:00")


class TestParquet:
    """One file, read back by pyarrow; pandas and DuckDB in test_decoded_log."""

    def written(self, rows: list[ExchangeRecord], folder: Path, cut: int = 1000) -> list[dict]:  # type: ignore[type-arg]
        pytest.importorskip("pyarrow")
        import pyarrow.parquet

        from dissectors.parquet import ParquetRows, exchange_table

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

    def test_values(self, tmp_path: Path) -> None:
        rows = [record(topic=EVIL, expert=["GAP"]), unanswered()]
        for got, row in zip(self.written(rows, tmp_path), rows, strict=True):
            for column in COLUMNS:
                value = getattr(row, column.name)
                if column.type == "time" and value is not None:
                    assert got[column.name].isoformat(timespec="microseconds") == (
                        text_of_time(value).replace("Z", "+00:00")
                    )
                else:
                    assert got[column.name] == value

    @pytest.mark.parametrize("cut", [1, 4095, 4096, 40_000])
    def test_any_size_of_batch_gives_the_same_rows(self, tmp_path: Path, cut: int) -> None:
        count = 5000 if cut == 1 else 70_000
        rows = [record(opaque=number) for number in range(count)]
        assert [row["opaque"] for row in self.written(rows, tmp_path, cut)] == list(range(count))

    def test_what_does_not_fit_is_clamped(self, tmp_path: Path) -> None:
        row = record(queue_id=2**80, topic="\ud800", request_time=2**80, keys=None)
        (got,) = self.written([row], tmp_path)
        assert got["queue_id"] == 2**63 - 1
        assert got["topic"] == "?"
        assert got["request_time"].year == 9999

    def test_no_rows(self, tmp_path: Path) -> None:
        assert self.written([], tmp_path) == []

    def test_pandas_is_not_imported_and_still_works(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")
        import subprocess
        import sys

        code = (
            "import sys\n"
            "from dissectors.parquet import exchange_table\n"
            "from tests.dissectors.rows import record\n"
            "batch = exchange_table().batch_of([record()])\n"
            "assert 'pandas' not in sys.modules\n"
            "assert batch.to_pandas().topic[0] == 'OrderTopic'\n"
            "import pandas, pyarrow\n"
            "assert pyarrow.array(pandas.Series([1, None]))[1].as_py() is None\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def test_records_can_be_read_back_from_json_lines_but_for_the_times() -> None:
    line = jsonl_of([record()])
    timeless = msgspec.json.decode(line) | {"request_time": None, "response_time": None}
    back = msgspec.convert(timeless, ExchangeRecord)
    assert back == record(request_time=None, response_time=None)
