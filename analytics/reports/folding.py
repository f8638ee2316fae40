"""Contract of keyed folds: rows to items, items sorted by key to sums, sums to tables.

Rules: all parts of a `Folding` are module-level functions, which can be sent to tasks; they accept
rows in any order, use no clock, and do no I/O; sums are bounded and mergeable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from dissectors.rows.tables import encodable_value

from ..consuming.items import Item
from ..consuming.known import Known
from ..report import ReportInput, ReportTable, table_columns
from ..schema import arrow_schema_of
from ..sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

T = TypeVar("T")
SHARE: Final = "known"
"""share name for reports with the same fold (`Report.shares`)"""
ITEM: Final = table_columns("""
    key string
    at int
    then int
    text string
""")
"""`Item` as columns"""


@dataclass(frozen=True)
class Folding(Generic[T]):
    """Functions that turn rows into tables."""

    exchanges: Callable[[list[ExchangeRecord], Known], Iterable[Item]]
    fold: Callable[[Iterable[Item], Known], T]
    """items sorted by key, at, then, text -> sums"""
    sums: type[T]
    merge: Callable[[T, T], None]
    tables: Callable[[T, Known], Mapping[str, list[dict[str, object]]]]
    requests: frozenset[int] | None = None
    """request codes of the exchanges to read; None: all"""
    messages: Callable[[list[MessageRecord], Known], Iterable[Item]] | None = None
    connections: Callable[[list[ConversationRecord], Known], Iterable[Item]] | None = None
    more: Callable[[ReportInput, Known], Relation] | None = None
    """further items with the columns `ITEM`, from rows of several tables"""


def here(
    report_input: ReportInput,
    rows: Mapping[str, Sequence[Mapping[str, object]]],
    tables: Iterable[ReportTable],
) -> Mapping[str, Relation]:
    """Return tables whose rows are in this process."""
    return {
        table.name: report_input.kept.here(
            # Arrow takes no unpaired surrogates, which a peer may send in any name
            [
                {name: encodable_value(value) for name, value in row.items()}
                for row in rows.get(table.name, ())
            ],
            table.columns,
        )
        for table in tables
    }


def arrow_items(items: Iterable[Item]) -> pyarrow.Table:
    """Return items as rows with the columns ITEM."""
    import pyarrow

    schema = arrow_schema_of(ITEM)
    # without items, `zip` yields no columns
    columns = list(zip(*items, strict=True)) or [()] * len(schema)
    arrays = [
        pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
