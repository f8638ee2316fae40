"""Columns as bytes are what pyarrow makes of the same values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("pyarrow")

import pyarrow
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.rows.column_bytes import (
    LAST_MICROSECOND,
    ColumnWriter,
    FlagWriter,
    ListWriter,
    NumberWriter,
    TextWriter,
    writer_of,
)
from dissectors.rows.parquet import record_batch_of

numbers = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
texts = st.none() | st.text(max_size=12)
lists = st.none() | st.lists(st.text(max_size=5), max_size=3)


def array_of(writer: ColumnWriter, type_: pyarrow.DataType) -> pyarrow.Array:  # type: ignore[type-arg]
    """Return what a writer has, as an array."""
    batch = record_batch_of([writer.take()], pyarrow.schema([("a", type_)]))
    batch.validate(full=True)
    return batch.column(0)


def check(writer: ColumnWriter, values: list[object], type_: pyarrow.DataType) -> None:
    """Compare what a writer gives, twice: it begins anew each time."""
    for some in (values, values[::-1]):
        for value in some:
            writer.add_value(value)
        assert array_of(writer, type_).equals(pyarrow.array(some, type_))
    assert array_of(writer, type_).equals(pyarrow.array([], type_))


@given(st.lists(numbers, max_size=40))
@example([None] * 8)
@example([*range(8), None])
def test_numbers(values: list[object]) -> None:
    check(NumberWriter(), values, pyarrow.int64())


@given(st.lists(texts, max_size=40))
@example(["a" * 100, "", None, "ü" * 70])
def test_texts(values: list[object]) -> None:
    check(TextWriter(), values, pyarrow.string())


@given(st.lists(st.none() | st.booleans(), max_size=40))
@example([True] * 8)
@example([None, True, False, *[True] * 9])
def test_flags(values: list[object]) -> None:
    check(FlagWriter(), values, pyarrow.bool_())


@pytest.mark.parametrize("kind", ["string", "int", "time", "bool", "list"])
@given(st.lists(st.tuples(st.none() | st.integers(0, 99), st.integers(0, 30)), max_size=8))
@example([(None, 3), (7, 8), (None, 13), (8, 40)])
def test_a_value_of_several_rows(kind: str, runs: list[tuple[int | None, int]]) -> None:
    made: dict[str, Callable[[int], object]] = {
        "string": lambda number: "ü" * (number % 3),
        "bool": lambda number: number % 2 == 0,
        "list": lambda number: ["a"] * (number % 3),
    }
    make = made.get(kind, lambda number: number * 1000)
    together, one_by_one = writer_of(kind), writer_of(kind)
    for number, count in runs:
        value = None if number is None else make(number)
        together.add_times(value, count)
        for _ in range(count):
            one_by_one.add_value(value)
    assert together.take() == one_by_one.take()


@given(st.lists(lists, max_size=20))
@example([[], None, ["a"], []])
def test_lists(values: list[object]) -> None:
    check(ListWriter(), values, pyarrow.list_(pyarrow.string()))


@given(st.lists(st.none() | st.integers(0, 1 << 62), max_size=20))
def test_times_are_microseconds(values: list[int | None]) -> None:
    writer = NumberWriter(1000, LAST_MICROSECOND)
    for value in values:
        writer.add_value(value)
    type_ = pyarrow.timestamp("us", tz="UTC")
    cut = [None if value is None else value // 1000 for value in values]
    assert array_of(writer, type_).equals(pyarrow.array(cut, type_))


def test_what_does_not_fit_is_clamped_or_replaced() -> None:
    number, time = NumberWriter(), NumberWriter(1000, LAST_MICROSECOND)
    for value in (1 << 80, -(1 << 80)):
        number.add_value(value)
        time.add_value(value)
    text = TextWriter()
    text.add_value("\ud800a")
    assert array_of(number, pyarrow.int64()).to_pylist() == [(1 << 63) - 1, 1 - (1 << 63)]
    assert array_of(time, pyarrow.int64()).to_pylist() == [LAST_MICROSECOND, -LAST_MICROSECOND]
    assert array_of(text, pyarrow.string()).to_pylist() == ["?a"]


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_range_of_bytes(data: bytes, at: int, end: int) -> None:
    at, end = sorted((min(at, len(data)), min(end, len(data))))
    text = TextWriter()
    text.add_range(data, at, end)
    text.add(b"end")
    (_, ends, kept) = text.take().buffers
    assert kept == data[at:end] + b"end"
    assert ends is not None
    assert [int.from_bytes(ends[i : i + 4], "little") for i in (0, 4, 8)] == [
        0, end - at, end - at + 3,
    ]  # fmt: skip
