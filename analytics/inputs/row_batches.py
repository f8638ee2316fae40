"""Rows of a decoding run as Arrow batches for Spark: one table, or all in one pass.

In the table `all`, a row that is not an exchange is JSON in `other_row`; its conversation is also
in the column of exchanges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from dissectors.decode.decoded_log import finding_of
from dissectors.decode.pipeline import Decode
from dissectors.rows.parquet import RowTable, exchange_table
from dissectors.rows.tables import row_encoder

from ..schema import INPUT_TABLES, SOURCE, schema_of

if TYPE_CHECKING:
    import pyarrow

    Arrays = pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]

EXCHANGES, CONVERSATIONS, FINDINGS = "exchanges", "conversations", "findings"
MESSAGES, ALL = "messages", "all"
TABLES = (EXCHANGES, CONVERSATIONS, FINDINGS, MESSAGES, ALL)
KIND, OTHER = "row_kind", "other_row"
"""Columns of the table `all`: the table of a row, and the row as JSON unless it is an exchange."""
CONVERSATION = "conversation"
"""Column with the connection number, in every table."""
BATCH_ROWS = 8192
"""Rows per Arrow batch."""
OtherRow = tuple[str, str, int | None]
"""A row that is not an exchange: its table, the row as JSON, its conversation."""
_CONVERSATION_OF = attrgetter(CONVERSATION)


def batches_of(
    decode: Decode, table: str, source: str, names: Mapping[str, str]
) -> Iterator[pyarrow.RecordBatch]:
    """Decode and yield the rows of a table; `names` are the names of the captures in rows."""
    form = RowBatches(table, source)
    for kind, rows in _pieces(decode, names):
        yield from form.batches(kind, rows)
    yield from form.rest()


def _pieces(decode: Decode, names: Mapping[str, str]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the rows of a run as (table, rows), in the order of decoding."""
    called = [names.get(source, source) for source in decode.sources]
    for records in decode.records():
        for record in records:
            # A task reads absolute paths or copies; rows have the name that the user wrote.
            record.capture = names.get(record.capture, record.capture)
        yield EXCHANGES, records
        messages = [row for carried in decode.take_messages() for row in carried.messages]
        for message in messages:
            message.capture = names.get(message.capture, message.capture)
        yield MESSAGES, messages
        ended = decode.take_conversations()
        for row in ended:
            row.capture = names.get(row.capture, row.capture)
        yield CONVERSATIONS, ended
        # every task decodes the rows without a connection; only the first yields them
        is_first = decode.options.shard == 0
        findings = [
            finding for finding in decode.take_findings() if is_first or finding.conversation >= 0
        ]
        yield FINDINGS, [finding_of(info, called) for info in findings]


def schema_of_table(table: str) -> StructType:
    """Return the columns of one of `TABLES`."""
    schema = schema_of(INPUT_TABLES[EXCHANGES if table == ALL else table])
    if table == ALL:
        schema = schema.add(KIND, "string").add(OTHER, "string")
    return schema.add(SOURCE, "string")


class RowBatches:
    """Collects rows of the requested tables into Arrow batches of moderate size."""

    def __init__(self, table: str, source: str) -> None:
        self._table = table
        self._source = source
        self._exchanges = exchange_table()
        self._form = _table_of(_OTHERS[table]) if table in _OTHERS else self._exchanges
        self._json = {kind: row_encoder(columns) for kind, columns in _OTHERS.items()}
        self._waiting: list[object] = []
        self._others: list[OtherRow] = []

    def batches(self, kind: str, rows: Sequence[object]) -> Iterator[pyarrow.RecordBatch]:
        """Add rows of a table and yield the complete batches."""
        if kind != self._table and self._table != ALL:
            return
        if kind == EXCHANGES or self._table == kind:
            self._waiting += rows
        else:
            lines = self._json[kind](rows).splitlines()  # bytes, because texts may contain U+2028
            numbers = map(_CONVERSATION_OF, rows)
            self._others += [
                (kind, line.decode(), number) for line, number in zip(lines, numbers, strict=True)
            ]
        while len(self._waiting) >= BATCH_ROWS:
            yield self._batch(self._waiting[:BATCH_ROWS])
            del self._waiting[:BATCH_ROWS]
        while len(self._others) >= BATCH_ROWS:
            yield self._batch_of_others(self._others[:BATCH_ROWS])
            del self._others[:BATCH_ROWS]

    def rest(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the remaining rows."""
        if self._waiting:
            yield self._batch(self._waiting)
        if self._others:
            yield self._batch_of_others(self._others)

    def _batch(self, rows: list[object]) -> pyarrow.RecordBatch:
        batch = self._form.batch_of(rows)
        texts: list[list[str | None]] = []
        if self._table == ALL:
            texts = [[EXCHANGES] * len(rows), [None] * len(rows)]
        return self._completed(list(batch.columns), texts, len(rows))

    def _batch_of_others(self, rows: list[OtherRow]) -> pyarrow.RecordBatch:
        import pyarrow

        arrays = [
            pyarrow.array([number for _, _, number in rows], field.type)
            if field.name == CONVERSATION
            else pyarrow.nulls(len(rows), field.type)
            for field in self._exchanges.schema
        ]
        texts: list[list[str | None]] = [[row[0] for row in rows], [row[1] for row in rows]]
        return self._completed(arrays, texts, len(rows))

    def _completed(
        self, arrays: list[Arrays], texts: list[list[str | None]], count: int
    ) -> pyarrow.RecordBatch:
        """Return a batch from arrays, text columns, and the name of the input."""
        import pyarrow

        columns: list[list[str | None]] = [*texts, [self._source] * count]
        all_columns = [*arrays, *(pyarrow.array(column, pyarrow.string()) for column in columns)]
        names = schema_of_table(self._table).fieldNames()
        return pyarrow.RecordBatch.from_arrays(all_columns, names=names)


_OTHERS: dict[str, list[tuple[str, str]]] = {
    table: [(column.name, column.type) for column in INPUT_TABLES[table]]
    for table in (CONVERSATIONS, FINDINGS, MESSAGES)
}
"""Tables other than exchanges -> their columns with types."""


def _table_of(columns: list[tuple[str, str]]) -> RowTable:
    return RowTable((name, kind, attrgetter(name)) for name, kind in columns)
