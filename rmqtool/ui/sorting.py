"""Rows in order, by time or latency: sorted in parts, which wait in files without a name.

Rows arrive when they are complete: a slow exchange comes after faster ones that began later. Memory
holds one part and a few rows of each other part. Parts are merged into larger ones to keep the
number of open files small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import IO, Any, Final, Generic, TypeVar

Row = TypeVar("Row")
Key = int | tuple[int, ...] | None
"""sort key, of one type for all rows; None: sorted last"""
PART: Final = 50_000
"""rows that are sorted in memory"""
FILES: Final = 64
"""parts of similar size that are merged"""
_BATCH: Final = 500
"""rows per batch"""


class SortedRows(Generic[Row]):
    """Sorts rows by key, ascending and stable."""

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
        key = self._key_of(row)
        return key is None, key or 0  # None cannot be compared

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        self._waiting += rows
        if len(self._waiting) >= self._part:
            self._waiting.sort(key=self._key)
            self._keep(self._waiting, 0)
            self._waiting = []

    def _keep(self, rows: Iterable[Row], level: int) -> None:
        """Write sorted rows to a file of a merge level."""
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
        """Yield all rows in order; call once."""
        self._waiting.sort(key=self._key)
        files = (file for level in reversed(self._levels) for file in level)  # the oldest first
        rows = merge(*map(_rows_of, files), self._waiting, key=self._key)
        while batch := list(islice(rows, _BATCH)):
            yield batch

    def close(self) -> None:
        """Free the files."""
        for level in self._levels:
            for file in level:
                file.close()


def sort_key(order: str, time: Callable[[Any], int | None]) -> Callable[[Any], Key]:
    """Return the key of an order: `latency` is the slowest first, `time` is that of `time`."""
    return _slowest_first if order == "latency" else time


def _slowest_first(row: Any) -> int | None:
    latency: int | None = row.latency_us
    return None if latency is None else -latency


def by_key(
    batches: Iterable[Sequence[Row]], key: Callable[[Row], Key], part: int = PART
) -> Iterator[Sequence[Row]]:
    """Yield all rows in order; while reading, an empty batch per input batch."""
    with SortedRows(key, part) as rows:
        for batch in batches:
            rows.add(batch)
            yield ()
        yield from rows.batches()


def _written(rows: Iterable[Row]) -> IO[bytes]:
    """Return a temporary file with the rows, at its beginning.

    Raise OSError that names the folder of temporary files.
    """
    import pickle  # not for rows that fit into memory
    from tempfile import TemporaryFile, gettempdir

    file = TemporaryFile(prefix="rmqtool-")  # noqa: SIM115
    left = iter(rows)
    while rows_read := list(islice(left, _BATCH)):
        batch = pickle.dumps(rows_read, pickle.HIGHEST_PROTOCOL)
        try:
            file.write(batch)
            file.flush()
        except OSError as error:
            # the file has no name, so the error has none
            with suppress(OSError):  # buffered data is written on close
                file.close()
            raise OSError(error.errno, error.strerror, gettempdir()) from error
    file.seek(0)
    return file


def _rows_of(file: IO[bytes]) -> Iterator[Row]:
    import pickle

    while True:
        try:
            rows = pickle.load(file)
        except EOFError:
            return
        yield from rows
