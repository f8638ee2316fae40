"""A table: rows of one kind, with their columns, what a filter can test, and where they come from.

Commands and programs read their rows through the same tables, so that a filter, a column and a
time window mean the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from dissectors.rows.column import Column

if TYPE_CHECKING:
    from dissectors.decode.pipeline import Decode
    from dissectors.where.fields import FieldSet

Row = TypeVar("Row")


class ArrowColumn(NamedTuple):
    """A column as Arrow and pandas have it."""

    name: str
    type: str
    """string, int, bool, time or list, as `dissectors.rows.parquet.RowTable` takes them"""
    get: Callable[[object], object]
    """row → value; times are nanoseconds since the epoch"""


class UnknownColumnError(ValueError):
    """A table has no column of a name; the text says which it is like."""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows of one kind."""

    name: str
    """what the table is called, and what its rows are, in the plural"""
    columns: tuple[Column, ...]
    """as documented"""
    batches: Callable[[Decode], Iterator[Sequence[Row]]]
    """reads a run to its end, once; findings and connections of the run wait to be taken"""
    fields: Callable[[Sequence[str]], FieldSet]
    """names of the captures, by index → what a filter can test"""
    time: Callable[[Row], int | None]
    """when a row was, nanoseconds since the epoch"""
    windowed: bool = True
    """the run itself leaves out what is not in the time that was asked for"""
    body_limit: int = 0
    """bytes of a body that are shown where nobody says how many"""
    shown: Callable[[Row, Sequence[str], int], object] | None = None
    """a row, names of the captures, bytes of a body → what has the columns; None: the row itself"""
    arrow: Callable[[], Iterable[ArrowColumn]] | None = None
    """columns as Arrow has them; None: as they are"""

    def arrow_columns(self) -> list[ArrowColumn]:
        """Return the columns as Arrow has them."""
        if self.arrow is not None:
            return list(self.arrow())
        return [ArrowColumn(c.name, c.type, attrgetter(c.name)) for c in self.columns]

    def chosen_columns(
        self, names: Sequence[str], captures: Sequence[str] = ()
    ) -> list[ArrowColumn]:
        """Return columns by their names, or by what filters call them; raise UnknownColumnError."""
        fields = self.fields(captures)
        found = []
        for name in names:
            field = fields.find(name)
            if field is None:
                raise UnknownColumnError(f"unknown column {name!r}{fields.suggestion(name)}")
            type_, get = field.type, field.get
            if type_ == "list" and len(field.columns) == 1:  # an address, tested in two forms
                get, type_ = attrgetter(field.columns[0]), "string"
            elif type_ == "list" and name in _FIRST_OF:
                get, type_ = _first_of(get), "string"
            found.append(ArrowColumn(name, type_, get))
        return found


_FIRST_OF: Final = frozenset(("broker", "client"))
"""what filters test by any of its names: the first is shown"""


def _first_of(get: Callable[[object], object]) -> Callable[[object], object]:
    def first(row: object) -> object:
        names = get(row)
        return names[0] if isinstance(names, list) and names else None

    return first


def column_fields(columns: Iterable[Column]) -> FieldSet:
    """Return the columns themselves as what a filter can test."""
    from dissectors.where.fields import FieldSet, field_of_column

    return FieldSet(field_of_column(c.name, c.type, c.unit, attrgetter(c.name)) for c in columns)
