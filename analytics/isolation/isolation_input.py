"""Attempts in Arrow as the replay of the fault strategy takes them: by producer, texts as numbers.

Rules: Spark groups by a number made of what a producer is, which it sorts several times as fast as
the texts; two producers may have the same number, so they are told apart here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..sends.births import lead_of, marks_in
from ..sends.unavailable import Gone, gone_in
from .producer_attempts import Coded, ProducerAttempts

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

WHO = ("client", "process", "group")
"""Columns that tell a producer: address, digits of the process in its UNIQ_KEYs, group."""
NUMBER = f"xxhash64({', '.join(f'`{name}`' for name in WHO)})"
"""SQL: a number for a producer."""


def born(table: pyarrow.Table, timeout_us: int) -> pyarrow.Table:
    """Return attempts that begin with their message, if that was within a timeout of the request.

    `table` has the columns of `sends.strategy_events.events`.
    """
    import pyarrow

    asked = table.column("begin").to_numpy()
    marks = marks_in(table.column("unique_key"))
    leads = lead_of(marks, asked)
    plain = table.column("plain").to_numpy()
    near = plain & (marks >= 0) & (leads >= 0) & (leads <= timeout_us)
    begins = pyarrow.array(np.where(near, asked - leads, asked))
    place = table.column_names.index("begin")
    return table.set_column(place, "begin", begins).drop_columns(["plain"])


def producers_in(table: pyarrow.Table) -> Iterator[pyarrow.Table]:
    """Give the attempts of each producer; mostly there is one."""
    import pyarrow

    codes = np.zeros(table.num_rows, dtype=np.int64)
    for name in WHO:
        column = table.column(name).combine_chunks().dictionary_encode("encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
    if not codes.any():
        yield table
        return
    for code in np.unique(codes):
        yield table.filter(pyarrow.array(codes == code))


def producer_of(table: pyarrow.Table) -> ProducerAttempts:
    """Return the attempts in the order of their begin."""
    order = np.argsort(table.column("begin").to_numpy(), kind="stable")

    def coded(name: str) -> Coded:
        column = table.column(name).combine_chunks().dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        names = tuple(str(name) for name in column.dictionary.to_pylist())
        return Coded(names, codes.astype(np.int64)[order])

    def times(name: str) -> NDArray[np.int64]:
        # with nulls the values come as floats, exact for µs until the year 2255
        values = table.column(name).to_numpy()
        return np.where(np.isnan(values), -1, values).astype(np.int64)[order]

    return ProducerAttempts(
        topic=coded("topic"),
        broker=coded("broker"),
        last_broker=coded("last_broker"),
        outcome=coded("outcome"),
        cause=coded("cause"),
        begin=times("begin"),
        end=times("end"),
        unseen=tuple(
            (one.unseen_from, one.unseen_to)
            for one in gone_of(table)
            if one.unseen_from is not None and one.unseen_to is not None
        ),
    )


def gone_of(table: pyarrow.Table) -> list[Gone]:
    """Return the brokers that a producer sent to and at times could not reach."""
    brokers = set(table.column("broker").unique().to_pylist())
    return [
        one for one in gone_in(table.column("gone").unique().to_pylist()) if one.broker in brokers
    ]
