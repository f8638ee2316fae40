"""Spark SQL as DuckDB reads it: spelling, and functions that behave as Spark's do."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from analytics.sql.dialect import for_duckdb
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPELLED = [
    ("select 'it\\'s \\\\ `x`' as `end`", "select 'it''s \\ `x`' as `end`"),
    ("7 div 2, 3L, 2.5D, 1D / 3", "7 // 2, 3, 2.5e0, 1e0 / 3"),
    ("filter(facts, f -> startswith(f, 'a'))", "filter(facts, lambda f: starts_with(f, 'a'))"),
    ("a <=> b", "a is not distinct from b"),
    ("x as one left semi join y as two", "x as one semi join y as two"),
    ("named_struct('a', max(x, 1), 'b', c)", "{'a': max(x, 1), 'b': c}"),
    ("named_struct('a', named_struct('b', ')'), 'c', ',')", "{'a': {'b': ')'}, 'c': ','}"),
    ("select /*+ broadcast(two) */ `a`", "select  `a`"),
    ("cast(x as long)", "try_cast(x as long)"),
]
KEYS = "'', 'K', '0A0B', 'ff', 'é0A', '-1', '--', ' 1F ', 'g1', '1g'"
EXPRESSIONS = (
    "substr(s, -3)",
    "substr(s, -3, 2)",
    "substr(s, -12, 5)",
    "substr(s, 2)",
    "substring(s, 1, 2)",
    "conv(s, 16, 10)",
    "octet_length(s)",
    "length(s)",
    "trim(s)",
    "btrim(s, ' 1')",
    "substring_index(s, '1', 1)",
    "substring_index(s, '1', -1)",
    "regexp_replace(s, '[0-9]+', '…')",
    "regexp_like(s, '^[0-9A-Fa-f]+$')",
    "regexp_extract(s, '([0-9]+)', 1)",
    "contains(s, '1')",
    "cast(s as long)",
    "try_cast(s as int) + 1",
    "array_sort(array(s, 'a', 'Z'))",
    "array_position(array('a', s), s)",
    "array_contains(array('K', 'x'), s)",
    "array_join(array(s, 'z'), '|')",
    "size(split(s, '1'))",
    "get(array('a', s), 1)",
    "get(array('a', s), 2)",
    "slice(array('a', s, 'c'), 1, 2)",
    "pmod(length(s) - 3, 2)",
    "ln(cast(length(s) as double)) is null",
    "try_divide(length(s), 0)",
    "length(s) / 0",
    "length(s) / 3",
    "length(s) div 2",
    "shiftleft(1L, length(s) + 50)",
    "shiftright(4611686018427387904L, length(s))",
    "unix_micros(timestamp_micros(length(s) * 1000001L))",
    "round(length(s) / 7, 9)",
    "concat_ws('|', s, length(s), cast(null as string))",
    "s || 'x'",
    "if(s = 'K', 1, null)",
    "greatest(length(s), 2), least(null, 2)",
    "named_struct('a', s).a",
)


@pytest.mark.parametrize(("spark_sql", "expected"), SPELLED)
def test_the_same_is_spelled_otherwise(spark_sql: str, expected: str) -> None:
    assert for_duckdb(spark_sql) == expected


def test_functions_give_what_those_of_spark_give(spark: SparkSession) -> None:
    values = f"(select explode(array({KEYS}, cast(null as string))) as s)"
    differing = {}
    engine = LocalEngine()
    for expression in EXPRESSIONS:
        text = f"select s, {expression} as a, 1 as b from {values}"
        if ", least" in expression:
            text = text.replace(", least(null, 2) as a", " as a")
        found = engine.rows(Relation(("s", "a", "b"), (text,))).select(["s", "a"]).to_pylist()
        expected = [row.asDict() for row in spark.sql(text).select("s", "a").collect()]
        if sorted(map(repr, found)) != sorted(map(repr, expected)):
            differing[expression] = [
                pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]
            ]
    assert differing == {}


def test_counts_of_unknown_conditions_are_zero(spark: SparkSession) -> None:
    values = "(select explode(array(null, cast(null as int))) as x)"
    text = f"select count_if(x > 0) as a, count_if(x is null) as b from {values}"
    found = LocalEngine().rows(Relation(("a", "b"), (text,))).to_pylist()
    assert found == [{"a": 0, "b": 2}]
    assert [row.asDict() for row in spark.sql(text).collect()] == found


def test_no_progress_is_shown_on_standard_output() -> None:
    code = (
        "from analytics.sql.local import LocalEngine\n"
        "rows = LocalEngine()._connected().sql(\n"
        "    \"select current_setting('enable_progress_bar')\"\n"
        ").fetchall()\n"
        "print(rows)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"
