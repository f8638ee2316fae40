"""The contract of keyed folds: rows to items, items sorted by key to sums, sums to tables.

Rules: everything in a `Folding` is a function of a module, which tasks can be given; it takes rows
in any order and no clock, and does no I/O; sums are bounded and merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..consuming.items import Item
from ..consuming.known import Known
from ..report import ReportInput, TableColumn
from ..schema import arrow_schema_of
from ..sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

T = TypeVar("T")
SHARE: Final = "known"
"""name of what reports share (`Report.shares`)"""
ITEM: Final = (
    TableColumn("key", "string", "", ""),
    TableColumn("at", "int", "", ""),
    TableColumn("then", "int", "", ""),
    TableColumn("text", "string", "", ""),
)
"""`Item` as columns"""


@dataclass(frozen=True)
class Folding(Generic[T]):
    """How rows become tables."""

    exchanges: Callable[[list[ExchangeRecord], Known], Iterable[Item]]
    fold: Callable[[Iterable[Item], Known], T]
    """items sorted by key, at, then, text -> sums"""
    sums: type[T]
    merge: Callable[[T, T], None]
    tables: Callable[[T, Known], Mapping[str, list[dict[str, object]]]]
    requests: frozenset[int] | None = None
    """codes of the exchanges that are taken; None: all"""
    messages: Callable[[list[MessageRecord], Known], Iterable[Item]] | None = None
    connections: Callable[[list[ConversationRecord], Known], Iterable[Item]] | None = None
    more: Callable[[ReportInput, Known], Relation] | None = None
    """further items, with the columns `ITEM`, made of rows of several tables
    """


def arrow_items(items: Iterable[Item]) -> pyarrow.Table:
    """Return items as rows of ITEM."""
    import pyarrow

    schema = arrow_schema_of(ITEM)
    columns = list(zip(*items, strict=True)) or [()] * len(schema)
    arrays = [
        pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
