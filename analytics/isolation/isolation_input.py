"""Attempts in Arrow as input of the fault strategy's replay: by producer, texts as numbers.

Rules: Spark groups by a hash of the producer's columns, which it sorts several times as fast as the
texts; two producers may collide, so they are separated here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from ..sends.unavailable import Gone, gone_near, unseen_in
from .producer_attempts import Coded, ProducerAttempts

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

WHO = ("client", "process", "group")
"""Columns that identify a producer: address, process digits of its UNIQ_KEYs, group."""
_DISTINGUISHED = (*WHO, "version_name")
"""Another version is another program, even with the same process digits."""
NUMBER = f"xxhash64({', '.join(f'`{name}`' for name in _DISTINGUISHED)})"
"""SQL: a number for a producer."""


_ORDER = ("begin", "request_packet", "tie", "capture", "attempt", "broker", "outcome")
"""Attempts of one microsecond have the same order, whatever that of the engine's rows is."""


class OneProducer(NamedTuple):
    """The attempts of one producer, by their begin."""

    table: pyarrow.Table
    """rows as they came, also those of other producers"""
    places: NDArray[np.int64]
    """place of each attempt in it"""
    attempts: ProducerAttempts
    """for the replay"""
    gone: list[Gone]
    """brokers that it sent to and at times could not reach"""

    def value(self, name: str, index: int) -> object:
        """Return a column of an attempt."""
        value: object = self.table.column(name)[int(self.places[index])].as_py()
        return value


def producers_in(table: pyarrow.Table) -> Iterator[OneProducer]:
    """Give the attempts of each producer of a table, which may have many.

    `table` has dictionary-encoded texts. Rows are sorted once for all producers.
    """
    import pyarrow
    import pyarrow.compute

    table = table.unify_dictionaries()
    who = np.zeros(table.num_rows, dtype=np.int64)
    for name in _DISTINGUISHED:
        column = _coded(table, name)
        if len(column.names) + int(column.codes.min(initial=0) < 0) > 1:
            who = who * (len(column.names) + 1) + column.codes + 1
            who = np.unique(who, return_inverse=True)[1]  # a product of counts may not fit
    keys = {_WHO: pyarrow.array(who), **{name: _ranked(table.column(name)) for name in _ORDER}}
    order = pyarrow.compute.sort_indices(
        pyarrow.table(keys), sort_keys=[(name, "ascending") for name in keys]
    ).to_numpy()
    del keys
    starts = np.flatnonzero(np.diff(who[order], prepend=-1)).tolist()
    del who
    coded = {name: _coded(table, name).at(order) for name in _CODED}
    begin, end = _times(table, "begin")[order], _times(table, "end")[order]
    gone_texts = any(table.column("gone").unique().to_pylist())
    for first, last in pairwise([*starts, table.num_rows]):
        here = slice(first, last)
        own = {name: Coded(one.names, one.codes[here]).compact() for name, one in coded.items()}
        gone = _gone_of(table, order[here], own["broker"].names) if gone_texts else []
        attempts = ProducerAttempts(**own, begin=begin[here], end=end[here], unseen=unseen_in(gone))
        yield OneProducer(table, order[here], attempts, gone)


def _ranked(column: pyarrow.ChunkedArray[Any]) -> pyarrow.Array[Any]:
    """Return a column as numbers in the same order."""
    import pyarrow.compute

    one = column.combine_chunks()
    if not isinstance(one, pyarrow.DictionaryArray):
        return one
    ranks = np.empty(len(one.dictionary), dtype=np.int32)
    ranks[pyarrow.compute.sort_indices(one.dictionary).to_numpy()] = np.arange(len(ranks))
    return pyarrow.array(ranks).take(one.indices)


_WHO = "_producer"
_CODED = ("topic", "broker", "last_broker", "outcome", "cause")


def _coded(table: pyarrow.Table, name: str) -> Coded:
    column = cast("pyarrow.DictionaryArray[Any, Any]", table.column(name).combine_chunks())
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(tuple(map(str, column.dictionary.to_pylist())), codes.astype(np.int32))


def _times(table: pyarrow.Table, name: str) -> NDArray[np.int64]:
    # with nulls the values come as floats, exact for µs until the year 2255
    values = table.column(name).to_numpy()
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _gone_of(
    table: pyarrow.Table, places: NDArray[np.int64], brokers: Collection[str]
) -> list[Gone]:
    """Return the brokers that a producer sent to and at times could not reach."""
    texts = [text for text in table.column("gone").take(places).unique().to_pylist() if text]
    return gone_near(map(_GONE.decode, texts), set(brokers)) if texts else []


_GONE = msgspec.json.Decoder(list[Gone])
