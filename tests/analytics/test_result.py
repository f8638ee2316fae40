"""Tables as they are taken from Spark: sorted here, as Spark would."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from analytics.report import (
    ReportTable,
    TableColumn,
    can_be_ordered,
    column_names,
    conforming,
    in_order,
    table_columns,
)
from analytics.result import TableResult, TableRows
from analytics.schema import arrow_schema_of
from analytics.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = tuple(
    TableColumn(kind, kind, "", "") for kind in ("string", "int", "float", "bool", "time", "list")
)


def test_columns_are_read_from_text() -> None:
    found = table_columns("""
        broker string: its name: that of a route
        rate float 1/s: exchanges per second over
          the whole capture
        key int
    """)
    assert found == (
        TableColumn("broker", "string", "", "its name: that of a route"),
        TableColumn("rate", "float", "1/s", "exchanges per second over the whole capture"),
        TableColumn("key", "int", "", ""),
    )
    assert column_names("broker -rate key") == ("broker", "-rate", "key")


VALUES: dict[str, list[object]] = {
    "string": ["b", None, "", "é", "Z", "\U0001f600", "\uffee"],
    "int": [2, None, -1, 2, 10, 0, None],
    "float": [0.5, None, -0.5, 1e300, 0.5, 2.0, None],
    "bool": [True, None, False, True, False, None, True],
    "time": [None, *(datetime(2026, 1, day, tzinfo=UTC) for day in (3, 1, 2, 3, 1, 9))],
    "list": [["b"], None, [], ["a", "b"], ["a"], ["c"], ["b", "a"]],
}


@pytest.mark.parametrize(
    "order",
    [
        ("bool", "-int", "string"),
        ("-bool", "float", "-string"),
        ("-time", "-float", "int"),
        ("-string",),
    ],
)
def test_rows_are_sorted_here_as_spark_sorts_them(
    spark: SparkSession, order: tuple[str, ...]
) -> None:
    import pyarrow

    table = ReportTable("t", "T", "", COLUMNS, order)
    rows = pyarrow.table(VALUES, schema=arrow_schema_of(COLUMNS))
    engine = SparkEngine(spark)
    sorted_by_spark = engine.rows(conforming(engine.given(engine.frame(engine.hold(rows))), table))
    assert can_be_ordered(table)
    assert in_order(rows, table).to_pylist() == sorted_by_spark.to_pylist()


def test_lists_are_sorted_by_spark_alone() -> None:
    assert not can_be_ordered(ReportTable("t", "T", "", COLUMNS, ("int", "-list")))


def test_rows_of_a_table_are_a_sequence() -> None:
    import pyarrow

    table = ReportTable("t", "T", "", COLUMNS)
    rows = pyarrow.table(VALUES, schema=arrow_schema_of(COLUMNS))
    found, expected = TableRows(TableResult(table, rows)), rows.to_pylist()
    assert list(found) == expected
    assert len(found) == len(expected)
    assert [found[0], found[-1]] == [expected[0], expected[-1]]
    for part in (slice(2), slice(3, None), slice(None, None, -2), slice(5, 5), slice(99, 100)):
        assert found[part] == expected[part]
    with pytest.raises(IndexError):
        found[len(expected)]
    assert not TableRows(TableResult(table, rows.slice(0, 0)))
