"""Tables as DataFrames of Spark: the rows that Arrow has."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rmqtool

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "consumer-lag-5x.pcap"


@pytest.mark.parametrize(
    ("table", "where"),
    [("exchanges", "latency > 1ms"), ("connections", ""), ("messages", "event = delivered")],
)
def test_rows_are_those_of_arrow(table: str, where: str, spark: SparkSession) -> None:
    capture = rmqtool.read(SAMPLE)
    frame = capture.to_spark(spark, table, where)
    expected = capture.to_arrow(table, where)
    assert frame.columns == expected.schema.names
    found = frame.toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected.to_pylist()))
    assert found


@pytest.mark.parametrize(
    ("table", "where"),
    [("exchanges", "latency > 1ms"), ("connections", ""), ("messages", ""), ("findings", "")],
)
def test_rows_of_a_decoded_log_are_those_of_arrow(
    table: str, where: str, spark: SparkSession, tmp_path: Path
) -> None:
    log = rmqtool.read(rmqtool.read(SAMPLE).to_parquet(tmp_path / "log"))
    frame, expected = log.to_spark(spark, table, where), log.to_arrow(table, where)
    assert frame.columns == expected.schema.names
    found = frame.toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected.to_pylist()))


def test_names_are_those_that_were_given(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLE.parent)
    frame = rmqtool.read(SAMPLE.name).to_spark(spark, where=f"capture = '{SAMPLE.name}'")
    assert {row["capture"] for row in frame.select("capture").distinct().collect()} == {SAMPLE.name}


def test_bytes_and_windows_work_too(spark: SparkSession) -> None:
    capture = rmqtool.read(SAMPLE.read_bytes())
    assert capture.to_spark(spark).count() == len(capture.to_arrow())
    files = rmqtool.read(SAMPLE)
    day = {"since": "2020-01-01", "until": "2020-01-02"}
    assert files.to_spark(spark, **day).count() == 0


def test_a_wrong_filter_is_said_at_once(spark: SparkSession) -> None:
    with pytest.raises(rmqtool.FilterError):
        rmqtool.read(SAMPLE).to_spark(spark, where="nothing = 1")
