"""Rows in order, by time or latency: sorted in parts, which wait in files without a name.

Rows come when they are complete: an exchange with its answer, so a slow one after those that began
later. Memory holds one part and a few rows of each other one, however many rows there are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Final, Generic, TypeVar

Row = TypeVar("Row")
Key = int | tuple[int, ...] | None
"""what a row is sorted by, of all rows the same type; None: it is last"""
PART: Final = 50_000
"""rows that are sorted in memory"""
_BATCH: Final = 500
"""rows that are read from a file at a time, and given on"""


class SortedRows(Generic[Row]):
    """Takes rows, and gives them in order: the smallest key first, equal ones as they came."""

    def __init__(self, key: Callable[[Row], Key], part: int = PART) -> None:
        self._stack = ExitStack()
        self._key_of = key
        self._part = part
        self._parts: list[Iterator[Row]] = []
        self._waiting: list[Row] = []

    def __enter__(self) -> SortedRows[Row]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _key(self, row: Row) -> tuple[bool, Key]:
        found = self._key_of(row)
        return found is None, found or 0

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows."""
        self._waiting += rows
        if len(self._waiting) >= self._part:
            self._waiting.sort(key=self._key)
            self._parts.append(_rows_of(_written(self._waiting, self._stack)))
            self._waiting = []

    def batches(self) -> Iterator[Sequence[Row]]:
        """Yield all rows, once."""
        self._waiting.sort(key=self._key)
        rows = merge(*self._parts, self._waiting, key=self._key)
        while found := list(islice(rows, _BATCH)):
            yield found

    def close(self) -> None:
        """Free the files."""
        self._stack.close()


def by_key(
    batches: Iterable[Sequence[Row]], key: Callable[[Row], Key], part: int = PART
) -> Iterator[Sequence[Row]]:
    """Yield all rows in order; while they are still read, an empty batch for each of theirs."""
    with SortedRows(key, part) as rows:
        for batch in batches:
            rows.add(batch)
            yield ()
        yield from rows.batches()


def _written(rows: Sequence[Row], stack: ExitStack) -> IO[bytes]:
    """Return a file with the rows, at its beginning; it is gone when it is closed."""
    file = stack.enter_context(TemporaryFile(prefix="rmqtool-"))  # noqa: SIM115
    for start in range(0, len(rows), _BATCH):
        pickle.dump(rows[start : start + _BATCH], file, pickle.HIGHEST_PROTOCOL)
    file.seek(0)
    return file


def _rows_of(file: IO[bytes]) -> Iterator[Row]:
    while True:
        try:
            rows = pickle.load(file)
        except EOFError:
            return
        yield from rows
