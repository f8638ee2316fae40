"""Rows in order, by time or latency: sorted in parts, which wait in files without a name.

Rows come when they are complete: an exchange with its answer, so a slow one after those that began
later. Memory holds one part and a few rows of each other one. Many parts are merged to a larger
one, so that few files are open, however many rows there are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from tempfile import TemporaryFile, gettempdir
from typing import IO, Final, Generic, TypeVar

Row = TypeVar("Row")
Key = int | tuple[int, ...] | None
"""what a row is sorted by, of all rows the same type; None: it is last"""
PART: Final = 50_000
"""rows that are sorted in memory"""
FILES: Final = 64
"""parts of about the same size that become a larger one"""
_BATCH: Final = 500
"""rows that are read from a file at a time, and given on"""


class SortedRows(Generic[Row]):
    """Takes rows, and gives them in order: the smallest key first, equal ones as they came."""

    def __init__(self, key: Callable[[Row], Key], part: int = PART) -> None:
        self._key_of = key
        self._part = part
        self._levels: list[list[IO[bytes]]] = []  # of each, `FILES` make one file of the next
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
            self._keep(self._waiting, 0)
            self._waiting = []

    def _keep(self, rows: Iterable[Row], level: int) -> None:
        """Keep rows in order in a file of a level."""
        if level == len(self._levels):
            self._levels.append([])
        files = self._levels[level]
        files.append(_written(rows))
        if len(files) == FILES:
            self._levels[level] = []
            self._keep(merge(*map(_rows_of, files), key=self._key), level + 1)
            for file in files:
                file.close()

    def batches(self) -> Iterator[Sequence[Row]]:
        """Yield all rows, once."""
        self._waiting.sort(key=self._key)
        files = (file for level in reversed(self._levels) for file in level)  # the oldest first
        rows = merge(*map(_rows_of, files), self._waiting, key=self._key)
        while found := list(islice(rows, _BATCH)):
            yield found

    def close(self) -> None:
        """Free the files."""
        for level in self._levels:
            for file in level:
                file.close()


def by_key(
    batches: Iterable[Sequence[Row]], key: Callable[[Row], Key], part: int = PART
) -> Iterator[Sequence[Row]]:
    """Yield all rows in order; while they are still read, an empty batch for each of theirs."""
    with SortedRows(key, part) as rows:
        for batch in batches:
            rows.add(batch)
            yield ()
        yield from rows.batches()


def _written(rows: Iterable[Row]) -> IO[bytes]:
    """Return a file with the rows, at its beginning; it is gone when it is closed.

    Raise OSError that names the folder of temporary files.
    """
    file = TemporaryFile(prefix="rmqtool-")  # noqa: SIM115
    left = iter(rows)
    while found := list(islice(left, _BATCH)):
        batch = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
        try:
            file.write(batch)
            file.flush()
        except OSError as error:
            # the file has no name, so the error has none
            with suppress(OSError):  # what is buffered is written when it is closed
                file.close()
            raise OSError(error.errno, error.strerror, gettempdir()) from error
    file.seek(0)
    return file


def _rows_of(file: IO[bytes]) -> Iterator[Row]:
    while True:
        try:
            rows = pickle.load(file)
        except EOFError:
            return
        yield from rows
