"""What executes relations: the same few operations on Spark and, in this process, on DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ..schema import Described, arrow_schema_of
from .relation import Relation

if TYPE_CHECKING:
    import pyarrow

OfGroup = Callable[["pyarrow.Table"], "pyarrow.Table"]
"""Rows of one group -> rows that they become."""
OfGroups = Callable[["pyarrow.Table", "pyarrow.Table"], "pyarrow.Table"]
"""Rows of two relations with one key -> rows that they become."""


class SqlEngine(Protocol):
    """Executes relations; whoever reports need not know which one it is."""

    @property
    def is_distributed(self) -> bool:
        """Whether rows are with tasks, which fold them, and not with this process."""

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""

    def hold(self, rows: pyarrow.Table) -> Relation:
        """Return rows of this process as a relation."""

    def close(self) -> None:
        """Free all; the relations have no rows then."""

    def drop(self, relation: Relation) -> None:
        """Free what `keep` or `hold` keep."""

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return what `make` gives for each group of rows with an equal `key`; null is a key."""

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return what `make` gives for each `key`, of the rows of two relations that have it."""

    def repeated(self, relation: Relation) -> Relation:
        """Return each `key`, a whole number, that comes more than once or with `wrong`; kept."""


def repeated_keys(relation: Relation) -> Relation:
    """Return each `key` that comes more than once or with `wrong`."""
    counted = relation.grouped(["key"], {"seen": "count(*)", "flawed": "bool_or(wrong)"})
    return counted.where("seen > 1 or flawed").select("key")


def made_by_group(
    batches: Iterable[pyarrow.RecordBatch], key: str, make: OfGroup, columns: Sequence[Described]
) -> pyarrow.Table:
    """Return what `make` gives for each group of rows, which are sorted by `key`.

    The rows of one group are held, and no others.
    """
    import pyarrow

    made = [arrow_schema_of(columns).empty_table()]
    group: list[pyarrow.Table] = []
    value: object = None
    for batch in batches:
        for this, part in _parts(pyarrow.Table.from_batches([batch]), key).items():
            if group and this != value:
                made.append(make(pyarrow.concat_tables(group)))
                group = []
            value = this
            group.append(part)
    if group:
        made.append(make(pyarrow.concat_tables(group)))
    return pyarrow.concat_tables(made)


def made_by_groups(
    one: pyarrow.Table,
    two: pyarrow.Table,
    key: str,
    make: OfGroups,
    columns: Sequence[Described],
) -> pyarrow.Table:
    """Return what `make` gives for each `key` of two tables, which are sorted by it."""
    import pyarrow

    of_one, of_two = _parts(one, key), _parts(two, key)
    none_of_one, none_of_two = one.slice(0, 0), two.slice(0, 0)
    made = [
        make(of_one.get(value, none_of_one), of_two.get(value, none_of_two))
        for value in dict.fromkeys((*of_one, *of_two))
    ]
    return pyarrow.concat_tables([arrow_schema_of(columns).empty_table(), *made])


def _parts(rows: pyarrow.Table, key: str) -> dict[object, pyarrow.Table]:
    """Return the rows of each value of a column that they are sorted by."""
    values = rows.column(key).to_pylist()
    starts = [n for n, value in enumerate(values) if not n or value != values[n - 1]]
    ends = [*starts[1:], len(values)]
    return {values[a]: rows.slice(a, b - a) for a, b in zip(starts, ends, strict=False)}
