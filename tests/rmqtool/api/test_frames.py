"""Frames have the documented columns with the documented types, and the rows of the decoded log."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import rmqtool
from rmqtool.api.tables.named import EXCHANGES, MESSAGES, TABLES, table_named
from tests.rmqtool.command import rmqtool as command

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
SAMPLE = SAMPLES / "consumer-lag-5x.pcap"
TIME = pyarrow.timestamp("us", tz="UTC")


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_the_documented_ones(name: str) -> None:
    documented = [column.name for column in table_named(name).columns]
    capture = rmqtool.read(SAMPLE)
    assert capture.to_arrow(name).schema.names == documented
    assert list(capture.to_pandas(name).columns) == documented


@pytest.mark.parametrize("name", TABLES)
def test_types_are_those_of_the_columns(name: str) -> None:
    import pandas  # takes long: not when tests are collected

    capture = rmqtool.read(SAMPLE)
    arrow, frame = capture.to_arrow(name), capture.to_pandas(name)
    assert len(arrow) == len(frame) > 0
    for column in table_named(name).columns:
        kind, dtype = arrow.schema.field(column.name).type, frame[column.name].dtype
        if column.type == "int":
            assert (kind, dtype) == (pyarrow.int64(), pandas.Int64Dtype())
        elif column.type == "time":
            assert (kind, str(dtype)) == (TIME, "datetime64[us, UTC]")
        elif column.type == "bool":
            assert (kind, dtype) == (pyarrow.bool_(), pandas.BooleanDtype())
        elif column.type == "string":
            assert kind == pyarrow.string()
            assert str(dtype) in ("category", "string")
    assert "category" in {str(one) for one in frame.dtypes}


@pytest.mark.parametrize(("table", "folder"), [(EXCHANGES, "exchanges"), (MESSAGES, "messages")])
def test_rows_are_those_of_the_decoded_log(table: str, folder: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert command("decode", "pcap", SAMPLE, "-o", log, "-T", "parquet").status == 0
    written = pyarrow.parquet.read_table(log / folder)
    assert rmqtool.read(SAMPLE).to_arrow(table).to_pylist() == written.to_pylist()


def test_a_filter_that_finds_nothing_gives_the_columns() -> None:
    frame = rmqtool.read(SAMPLE).to_pandas(where="latency > 1h")
    assert frame.shape == (0, len(table_named(EXCHANGES).columns))
    assert str(frame["topic"].dtype) == "category"
    assert str(frame["latency_us"].dtype) == "Int64"


def test_a_missing_value_is_one_and_lists_are_lists() -> None:
    frame = rmqtool.read(SAMPLE).to_pandas()
    unanswered = frame[frame["status"] != "answered"]
    assert len(unanswered)
    assert unanswered["latency_us"].isna().all()
    assert isinstance(frame["facts"].iloc[0], list)
    assert frame["latency_us"].max() > 1000


def test_batches_are_bounded_and_make_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.api import frames

    monkeypatch.setattr(frames, "BATCH_ROWS", 50)
    capture = rmqtool.read(SAMPLE)
    batches = list(capture.to_batches())
    assert [len(batch) for batch in batches[:-1]] == [50] * (len(batches) - 1)
    assert pyarrow.Table.from_batches(batches) == capture.to_arrow()


@pytest.mark.parametrize(
    ("library", "method", "extra"),
    [
        ("pandas", "to_pandas", "pandas"),
        ("pyarrow", "to_pandas", "pandas"),
        ("pyarrow", "to_arrow", "parquet"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    library: str, method: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library == "pyarrow":
        for name in [one for one in sys.modules if one.startswith("pyarrow")]:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(rmqtool.MissingExtraError) as caught:
        getattr(rmqtool.read(SAMPLE), method)()
    assert f"pip install 'rmqtool[{extra}]'" in str(caught.value)
    assert isinstance(caught.value, ImportError)
