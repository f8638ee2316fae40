"""Rows in unnamed files: millions of rows, with only the visible ones in memory.

Rules: rows are stored by column, in segments; filters and screens read only the columns that they
need. One thread adds, others read. Unnamed files vanish with the process. If the number of rows
is limited, the oldest file is dropped.
"""

from __future__ import annotations

import os
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Final, Generic, TypeVar

import msgspec
import zstandard

from dissectors.rows.column import Column
from dissectors.rows.tables import encodable_value

Row = TypeVar("Row")
SEGMENT_ROWS: Final = 1024
"""rows per segment"""
PART_ROWS: Final = 64 * SEGMENT_ROWS
"""rows per file; a full file is dropped at a time if not all rows are kept"""
MOST_CACHED: Final = 512
"""cached columns of segments: a screenful and its surroundings"""
_LEVEL: Final = 1


class BlobFile:
    """Blobs in a file without a name, numbered from 0."""

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile(prefix="rmqtool-")  # noqa: SIM115
        self._ends = array("Q", [0])
        """0, then the end of each blob"""

    def __del__(self) -> None:
        # Not when it is dropped: a screen may still read its rows. A full disk fails again here.
        with suppress(OSError, AttributeError):
            self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, blobs: Sequence[bytes]) -> None:
        """Append blobs; they can be read at once."""
        self._file.write(b"".join(blobs))
        self._file.flush()
        for blob in blobs:
            self._ends.append(self._ends[-1] + len(blob))

    def read(self, number: int) -> bytes:
        """Return a blob."""
        start, end = self._ends[number], self._ends[number + 1]
        return os.pread(self._file.fileno(), end - start, start)


class RowAt:
    """A stored row, whose columns are read on access, also after the store dropped it."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Callable[[str], Sequence[Any]], at: int) -> None:
        self._columns = columns
        self._at = at

    def __getattr__(self, name: str) -> Any:
        return self._columns(name)[self._at]

    def column(self, name: str, rows: int) -> Sequence[Any]:
        """Return a column of this and the next rows, `rows` in all, of the same segment."""
        return self._columns(name)[self._at : self._at + rows]


class RowStore(Generic[Row]):
    """All rows of one kind, numbered from 0 in arrival order."""

    def __init__(
        self, make: Callable[..., Row], columns: Sequence[Column], most: int | None = None
    ) -> None:
        """`make` creates a row from the values of all columns; about `most` rows are kept."""
        self.columns = tuple(columns)
        self.first = 0
        """number of the first kept row"""
        self.count = 0
        """number after the last row"""
        self._make = make
        self._names = [column.name for column in columns]
        self._place = {name: index for index, name in enumerate(self._names)}
        self._gets = [attrgetter(name) for name in self._names]
        self._most = None if most is None else max(most, PART_ROWS)
        self._parts: dict[int, BlobFile] = {}
        """files with a blob for each column of each segment"""
        self._waiting: list[Row] = []
        self._cached: OrderedDict[tuple[int, int], list[Any]] = OrderedDict()
        self._lock = Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder()

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows; they can be read at once."""
        with self._lock:
            self._waiting += rows
            self.count += len(rows)
            while len(self._waiting) >= SEGMENT_ROWS:
                self._write(self.count - len(self._waiting), self._waiting[:SEGMENT_ROWS])
                del self._waiting[:SEGMENT_ROWS]

    def at(self, number: int) -> Row | RowAt | None:
        """Return a row whose columns are read on access, or None if it was dropped."""
        with self._lock:
            if not self.first <= number < self.count:
                return None
            stored = self.count - len(self._waiting)
            if number >= stored:
                return self._waiting[number - stored]
            part = self._parts[number // PART_ROWS]
        segment, place = divmod(number, SEGMENT_ROWS)
        return RowAt(lambda name: self._column(part, segment, name), place)

    def row(self, number: int) -> Row | None:
        """Return a whole row, or None if it was dropped."""
        row = self.at(number)
        if not isinstance(row, RowAt):
            return row
        return self._make(*(getattr(row, name) for name in self._names))

    def whole(self) -> Iterator[list[Row]]:
        """Yield all current rows, a segment at a time."""
        for _, rows in self.runs(self.first, self.count):
            if not isinstance(rows[0], RowAt):
                yield list(rows)  # type: ignore[arg-type]
                continue
            columns = [rows[0].column(name, len(rows)) for name in self._names]
            yield [self._make(*row) for row in zip(*columns, strict=True)]

    def runs(self, start: int, stop: int) -> Iterator[tuple[int, Sequence[Row | RowAt]]]:
        """Yield rows by segment, each with the number of its first row; skip dropped rows."""
        while True:
            with self._lock:
                start = max(start, self.first)
                if start >= stop:
                    return
                stored = self.count - len(self._waiting)
                waiting = self._waiting[start - stored : stop - stored] if start >= stored else []
                part = None if waiting else self._parts[start // PART_ROWS]
            if part is None:
                yield start, waiting
                return
            segment, place = divmod(start, SEGMENT_ROWS)
            end = min(stop, (segment + 1) * SEGMENT_ROWS)
            yield start, self._rows_of(part, segment, place, end - start)
            start = end

    def _rows_of(self, part: BlobFile, segment: int, place: int, rows: int) -> Sequence[RowAt]:
        """Return the rows of a segment, which read each column once."""
        # Not cached: a filter of all rows would push the rows on the screen out of the cache.
        lists: dict[str, list[Any]] = {}

        def column(name: str) -> list[Any]:
            values = lists.get(name)
            if values is None:
                values = lists[name] = self._column(part, segment, name, cached=False)
            return values

        return [RowAt(column, at) for at in range(place, place + rows)]

    def _column(self, part: BlobFile, segment: int, name: str, cached: bool = True) -> list[Any]:
        """Return one column of a segment."""
        if name not in self._place:
            raise AttributeError(name)
        place = self._place[name]
        key = (segment, place)
        with self._lock:
            cached_values = self._cached.get(key)
            if cached_values is not None:
                self._cached.move_to_end(key)
                return cached_values
            at = (segment % (PART_ROWS // SEGMENT_ROWS)) * len(self._names) + place
            data = part.read(at)
        values: list[Any] = self._decoder.decode(zstandard.decompress(data))
        # One value for all rows, see `_write`. Only full segments are written.
        if len(values) == 1 < SEGMENT_ROWS:
            values *= SEGMENT_ROWS
        if cached:
            with self._lock:
                self._cached[key] = values
                while len(self._cached) > MOST_CACHED:
                    self._cached.popitem(last=False)
        return values

    def _write(self, number: int, rows: Sequence[Row]) -> None:
        """Write a segment; the caller holds the lock."""
        key = number // PART_ROWS
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = BlobFile()
            self._drop_oldest()
        blobs = []
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        for get in self._gets:
            values = list(map(get, rows))
            first = values[0]
            # Equal values are stored once. Rows must not share a list, which could be changed.
            if not isinstance(first, list) and values.count(first) == SEGMENT_ROWS:
                values = [first]
            blobs.append(compressor.compress(self._encoded(values)))
        part.add(blobs)

    def _encoded(self, values: list[Any]) -> bytes:
        try:
            return self._encoder.encode(values)
        except UnicodeEncodeError:  # a lone surrogate, which a JSON header can contain
            return self._encoder.encode(encodable_value(values))

    def _drop_oldest(self) -> None:
        """Drop the oldest file if there are too many rows."""
        # One file more, because the newest one is not full.
        while self._most is not None and len(self._parts) * PART_ROWS > self._most + PART_ROWS:
            oldest = min(self._parts)
            del self._parts[oldest]
            self.first = (oldest + 1) * PART_ROWS
            dropped = self.first // SEGMENT_ROWS
            for key in [key for key in self._cached if key[0] < dropped]:
                del self._cached[key]

    def close(self) -> None:
        """Drop all rows."""
        with self._lock:
            self._parts.clear()
            self.first = self.count
            self._waiting = []
