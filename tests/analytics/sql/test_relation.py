"""Relations: the text they come to, and the rows that DuckDB gives for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import ReportError
from analytics.sql.local import LocalEngine
from analytics.sql.relation import Relation, RelationText

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def test_the_text_has_only_the_columns_that_are_read() -> None:
    source = Relation(("a", "b", "c", "d"))
    added = source.adding({"twice": "a * 2", "text": "upper(d)"}).where("twice > 1")
    assert RelationText(added.select("b")).text == (
        "select `b` from (select `b`, `twice` from"
        " (select `b`, a * 2 as `twice` from input_1) where twice > 1)"
    )
    counted = added.grouped(("b",), {"n": "count(*)", "most": "max(c)"})
    assert RelationText(counted.select("n")).text == (
        "select `n` from (select `b`, count(*) as `n` from (select `b`, `twice` from"
        " (select `b`, a * 2 as `twice` from input_1) where twice > 1) group by `b`)"
    )
    # rows without columns do not exist in SQL
    assert RelationText(source.grouped((), {"n": "count(*)"})).text == (
        "select count(*) as `n` from input_1"
    )


def test_an_expression_that_makes_rows_is_always_read() -> None:
    engine = LocalEngine()
    held = engine.hold(pyarrow.table({"one": [1, 2], "many": [["a", "b"], ["c"]]}))
    exploded = held.select("explode(many) as each", "one")
    assert rows_of(exploded.grouped((), {"n": "count(one)"}), engine) == [(3,)]


_STEPS: Mapping[str, Callable[[Relation, Relation], Relation]] = {
    "where": lambda one, _: one.where("coalesce(`end`, 0) < 3"),
    "replace": lambda one, _: one.adding({"end": "`end` + 1"}),
    "add": lambda one, _: one.adding({"more": "coalesce(`group`, '') || '!'"}),
    "drop": lambda one, _: one.without("key"),
    "group": lambda one, _: one.grouped(("group",), {"end": "sum(`end`)", "key": "max(key)"}),
    "join": lambda one, two: one.join(two.select("key", "`end` as other_end"), ["key"], "left"),
    "anti": lambda one, two: one.join(two.where("`end` = 2"), ["key"], "left anti"),
    "full": lambda one, two: one.select("key", "end").join(
        two.select("key", "group"), ["key"], "full"
    ),
    "union": lambda one, two: one.select("key", "end", "group").union(two),
    "first": lambda one, _: one.ordered(["key", "`end`", "`group`"], 2),
    "distinct": lambda one, _: one.select("key", "group", "end").distinct(),
    "window": lambda one, _: one.adding({"end": "sum(`end`) over (partition by `group`)"}),
    "twice": lambda one, _: one.select("key", "end", "group").union(
        one.where("`group` = 'x'").select("key", "end", "group")
    ),
}


@given(st.lists(st.sampled_from(sorted(_STEPS)), max_size=6), st.sampled_from(ROWS.column_names))
def test_columns_that_are_not_read_change_no_row(names: list[str], column: str) -> None:
    engine = LocalEngine()
    whole = kept = other = engine.hold(ROWS)
    for name in names:
        if not {"key", "end", "group"} <= {*whole.columns} or (
            name in ("join", "add") and {"other_end", "more"} & {*whole.columns}
        ):
            continue
        whole = _STEPS[name](whole, other)
        kept = engine.keep(_STEPS[name](kept, other))  # has all its columns
    if column in whole.columns:
        assert rows_of(whole.select(column), engine) == rows_of(kept.select(column), engine)
    assert rows_of(whole, engine) == rows_of(kept, engine)
    engine.close()
