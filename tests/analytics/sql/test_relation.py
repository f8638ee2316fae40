"""Relations: the text they come to, and the rows that DuckDB gives for it."""

from __future__ import annotations

import pyarrow
import pytest

from analytics.errors import ReportError
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation, RelationText

ROWS = pyarrow.table(
    {"key": ["a", "b", None, "a"], "end": [1, 2, 3, None], "group": ["x", "y", "x", "z"]}
)


def rows_of(relation: Relation, engine: LocalEngine) -> list[tuple[object, ...]]:
    found = engine.rows(relation).to_pylist()
    return sorted((tuple(row[name] for name in relation.columns) for row in found), key=repr)


def test_a_step_that_several_read_is_named() -> None:
    source = Relation(("a", "b"))
    shared = source.where("a > 1")
    both = shared.select("a").union(shared.select("b as a"))
    text = RelationText(both)
    assert list(text.inputs.values()) == [source]
    assert text.text == (
        "with step_1 as (select `a`, `b` from input_1 where a > 1)\n"
        "select `a` from (select `a` from step_1)"
        " union all select `a` from (select b as a from step_1)"
    )


def test_words_of_sql_are_columns() -> None:
    engine = LocalEngine()
    held = engine.hold(ROWS)
    found = held.where("`group` != 'y'").adding({"end": "coalesce(`end`, 0) + 1"}).without("key")
    assert rows_of(found, engine) == [("x", 2), ("x", 4), ("z", 1)]
    counted = held.grouped(("key",), {"end": "sum(`end`)", "n": "count(*)"})
    assert rows_of(counted, engine) == [("a", 1, 2), ("b", 2, 1), (None, 3, 1)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [("a", 1, 7), ("a", None, 7)]),
        ("left", [("a", 1, 7), ("a", None, 7), ("b", 2, None), (None, 3, None)]),
        ("full", [("a", 1, 7), ("a", None, 7), ("b", 2, None), ("c", None, 8), (None, 3, None)]),
        ("left semi", [("a", 1), ("a", None)]),
        ("left anti", [("b", 2), (None, 3)]),
    ],
)
def test_rows_that_belong_together(how: str, expected: list[tuple[object, ...]]) -> None:
    engine = LocalEngine()
    one = engine.hold(ROWS.select(["key", "end"]))
    two = engine.hold(pyarrow.table({"key": ["a", "c"], "more": [7, 8]}))
    assert rows_of(one.join(two, ["key"], how, small=True), engine) == expected


def test_groups_go_to_python_with_their_null() -> None:
    engine = LocalEngine()
    seen = []

    def make(rows: pyarrow.Table) -> pyarrow.Table:
        seen.append(rows.column("key").to_pylist())
        return pyarrow.table({"n": pyarrow.array([rows.num_rows], pyarrow.int64())})

    class Number:
        name, type = "n", "int"

    engine.by_group(engine.hold(ROWS), "key", make, (Number(),))
    assert sorted((key for keys in seen for key in keys), key=repr) == ["a", "a", "b", None]


def test_nothing_but_the_input_can_be_read(tmp_path: object) -> None:
    engine = LocalEngine()
    for text in (
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from ROWS",
        "select * from read_parquet('https://127.0.0.1:1/x.parquet')",
    ):
        with pytest.raises(ReportError):
            engine.rows(Relation(("a",), (text,)))
    with pytest.raises(Exception, match="lock"):
        engine._connected().execute("set lock_configuration = false")
