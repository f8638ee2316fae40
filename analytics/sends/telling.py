"""Which messages' attempts are looked at one by one: found among all sends of an input.

Rules: a message is looked at if its UNIQ_KEY was seen more than once, or if one of its sends
failed, was answered late, or began soon after a connect of the same host had failed. All others
are one attempt each. Keys are compared as numbers (`sends.KEY`): two messages with one number are
both looked at, which changes no result. In a large input nearly every key is a group of one row,
for which Spark takes three times as long as NumPy. So Spark's tasks divide the numbers into slots
and pack them, and the numbers of a slot are sorted together. A peer chooses its UNIQ_KEYs. So the
slot of a number depends on a random factor of the run, and a number that a task sees several times
is packed once: nobody can fill one slot.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from ..spark.expressions import grouped
from .attempts import SOON_US
from .births import lead_sql
from .broker_names import with_names
from .sends import FAILED_ITSELF, HOST, KEY

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

_AFTER_S = SOON_US // 1_000_000
"""Seconds after a failed connect in which the message must be sent."""
_SLOT_BITS = 8
_MOST_KEYS = 1 << 20
"""Keys that a task holds before it packs them."""
_PACKED = "slot int, keys binary, told binary"
"""Columns of packed keys: the slot, its keys, and those that are known to be looked at."""


def telling_keys(
    sends: DataFrame,
    names: DataFrame,
    failures: DataFrame | None,
    timeout_us: int,
    small: bool = False,
) -> DataFrame:
    """Return `sends.KEY` of the messages that are looked at (`key`), each once.

    `failures` are `sends.connect_failures`. `small`: there are few sends, and Spark groups them in
    less time than it takes to start Python for its tasks.
    """
    keyed = sends.where("unique_key is not null")
    took = "unix_micros(response_time) - unix_micros(request_time)"
    wrong = f"({FAILED_ITSELF} or coalesce({took} > {timeout_us * 9 // 10}, false))"
    if failures is not None:
        keyed = _with_failures(with_names(keyed, names), failures)
        wrong = f"({wrong} or failed_host is not null)"
    numbered = keyed.selectExpr(f"{KEY} as key", f"{wrong} as wrong")
    if not small:
        packed = numbered.mapInArrow(partial(packed_keys, factor=_random_factor()), _PACKED)
        return packed.groupBy("slot").applyInArrow(told_keys, "key long")
    keys = grouped(numbered, ("key",), {"seen": "count(*)", "wrong": "max(wrong)"})
    return keys.where("seen > 1 or wrong").select("key")


def _with_failures(sends: DataFrame, failures: DataFrame) -> DataFrame:
    """Return sends with `failed_host`: a connect of the host failed while it was being sent.

    A send comes as often as there are such connects. Rows meet by the second alone, and what takes
    long, the sender's address and the birth of the message, is asked of the few that met.
    """
    ended = _second_of("`end`")
    near = failures.selectExpr(
        "host as failed_host",
        "broker as failed_broker",
        "begin as failed_begin",
        "`end` as failed_end",
        f"explode(sequence({ended}, {ended} + {_AFTER_S})) as failed_second",
    )
    begin = "unix_micros(request_time)"
    met = (
        f"{_second_of(begin)} = failed_second and array_contains(array(failed_host), {HOST})"
        f" and {begin} between failed_end and failed_end + {SOON_US} and failed_broker != broker"
        f" and failed_begin >= {begin} - {lead_sql('unique_key', begin)} - 1000"
    )
    return sends.join(F.broadcast(near), F.expr(met), "left")


def _second_of(micros: str) -> str:
    return f"cast(floor({micros} / 1000000) as long)"


def _random_factor() -> int:
    return secrets.randbits(64) | 1  # odd: no two numbers become one


def packed_keys(
    batches: Iterable[pyarrow.RecordBatch], factor: int
) -> Iterator[pyarrow.RecordBatch]:
    """Give the keys of a task's sends (`key`, `wrong`) in rows of `_PACKED`.

    `factor` is odd, of 64 bits, and the same for all tasks of a run; it decides the slots.
    """
    keys: list[NDArray[np.int64]] = []
    wrong: list[NDArray[np.int64]] = []
    held = 0
    for batch in batches:
        some = batch.column("key").to_numpy()
        keys.append(some)
        wrong.append(some[batch.column("wrong").to_numpy(zero_copy_only=False)])
        held += len(some)
        if held >= _MOST_KEYS:
            yield _packed(keys, wrong, factor)
            keys, wrong, held = [], [], 0
    if held:
        yield _packed(keys, wrong, factor)


def _packed(
    keys: list[NDArray[np.int64]], wrong: list[NDArray[np.int64]], factor: int
) -> pyarrow.RecordBatch:
    import pyarrow

    different, repeated = _once(np.concatenate(keys))
    told = np.unique(np.concatenate((repeated, *wrong)))
    return pyarrow.record_batch(
        [
            pyarrow.array(range(1 << _SLOT_BITS), pyarrow.int32()),
            pyarrow.array(_by_slot(different, factor), pyarrow.binary()),
            pyarrow.array(_by_slot(told, factor), pyarrow.binary()),
        ],
        ["slot", "keys", "told"],
    )


def _once(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys, each once, and those that come more than once."""
    ordered = np.sort(keys)
    same = ordered[1:] == ordered[:-1]
    first = np.concatenate((np.ones(min(len(keys), 1), dtype=np.bool_), ~same))
    return ordered[first], ordered[1:][same]


def _by_slot(keys: NDArray[np.int64], factor: int) -> list[bytes]:
    """Return the keys of each slot, eight bytes each."""
    mixed = keys.view(np.uint64) * np.uint64(factor)
    slots = (mixed >> np.uint64(64 - _SLOT_BITS)).astype(np.uint8)
    ends = np.cumsum(np.bincount(slots, minlength=1 << _SLOT_BITS))
    parts = np.split(keys[np.argsort(slots, kind="stable")], ends[:-1])
    return [part.tobytes() for part in parts]


def told_keys(slot: pyarrow.Table) -> pyarrow.Table:
    """Return the keys (`key`) of a slot that come more than once or are told, each once."""
    import pyarrow

    _, repeated = _once(_joined(slot.column("keys")))
    told = np.unique(np.concatenate((repeated, _joined(slot.column("told")))))
    return pyarrow.table({"key": pyarrow.array(told, pyarrow.int64())})


def _joined(column: pyarrow.ChunkedArray[pyarrow.BinaryScalar]) -> NDArray[np.int64]:
    return np.frombuffer(b"".join(filter(None, column.to_pylist())), dtype=np.int64)
