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
from typing import IO, Final, TypeVar

Row = TypeVar("Row")
PART: Final = 50_000
"""rows that are sorted in memory"""
_BATCH: Final = 500
"""rows that are read from a file at a time, and given on"""


def by_key(
    batches: Iterable[Sequence[Row]], number: Callable[[Row], int | None], part: int = PART
) -> Iterator[Sequence[Row]]:
    """Yield all rows, the smallest number first; equal ones as they came, those without one last.

    While rows are still read, an empty batch comes for each of theirs.
    """

    def key(row: Row) -> tuple[bool, int]:
        found = number(row)
        return found is None, found or 0

    with ExitStack() as stack:
        parts: list[Iterator[Row]] = []
        waiting: list[Row] = []
        for batch in batches:
            waiting += batch
            if len(waiting) >= part:
                waiting.sort(key=key)
                parts.append(_rows_of(_written(waiting, stack)))
                waiting = []
            yield ()
        waiting.sort(key=key)
        rows = merge(*parts, waiting, key=key)
        while found := list(islice(rows, _BATCH)):
            yield found


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
