"""Move rows to their group in few, large pieces.

Rules: Spark serializes, compresses, and copies each row on its own when it shuffles, which takes
longer than most folds. Tasks therefore divide their rows into slots, and each slot of some 100,000
rows becomes one value: a compressed Arrow stream with texts as codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

if TYPE_CHECKING:
    import pyarrow

SLOT: Final = "_slot"
"""Column of the slot: rows that must be folded together have the same."""
PACKED: Final = f"{SLOT} int, rows binary"
_MOST_ROWS = 1 << 18
"""Most rows that a task holds before it packs them."""


def packed_rows(
    batches: Iterable[pyarrow.RecordBatch], slots: int
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a task as rows of `PACKED`; their column `SLOT` is less than `slots`."""
    held: list[pyarrow.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= _MOST_ROWS:
            yield _packed(held, slots)
            count = 0
    if count:
        yield _packed(held, slots)


def _packed(held: list[pyarrow.RecordBatch], slots: int) -> pyarrow.RecordBatch:
    """Pack some batches, and free them."""
    import pyarrow
    import pyarrow.compute

    whole = pyarrow.Table.from_batches(held)
    held.clear()
    # sorting 16-bit numbers takes one pass
    placed = whole.column(SLOT).to_numpy().astype(np.uint16)
    order = np.argsort(placed, kind="stable")
    ends = np.cumsum(np.bincount(placed, minlength=slots)).tolist()
    rows = pyarrow.table(
        {
            name: _shortened(whole.column(name), slots).take(order)
            for name in whole.column_names
            if name != SLOT
        }
    )
    sizes = zip([0, *ends], ends, strict=False)
    parts = {
        slot: _stream_of(rows.slice(start, end - start))
        for slot, (start, end) in enumerate(sizes)
        if end > start
    }
    return pyarrow.record_batch(
        [
            pyarrow.array(list(parts), pyarrow.int32()),
            pyarrow.array(list(parts.values()), pyarrow.binary()),
        ],
        [SLOT, "rows"],
    )


def _shortened(column: pyarrow.ChunkedArray[Any], slots: int) -> pyarrow.Array[Any]:
    """Return a column in one piece, a text as codes if the dictionary is small."""
    import pyarrow
    import pyarrow.compute

    one = column.combine_chunks()
    if not pyarrow.types.is_string(one.type):
        return one
    coded = cast("pyarrow.DictionaryArray[Any, Any]", pyarrow.compute.dictionary_encode(one))
    # each slot repeats the dictionary
    return coded if len(coded.dictionary) * slots <= len(one) else one


def _stream_of(rows: pyarrow.Table) -> bytes:
    import pyarrow
    import pyarrow.ipc

    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    with pyarrow.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def unpacked(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows in rows of `PACKED`."""
    import pyarrow.ipc

    for batch in batches:
        for packed in batch.column("rows"):
            with pyarrow.ipc.open_stream(packed.as_buffer()) as stream:
                yield from stream
