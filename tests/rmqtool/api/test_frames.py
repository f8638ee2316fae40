"""Frames have the documented columns with the documented types, and the rows of the decoded log."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import rmqtool
from rmqtool.api.frames import FRAME_NAMES
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
    shown = [FRAME_NAMES.get(column, column) for column in documented]
    frame = capture.to_pandas(name)
    assert [column for column in frame.columns if column != "latency"] == shown


@pytest.mark.parametrize("name", TABLES)
def test_types_are_those_of_the_columns(name: str) -> None:
    import pandas  # takes long: not when tests are collected

    capture = rmqtool.read(SAMPLE)
    arrow, frame = capture.to_arrow(name), capture.to_pandas(name)
    assert len(arrow) == len(frame) > 0
    for column in table_named(name).columns:
        kind = arrow.schema.field(column.name).type
        dtype = frame[FRAME_NAMES.get(column.name, column.name)].dtype
        if column.type == "int":
            assert (kind, dtype) == (pyarrow.int64(), pandas.Int64Dtype())
        elif column.type == "time":
            assert (kind, str(dtype)) == (TIME, "datetime64[us, UTC]")
        elif column.type == "bool":
            assert (kind, dtype) == (pyarrow.bool_(), pandas.BooleanDtype())
        elif column.type == "string":
            assert kind == pyarrow.string()
            assert str(dtype) == "string"


def test_texts_that_repeat_are_categorical_where_asked_for() -> None:
    capture = rmqtool.read(SAMPLE)
    plain, saving = capture.to_pandas(), capture.to_pandas(categories=True)
    assert str(saving["topic"].dtype) == "category"
    assert list(saving["topic"].dropna()) == list(plain["topic"].dropna())
    assert plain["topic"].str.contains("Lag").any()
    assert plain["topic"].fillna("none").notna().all()


@pytest.mark.parametrize("name", TABLES)
def test_no_column_hides_behind_an_attribute(name: str) -> None:
    import pandas

    columns = rmqtool.read(SAMPLE).to_pandas(name).columns
    assert [column for column in columns if hasattr(pandas.DataFrame, column)] == []


def test_no_column_of_problems_hides_behind_an_attribute() -> None:
    import pandas

    problems = rmqtool.read(SAMPLES / "push-retry-dlq-5x.pcap").problems()
    frame = problems.to_pandas()
    assert [column for column in frame.columns if hasattr(pandas.DataFrame, column)] == []
    assert frame.occurrences.to_list() == [one.count for one in problems] == [8]
    assert frame.wireshark_filter.to_list() == [one.filter for one in problems]
    assert frame.impact.str.contains("8 messages of group").all()


@pytest.mark.parametrize("name", ["topic", "latency_us", "findings", "request_time", "latency"])
def test_a_column_that_is_named_twice_is_there_once(name: str) -> None:
    capture = rmqtool.read(SAMPLE)
    once, twice = capture.to_pandas(columns=[name]), capture.to_pandas(columns=[name, name])
    assert once.equals(twice)
    assert capture.to_arrow(columns=[name, name]).schema.names == [name]


def test_a_latency_by_its_short_name_is_a_timedelta() -> None:
    capture = rmqtool.read(SAMPLE)
    expected = capture.to_pandas()["latency"]
    for columns in (["latency"], ["latency", "latency_us"], ["latency_us", "latency"]):
        frame = capture.to_pandas(columns=columns)
        assert list(frame.columns) == columns
        assert frame["latency"].equals(expected)


def test_a_latency_is_a_timedelta_too() -> None:
    frame = rmqtool.read(SAMPLE).to_pandas(where="status = answered")
    assert (
        (frame["latency"].dt.total_seconds() * 1e6)
        .round()
        .astype("Int64")
        .equals(frame["latency_us"])
    )


def test_problems_are_a_frame_and_a_table_of_a_notebook() -> None:
    problems = rmqtool.read(SAMPLES / "fault-kill-5x.pcap").problems()
    frame = problems.to_pandas()
    assert list(frame["rule"]) == [one.rule for one in problems]
    assert frame["packets"].iloc[0] == [63]
    assert str(frame["first_time"].dt.tz) == "UTC"
    html = problems._repr_html_()
    assert html.count("<tr>") == len(problems) + 1
    assert "broker-b" in html
    assert problems[:0] == []
    assert rmqtool.read(SAMPLE).problems(rules=["broker-gone"]).to_pandas().empty


def test_traces_are_tables_of_a_notebook() -> None:
    traces = rmqtool.read(SAMPLES / "stored-twice-5x.pcap").trace("key-0")
    assert len(traces) == 1
    assert traces._repr_html_().count("<tr>") == len(traces[0].steps) + 1


def test_types_of_rows_are_public() -> None:
    capture = rmqtool.read(SAMPLE)
    assert isinstance(next(capture.exchanges()), rmqtool.ExchangeRecord)
    assert isinstance(next(capture.messages()), rmqtool.MessageRecord)
    assert isinstance(next(capture.connections()), rmqtool.ConversationRecord)
    assert isinstance(next(capture.commands()), rmqtool.CommandRow)
    for name in rmqtool.__all__:
        assert getattr(rmqtool, name) is not None


@pytest.mark.parametrize(("table", "folder"), [(EXCHANGES, "exchanges"), (MESSAGES, "messages")])
def test_rows_are_those_of_the_decoded_log(table: str, folder: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert command("decode", "pcap", SAMPLE, "-o", log, "-T", "parquet").status == 0
    written = pyarrow.parquet.read_table(log / folder)
    assert rmqtool.read(SAMPLE).to_arrow(table).to_pylist() == written.to_pylist()


def test_a_filter_that_finds_nothing_gives_the_columns() -> None:
    frame = rmqtool.read(SAMPLE).to_pandas(where="latency > 1h")
    assert frame.shape == (0, len(table_named(EXCHANGES).columns) + 1)
    assert str(frame["topic"].dtype) == "string"
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


def test_a_column_that_is_named_twice_comes_once() -> None:
    capture = rmqtool.read(SAMPLES / "send-sync-4x.pcap")
    frame = capture.to_pandas(columns=["topic", "opaque", "topic"])
    assert list(frame.columns) == ["topic", "opaque"]
