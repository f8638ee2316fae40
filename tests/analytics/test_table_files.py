"""CSV of report tables: no formula, nothing that steers a terminal, by both ways the same bytes."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.report import conforming
from analytics.result import TableResult
from analytics.spark.engine import SparkEngine
from analytics.spark.writing import write_csv
from analytics.table_files import csv_of_table
from tests.analytics import fakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NASTY = (
    *fakes.EVIL,
    *("+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a,b", 'a"b', '"', "'", "a\nb", "a\r\nb", "\\"),
    *("\\n", "\\,", '\\"', "a" * 1000 + " ", '"a","b"', "null", "", " ", " a ", "#comment"),
    *("a;b", "\x01", "\x00", "ü", "漢字", "\U0001f600", "a" * 40_000),
)


def _written(spark: SparkSession, table: TableResult, folder: Path) -> bytes:
    engine = SparkEngine(spark)
    relation = conforming(engine.hold(table.data), table.table)
    write_csv(engine.frame(relation), str(folder), "error")
    (file,) = folder.glob("part-*.csv")
    return file.read_bytes()


@pytest.mark.parametrize("texts", [NASTY[:16], NASTY[16:]])
def test_a_job_writes_the_bytes_of_a_report(
    spark: SparkSession, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    table = fakes.brokers(texts)
    written = _written(spark, table, tmp_path / "a")
    assert sorted(written.splitlines()) == sorted(csv_of_table(table).splitlines())
    text = written.decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == len(text.splitlines()) == len(texts) + 2
    assert len({len(row) for row in rows}) == 1
    texts = [cell for row in rows for cell in (row[0], row[-1])]
    assert not [text for text in texts if text.startswith(("=", "+", "-", "@"))]


def test_a_table_without_rows_has_a_head(spark: SparkSession, tmp_path: Path) -> None:
    table = fakes.brokers()
    empty = TableResult(table.table, table.data.slice(0, 0))
    assert _written(spark, empty, tmp_path / "a") == csv_of_table(empty)
    assert csv_of_table(empty).startswith(b"broker,exchanges,")
