"""Protocol of engines, which execute relations: Spark, or DuckDB in this process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..schema import Described, arrow_schema_of
from .relation import Relation

if TYPE_CHECKING:
    import pyarrow

Rows = TypeVar("Rows", "pyarrow.Table", "pyarrow.RecordBatch")
OfGroup = Callable[["pyarrow.Table"], "pyarrow.Table"]
"""Function from all rows of one group or several, with plain or dictionary-encoded texts, to result
rows.
"""
OfBatches = Callable[[Iterable["pyarrow.RecordBatch"]], Iterator["pyarrow.RecordBatch"]]
"""Function from all rows of some groups, in any order, to result rows: it need not hold them."""
OfGroups = Callable[["pyarrow.Table", "pyarrow.Table"], "pyarrow.Table"]
"""Function from the rows of two relations with one key to result rows."""


class SqlEngine(Protocol):
    """Executes relations; reports do not depend on the implementation."""

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are distributed over tasks, which fold them."""

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""

    def hold(self, rows: pyarrow.Table) -> Relation:
        """Return rows of this process as a relation."""

    def close(self) -> None:
        """Free everything; relations lose their rows."""

    def drop(self, relation: Relation) -> None:
        """Drop the result of `keep` or `hold`."""

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return the result of `make` for the groups of rows with an equal `key`; null is a key.

        It is called with one group or several, with rows in any order, so that many small ones cost
        no more than few.
        """

    def folded(
        self, relation: Relation, key: str, fold: OfBatches, columns: Sequence[Described]
    ) -> Relation:
        """Return the result of `fold` for all rows, once or for some groups of equal `key` each."""

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return the result of `make` for each `key`, from its rows in two relations."""

    def repeated(self, relation: Relation) -> Relation:
        """Return each integer `key` that is repeated or has `wrong` set; the result is kept."""


def repeated_keys(relation: Relation) -> Relation:
    """Return each `key` that is repeated or has `wrong` set."""
    counted = relation.grouped(["key"], {"seen": "count(*)", "flawed": "bool_or(wrong)"})
    return counted.where("seen > 1 or flawed").select("key")


def made_by_group(
    batches: Iterable[pyarrow.RecordBatch], key: str, make: OfGroup
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the result of `make` for whole groups of rows, which are sorted by `key`.

    The rows of a batch and of the group that began before it are held, and no others.
    """
    import pyarrow

    held: list[pyarrow.Table] = []
    value: object = None

    def of_held(*more: pyarrow.Table) -> pyarrow.Table:
        whole = pyarrow.concat_tables([*held, *more])
        held.clear()  # `make` may free it
        return whole

    for batch in batches:
        if not batch.num_rows:
            continue
        rows = pyarrow.Table.from_batches([batch])
        start = _last_group(batch.column(key))
        first = batch.column(key)[0]
        # A group may go on from the batch before, or fill whole batches; only a new key completes
        # it.
        if start or (held and first != value):
            yield from make(of_held(rows.slice(0, start))).to_batches()
        held.append(rows.slice(start))
        value = batch.column(key)[-1]
    if held:
        yield from make(of_held()).to_batches()


def made_of_all(
    batches: Iterable[pyarrow.RecordBatch], make: OfGroup
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the result of `make` for whole groups of rows in any order; all rows are held."""
    import pyarrow

    # With texts as codes: to sort the rows by group would take more time and memory.
    held = [with_codes(batch) for batch in batches if batch.num_rows]

    def whole() -> pyarrow.Table:
        rows = pyarrow.Table.from_batches(held)
        held.clear()  # `make` may free it
        return rows

    if held:
        yield from make(whole()).to_batches()


def with_codes(rows: Rows) -> Rows:
    """Return a table or a batch with dictionary-encoded texts, which take a third of the memory."""
    import pyarrow
    import pyarrow.compute

    columns = [
        pyarrow.compute.dictionary_encode(column)
        if pyarrow.types.is_string(column.type)
        else column
        for column in rows.columns
    ]
    return type(rows).from_arrays(columns, rows.schema.names)


def with_texts(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with plain texts instead of dictionary-encoded ones."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_dictionary(field.type):
            plain = rows.column(place).cast(field.type.value_type)
            rows = rows.set_column(place, field.name, plain)
    return rows


def _last_group(keys: pyarrow.Array[Any]) -> int:
    """Return where the last group of sorted keys begins, which may go on in the next batch."""
    last = keys[-1]
    return bisect_left(range(len(keys)), True, key=lambda place: keys[place] == last)


def made_by_groups(
    first: pyarrow.Table,
    second: pyarrow.Table,
    key: str,
    make: OfGroups,
    columns: Sequence[Described],
) -> pyarrow.Table:
    """Yield the result of `make` for each `key` of two tables that are sorted by it."""
    import pyarrow

    of_one, of_two = _parts(first, key), _parts(second, key)
    none_of_one, none_of_two = first.slice(0, 0), second.slice(0, 0)
    made = [
        make(of_one.get(value, none_of_one), of_two.get(value, none_of_two))
        for value in dict.fromkeys((*of_one, *of_two))
    ]
    empty = arrow_schema_of(columns).empty_table()
    return pyarrow.concat_tables([empty, *made]).combine_chunks()


def _parts(rows: pyarrow.Table, key: str) -> dict[object, pyarrow.Table]:
    """Yield the rows of each value of a column; rows are sorted by it."""
    values = rows.column(key).to_pylist()
    starts = [n for n, value in enumerate(values) if not n or value != values[n - 1]]
    ends = [*starts[1:], len(values)]
    return {values[a]: rows.slice(a, b - a) for a, b in zip(starts, ends, strict=False)}
