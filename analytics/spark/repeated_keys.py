"""Find repeated keys with Spark's tasks: divide them into slots and sort each slot.

Rules: in a large input nearly every key is a group of one row, for which Spark takes three times as
long as NumPy. Tasks therefore divide the keys into slots and pack them, and the keys of a slot are
sorted together. Keys come from peers, which could be malicious: the slot of a key depends on a
random factor of the run, and a key that a task sees several times is packed once, so nobody can
fill one slot.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

MOST_SLOTS: Final = 1 << 16
"""Most slots: numbers of 16 bits are sorted in one pass."""
_MOST_KEYS = 1 << 20
"""Most keys that a task holds before it packs them."""
PACKED: Final = "slot int, keys binary, told binary"
"""Columns of packed keys: the slot, its keys, and the keys selected explicitly."""


def random_factor() -> int:
    """Return a random number that determines the slots of a run."""
    return secrets.randbits(64) | 1  # odd: distinct numbers stay distinct


def packed_keys(
    batches: Iterable[pyarrow.RecordBatch], factor: int, slots: int
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the keys of a task's rows (`key`, `wrong`) as rows of `PACKED`.

    `factor` is odd, has 64 bits, and determines the slot of a key; it and `slots` are the same for
    all tasks of a run.
    """
    keys: list[NDArray[np.int64]] = []
    wrong: list[NDArray[np.int64]] = []
    held = 0
    for batch in batches:
        batch_keys = batch.column("key").to_numpy()
        keys.append(batch_keys)
        wrong.append(batch_keys[batch.column("wrong").to_numpy(zero_copy_only=False)])
        held += len(batch_keys)
        if held >= _MOST_KEYS:
            yield _packed(keys, wrong, factor, slots)
            keys, wrong, held = [], [], 0
    if held:
        yield _packed(keys, wrong, factor, slots)


def _packed(
    keys: list[NDArray[np.int64]], wrong: list[NDArray[np.int64]], factor: int, slots: int
) -> pyarrow.RecordBatch:
    import pyarrow

    different, repeated = _once(np.concatenate(keys))
    selected = np.unique(np.concatenate((repeated, *wrong)))
    return pyarrow.record_batch(
        [
            pyarrow.array(range(slots), pyarrow.int32()),
            pyarrow.array(_by_slot(different, factor, slots), pyarrow.binary()),
            pyarrow.array(_by_slot(selected, factor, slots), pyarrow.binary()),
        ],
        ["slot", "keys", "told"],
    )


def _once(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, and the repeated ones."""
    ordered = np.sort(keys)
    same = ordered[1:] == ordered[:-1]
    first = np.concatenate((np.ones(min(len(keys), 1), dtype=np.bool_), ~same))
    return ordered[first], ordered[1:][same]


def _by_slot(keys: NDArray[np.int64], factor: int, slots: int) -> list[bytes]:
    """Return the keys of each slot, eight bytes each."""
    # The upper half of a product depends on all bits of the key, the lower half only on its lower
    # bits.
    mixed = keys.view(np.uint64) * np.uint64(factor)
    placed = ((mixed >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)).astype(np.uint16)
    ends = np.cumsum(np.bincount(placed, minlength=slots))
    parts = np.split(keys[np.argsort(placed, kind="stable")], ends[:-1])
    return [part.tobytes() for part in parts]


def keys_of_slot(slot: pyarrow.Table) -> pyarrow.Table:
    """Return the distinct keys (`key`) of a slot that are repeated or selected explicitly."""
    import pyarrow

    _, repeated = _once(_joined(slot.column("keys")))
    selected = np.unique(np.concatenate((repeated, _joined(slot.column("told")))))
    return pyarrow.table({"key": pyarrow.array(selected, pyarrow.int64())})


def _joined(column: pyarrow.ChunkedArray[pyarrow.BinaryScalar]) -> NDArray[np.int64]:
    return np.frombuffer(b"".join(filter(None, column.to_pylist())), dtype=np.int64)
