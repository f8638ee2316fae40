"""A table: rows of one kind, with their columns, filter fields, and source.

Commands and programs use the same tables, so filters, columns, and time windows mean the same.
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
    """A column for Arrow and pandas."""

    name: str
    type: str
    """string, int, bool, time or list, as `dissectors.rows.parquet.RowTable` takes them"""
    get: Callable[[object], object]
    """row → value; times are nanoseconds since the epoch"""


class UnknownColumnError(ValueError):
    """A table has no column with a name; the text suggests a similar one."""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows of one kind."""

    name: str
    """name of the table, and plural noun of its rows"""
    columns: tuple[Column, ...]
    """documented columns"""
    batches: Callable[[Decode], Iterator[Sequence[Row]]]
    """reads a run to its end, once; its findings and connections are left for the caller"""
    fields: Callable[[Sequence[str]], FieldSet]
    """names of the captures, by index → filter fields"""
    time: Callable[[Row], int | None]
    """time of a row, nanoseconds since the epoch"""
    windowed: bool = True
    """the run itself tests the time"""
    body_limit: int = 0
    """default bytes of a body that are shown"""
    shown: Callable[[Row, Sequence[str], int], object] | None = None
    """row, names of the captures, bytes of a body → object with the columns; None: the row"""
    arrow: Callable[[], Iterable[ArrowColumn]] | None = None
    """Arrow columns; None: the documented columns"""

    def arrow_columns(self) -> list[ArrowColumn]:
        """Return the Arrow columns."""
        if self.arrow is not None:
            return list(self.arrow())
        return [ArrowColumn(c.name, c.type, attrgetter(c.name)) for c in self.columns]

    def chosen_columns(
        self, names: Sequence[str], captures: Sequence[str] = ()
    ) -> list[ArrowColumn]:
        """Return columns by name or filter field; raise UnknownColumnError."""
        fields = self.fields(captures)
        columns = []
        for name in names:
            field = fields.find(name)
            if field is None:
                raise UnknownColumnError(f"unknown column {name!r}{fields.suggestion(name)}")
            type_, get = field.type, field.get
            if type_ == "list" and len(field.columns) == 1:  # an address, tested in two forms
                get, type_ = attrgetter(field.columns[0]), "string"
            elif type_ == "list" and name in _NAMED:
                get, type_ = _name_or_address(get), "string"
            columns.append(ArrowColumn(name, type_, get))
        return columns


_NAMED: Final = frozenset(("broker", "client"))
"""filter fields of a name and an address: the name is shown, or else the address"""


def _name_or_address(get: Callable[[object], object]) -> Callable[[object], object]:
    def shown(row: object) -> object:
        names = get(row)
        if not isinstance(names, list) or not names:
            return None
        # The address comes last, with its port; a name comes before both of its forms.
        return names[0] if len(names) > 2 else names[-1]

    return shown


def column_fields(columns: Iterable[Column]) -> FieldSet:
    """Return the columns as filter fields."""
    from dissectors.where.fields import FieldSet, field_of_column

    return FieldSet(field_of_column(c.name, c.type, c.unit, attrgetter(c.name)) for c in columns)
