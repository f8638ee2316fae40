"""A decoded log in columns, compared with the rows of its exchanges and messages."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow

from dissectors.decode.exchange_forms import log_of
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.message_table import MessageTable
from dissectors.rows.encoded import Columns
from dissectors.rows.parquet import RowTable, exchange_table, message_table


def assert_log(paths: Sequence[str]) -> None:
    """Compare the columns of captures with their rows, chunk by chunk."""
    options = DecodeOptions(messages=True)
    run = Decode(paths, options)
    rows: list[object] = []
    messages: list[object] = []
    row_counts, message_counts = [], []
    for batch in run.records():
        made = [row for carried in run.take_messages() for row in carried.messages]
        rows += batch
        messages += made
        row_counts.append(len(batch))
        message_counts.append(len(made))
    other = Decode(paths, options)
    chunks = other.counted_exchanges()
    found = list(log_of(other.sources, chunks, other.add_findings, MessageTable()))
    assert sum(one.seen for one in found) == len(rows)
    given = [one.rows for one in found if isinstance(one.rows, Columns)]
    _assert_table(given, exchange_table(), rows, row_counts)
    given = [one.messages for one in found if isinstance(one.messages, Columns)]
    _assert_table(given, message_table(), messages, message_counts if messages else [])
    assert other.take_findings() == run.take_findings()


def _assert_table(
    found: list[Columns], table: RowTable, rows: list[object], counts: list[int]
) -> None:
    assert [count for one in found for count in one.counts if count] == list(filter(None, counts))
    assert all(one.data.num_rows == sum(one.counts) for one in found)
    batches = [one.data for one in found]
    columns = pyarrow.Table.from_batches(batches, table.schema).combine_chunks()
    columns.validate(full=True)
    expected = table.batch_of(rows)
    for name, column in zip(columns.schema.names, columns.columns, strict=True):
        assert column.combine_chunks().equals(expected[name]), name
