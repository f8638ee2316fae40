"""Rows in files without a name: millions of them, in memory only where they are looked at.

Rules: rows are stored by column, in segments; a filter reads the columns that it asks for, a screen
those that it shows. One thread adds, others read. A file has no name, so nothing is left of it
however the process ends. What is kept may be limited: then the oldest rows go, with their file.
"""

from __future__ import annotations

import os
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
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
"""rows that are written, and read, at a time"""
PART_ROWS: Final = 64 * SEGMENT_ROWS
"""rows of a file; where not all rows are kept, this number is dropped at a time"""
MOST_CACHED: Final = 512
"""columns of segments that are kept as lists: a screenful and what is around it"""
_LEVEL: Final = 1


class _Part:
    """The rows of one file."""

    def __init__(self) -> None:
        self.file: IO[bytes] = TemporaryFile(prefix="rmqtool-")  # noqa: SIM115
        self.ends = array("Q", [0])
        """where each column of each segment ends, behind 0"""


class RowAt:
    """One row as it is stored; its columns are read when they are asked for."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Callable[[str], Sequence[Any]], at: int) -> None:
        self._columns = columns
        self._at = at

    def __getattr__(self, name: str) -> Any:
        return self._columns(name)[self._at]


class RowStore(Generic[Row]):
    """All rows of one kind, by number from 0 in the order in which they came."""

    def __init__(
        self, make: Callable[..., Row], columns: Sequence[Column], most: int | None = None
    ) -> None:
        """`make` takes the values of all columns; `most` rows are kept, about; None: all."""
        self.columns = tuple(columns)
        self.first = 0
        """number of the first row that is still there"""
        self.count = 0
        """number behind the last row"""
        self._make = make
        self._names = [column.name for column in columns]
        self._place = {name: index for index, name in enumerate(self._names)}
        self._gets = [attrgetter(name) for name in self._names]
        self._most = None if most is None else max(most, PART_ROWS)
        self._parts: dict[int, _Part] = {}
        self._waiting: list[Row] = []
        self._cached: OrderedDict[tuple[int, int], list[Any]] = OrderedDict()
        self._lock = Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder()

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows; they can be read at once."""
        with self._lock:
            self._waiting += rows
            self.count += len(rows)
            while len(self._waiting) >= SEGMENT_ROWS:
                self._write(self.count - len(self._waiting), self._waiting[:SEGMENT_ROWS])
                del self._waiting[:SEGMENT_ROWS]

    def at(self, number: int) -> Row | RowAt | None:
        """Return a row of which columns are read when they are asked for; None: it is gone."""
        with self._lock:
            if not self.first <= number < self.count:
                return None
            stored = self.count - len(self._waiting)
            if number >= stored:
                return self._waiting[number - stored]
        segment, place = divmod(number, SEGMENT_ROWS)
        return RowAt(lambda name: self.column(segment, name), place)

    def row(self, number: int) -> Row | None:
        """Return a whole row; None: it is gone."""
        found = self.at(number)
        if not isinstance(found, RowAt):
            return found
        try:
            return self._make(*(getattr(found, name) for name in self._names))
        except LookupError:  # it went meanwhile
            return None

    def whole(self) -> Iterator[list[Row]]:
        """Yield all rows that there are now, a segment at a time."""
        for number, rows in self.runs(self.first, self.count):
            if not isinstance(rows[0], RowAt):
                yield list(rows)  # type: ignore[arg-type]
                continue
            segment, place = divmod(number, SEGMENT_ROWS)
            columns = [self.column(segment, name, cached=False) for name in self._names]
            values = zip(*(column[place : place + len(rows)] for column in columns), strict=True)
            yield [self._make(*one) for one in values]

    def runs(self, start: int, stop: int) -> Iterator[tuple[int, Sequence[Row | RowAt]]]:
        """Yield rows by segment, each run behind the number of its first row."""
        start = max(start, self.first)
        while start < stop:
            with self._lock:
                stored = self.count - len(self._waiting)
                waiting = self._waiting[start - stored : stop - stored] if start >= stored else []
            if waiting:
                yield start, waiting
                return
            segment, place = divmod(start, SEGMENT_ROWS)
            end = min(stop, (segment + 1) * SEGMENT_ROWS)
            yield start, self._rows_of(segment, place, end - start)
            start = end

    def _rows_of(self, segment: int, place: int, rows: int) -> Sequence[RowAt]:
        """Return rows of a segment, of which each column is read once."""
        lists: dict[str, list[Any]] = {}

        def column(name: str) -> list[Any]:
            found = lists.get(name)
            if found is None:
                found = lists[name] = self.column(segment, name, cached=False)
            return found

        return [RowAt(column, at) for at in range(place, place + rows)]

    def column(self, segment: int, name: str, cached: bool = True) -> list[Any]:
        """Return one column of a segment; raise LookupError where that is gone."""
        if name not in self._place:
            raise AttributeError(name)
        place = self._place[name]
        key = (segment, place)
        with self._lock:
            found = self._cached.get(key)
            if found is not None:
                self._cached.move_to_end(key)
                return found
            part = self._parts[segment * SEGMENT_ROWS // PART_ROWS]
            at = (segment % (PART_ROWS // SEGMENT_ROWS)) * len(self._names) + place
            start, end = part.ends[at], part.ends[at + 1]
            data = os.pread(part.file.fileno(), end - start, start)
        values: list[Any] = self._decoder.decode(zstandard.decompress(data))
        if len(values) == 1 < SEGMENT_ROWS:
            values *= SEGMENT_ROWS
        if cached:
            with self._lock:
                self._cached[key] = values
                while len(self._cached) > MOST_CACHED:
                    self._cached.popitem(last=False)
        return values

    def _write(self, number: int, rows: Sequence[Row]) -> None:
        """Write a segment; the lock is held."""
        key = number // PART_ROWS
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part()
            self._drop_oldest()
        blobs = []
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        for get in self._gets:
            values = list(map(get, rows))
            first = values[0]
            if not isinstance(first, list) and values.count(first) == SEGMENT_ROWS:
                values = [first]
            blob = compressor.compress(self._encoded(values))
            blobs.append(blob)
        end = part.ends[-1]
        part.file.write(b"".join(blobs))
        part.file.flush()
        for blob in blobs:
            end += len(blob)
            part.ends.append(end)

    def _encoded(self, values: list[Any]) -> bytes:
        try:
            return self._encoder.encode(values)
        except UnicodeEncodeError:  # half a surrogate pair: a JSON header can bring one
            return self._encoder.encode(encodable_value(values))

    def _drop_oldest(self) -> None:
        """Let go of the oldest file where there are more rows than are kept."""
        while self._most is not None and len(self._parts) * PART_ROWS > self._most + PART_ROWS:
            oldest = min(self._parts)
            self._parts.pop(oldest).file.close()
            self.first = (oldest + 1) * PART_ROWS
            gone = self.first // SEGMENT_ROWS
            for key in [key for key in self._cached if key[0] < gone]:
                del self._cached[key]

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            for part in self._parts.values():
                part.file.close()
            self._parts.clear()
            self.first = self.count
            self._waiting = []
