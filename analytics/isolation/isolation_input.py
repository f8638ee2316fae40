"""Attempts in Arrow as input of the fault strategy's replay: by producer, texts as numbers.

Rules: Spark groups by a hash of the producer's columns, which it sorts several times as fast as the
texts; two producers may collide, so they are separated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

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


_ORDER = ("begin", "unique_key", "request_packet")
"""Attempts of one microsecond have the same order, whatever that of the engine's rows is."""


class OneProducer(NamedTuple):
    """The attempts of one producer, by their begin."""

    rows: pyarrow.Table
    """as they came"""
    attempts: ProducerAttempts
    """for the replay"""
    gone: list[Gone]
    """brokers that it sent to and at times could not reach"""


def producers_in(table: pyarrow.Table) -> Iterator[OneProducer]:
    """Give the attempts of each producer of a table, which may have many.

    Texts are encoded and rows sorted once for all of them.
    """
    import pyarrow

    who = np.zeros(table.num_rows, dtype=np.int64)
    for name in _DISTINGUISHED:
        column = table.column(name).combine_chunks().dictionary_encode("encode")
        who = who * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
        who = np.unique(who, return_inverse=True)[1]  # a product of counts may not fit
    order: list[tuple[str, Literal["ascending", "descending"]]] = [
        (name, "ascending") for name in (_WHO, *_ORDER)
    ]
    table = table.append_column(_WHO, pyarrow.array(who)).sort_by(order).combine_chunks()
    coded = {name: _coded(table, name) for name in _CODED}
    begin, end = _times(table, "begin"), _times(table, "end")
    starts = np.flatnonzero(np.diff(table.column(_WHO).to_numpy(), prepend=-1)).tolist()
    for first, last in pairwise([*starts, table.num_rows]):
        here = slice(first, last)
        rows = table.slice(first, last - first)
        own = {name: Coded(one.names, one.codes[here]).compact() for name, one in coded.items()}
        gone = gone_of(rows)
        attempts = ProducerAttempts(**own, begin=begin[here], end=end[here], unseen=unseen_in(gone))
        yield OneProducer(rows, attempts, gone)


_WHO = "_producer"
_CODED = ("topic", "broker", "last_broker", "outcome", "cause")


def _coded(table: pyarrow.Table, name: str) -> Coded:
    column = table.column(name).combine_chunks().dictionary_encode()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(tuple(map(str, column.dictionary.to_pylist())), codes.astype(np.int64))


def _times(table: pyarrow.Table, name: str) -> NDArray[np.int64]:
    # with nulls the values come as floats, exact for µs until the year 2255
    values = table.column(name).to_numpy()
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def gone_of(table: pyarrow.Table) -> list[Gone]:
    """Return the brokers that a producer sent to and at times could not reach."""
    texts = [text for text in table.column("gone").unique().to_pylist() if text]
    if not texts:
        return []
    names = map(_GONE.decode, texts)
    return gone_near(names, set(map(str, table.column("broker").unique().to_pylist())))


_GONE = msgspec.json.Decoder(list[Gone])
