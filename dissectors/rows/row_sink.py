"""Row sinks, which receive values one by one: JSON lines and objects (Arrow: `column_bytes`).

A writer passes the values of a row in column order, each with its column name, and ends the row.
The names are for readers, and for a test that checks each writer against the declaration; a sink
only counts. Values shared by rows are encoded once, as a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast, final

import msgspec
from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from ..json_bytes import ABSENT, NOTHING, PLACE_END, copy_range, put_integer, put_number
from ..plain_json import QUOTE, stop_from
from ..times import text_of_time
from .column import DISTINCT_TEXTS, Column
from .tables import encodable_value
from .timed_rows import TimeWriter

_ENCODER: Final = msgspec.json.Encoder()
_NULL: Final = b"null"
_LINE_END: Final = b"}\n"
_EMPTY: Final = b"[]"
_NO_TEXTS: Final[list[str]] = []
_LONGEST_REPEATED: Final = 256
"""maximum characters of a text that is kept for the next row: hostile ones have megabytes"""
_WORD: Final = 8
"""bytes read at a time"""


class RowPart:
    """Values of consecutive columns, shared by rows; valid for the sink that made it."""

    __slots__ = ("encoded", "is_announced", "place", "size", "text_bytes", "values")

    def __init__(self, values: Sequence[object], encoded: bytes) -> None:
        self.values = list(values)
        self.encoded = encoded
        """the values as encoded by a byte sink"""
        self.size: i64 = len(self.values)
        self.place: i64 = 0
        """index of the first column, if the sink counts columns"""
        self.is_announced = False
        """the sink already has the values"""
        self.text_bytes: i64 = 0
        """bytes of the texts among the values, if the sink counts them"""


class RowSink:
    """Receiver of the values of rows of one table."""

    __slots__ = ()

    @property
    def waiting(self) -> int:
        """Number of rows not yet taken."""
        raise NotImplementedError

    def number(self, name: str, number: i64) -> None:
        """Add an integer, or a null for NOTHING."""
        raise NotImplementedError

    def integer(self, name: str, number: i64) -> None:
        """Add any 64-bit integer."""
        raise NotImplementedError

    def time(self, name: str, ns: i64) -> None:
        """Add a time in nanoseconds since the epoch."""
        raise NotImplementedError

    def flag(self, name: str, flag: bool) -> None:
        """Add a boolean."""
        raise NotImplementedError

    def plain(self, name: str, data: bytes, place: i64) -> None:
        """Add the text at a position, or a null for ABSENT: ASCII without JSON escapes."""
        raise NotImplementedError

    def utf8(self, name: str, data: bytes, start: i64, stop: i64) -> None:
        """Add a text from a range of bytes, or a null if empty; invalid UTF-8 is replaced."""
        raise NotImplementedError

    def text(self, name: str, text: str | None) -> None:
        """Add a text, or a null; lone surrogates are replaced if they cannot be written."""
        raise NotImplementedError

    def texts(self, name: str, texts: list[str]) -> None:
        """Add a list of texts."""
        raise NotImplementedError

    def null(self, name: str) -> None:
        """Add a null."""
        raise NotImplementedError

    def part(self, name: str, values: Sequence[object]) -> RowPart:
        """Return the values of this column and the following ones as a part."""
        raise NotImplementedError

    def shared(self, part: RowPart) -> None:
        """Add the values of a part."""
        raise NotImplementedError

    def value(self, name: str, value: object) -> None:
        """Add a value of a row object."""
        raise NotImplementedError

    def repeat(self, parts: list[RowPart], count: i64) -> None:
        """Announce that the next `count` rows have these parts, to be added with `repeated`."""

    def repeated(self, part: RowPart) -> None:
        """Add the values of an announced part."""
        self.shared(part)

    def end(self) -> None:
        """End a row, once each column has a value."""
        raise NotImplementedError


@final
class JsonSink(RowSink):
    """Buffered JSON lines.

    Nulls are only counted; the next value writes them and its name in one piece.
    """

    __slots__ = (
        "_at", "_columns", "_ends", "_last", "_last_encoded", "_names", "_out", "_pieces",
        "_places", "_rows", "_times", "_written",
    )  # fmt: skip

    def __init__(self, columns: Sequence[Column], with_ends: bool = False) -> None:
        """`with_ends`: `take_ends` will be called."""
        self._columns = list(columns)
        self._places = {column.name: place for place, column in enumerate(columns)}
        starts = ["{", *["," for _ in columns[1:]]]
        self._names = [
            f'{start}"{column.name}":'.encode()
            for start, column in zip(starts, columns, strict=True)
        ]
        self._names.append(_LINE_END)
        self._pieces: list[list[bytes]] = [[] for _ in columns]
        """pieces by their first null, once needed"""
        self._last: list[str | None] = [None] * len(columns)
        """last text of each column that is not long"""
        self._last_encoded = [b""] * len(columns)
        self._times = [TimeWriter() for _ in columns]
        self._out = BytesWriter()
        self._ends = BytesWriter() if with_ends else None
        self._at: i64 = 0
        """columns of the row that have a value"""
        self._written: i64 = 0
        """as `_at`, without pending nulls"""
        self._rows: i64 = 0

    @property
    def waiting(self) -> int:
        return int(self._rows)

    @property
    def size(self) -> int:
        """Bytes of the buffered lines."""
        return len(self._out)

    def take(self) -> bytes:
        """Return the lines since the last call."""
        lines = self._out.getvalue()
        self._out.truncate(0)
        self._rows = 0
        return lines

    def take_ends(self) -> bytes:
        """Return the end offset of each line since the last call, as 64-bit integers."""
        assert self._ends is not None
        ends = self._ends.getvalue()
        self._ends.truncate(0)
        return ends

    def _begin(self) -> BytesWriter:
        """Write pending nulls and the name of the next column."""
        out, at = self._out, self._at
        out.write(self._names[at] if self._written == at else self._piece(at))
        self._at = self._written = at + 1
        return out

    def _piece(self, at: i64) -> bytes:
        """Return the pending nulls and the name of a column, or the line end."""
        first = self._written
        pieces = self._pieces[first]
        if not pieces:
            nulls = b""
            for name in self._names[first:]:
                pieces.append(nulls + name)
                nulls += name + _NULL
        return pieces[at - first]

    def number(self, name: str, number: i64) -> None:  # noqa: ARG002
        if number == NOTHING:
            self._at += 1
        else:
            put_number(self._begin(), number)

    def integer(self, name: str, number: i64) -> None:  # noqa: ARG002
        put_integer(self._begin(), number)

    def time(self, name: str, ns: i64) -> None:  # noqa: ARG002
        times = self._times[self._at]
        times.put(self._begin(), ns)

    def flag(self, name: str, flag: bool) -> None:  # noqa: ARG002
        self._begin().write(b"true" if flag else b"false")

    def plain(self, name: str, data: bytes, place: i64) -> None:
        if place == ABSENT:
            self.null(name)
            return
        out = self._begin()
        out.append(QUOTE)
        copy_range(out, data, place >> 32, place & PLACE_END)
        out.append(QUOTE)

    def utf8(self, name: str, data: bytes, start: i64, stop: i64) -> None:
        if start == stop:
            self.null(name)
        # `stop_from` reads whole words, also at the end: a shorter text has none.
        elif len(data) >= _WORD and stop_from(data, start, stop) == stop:
            self.plain(name, data, start << 32 | stop)
        else:
            self._begin().write(_ENCODER.encode(data[start:stop].decode("utf-8", "replace")))

    def text(self, name: str, text: str | None) -> None:
        if text is None:
            self.null(name)
            return
        at = self._at
        # Rows often share a text, such as their consumer group.
        if text is self._last[at]:
            self._begin().write(self._last_encoded[at])
            return
        encoded = _encoded(text)
        if len(text) <= _LONGEST_REPEATED:
            self._last[at], self._last_encoded[at] = text, encoded
        self._begin().write(encoded)

    def texts(self, name: str, texts: list[str]) -> None:  # noqa: ARG002
        self._begin().write(_encoded(texts) if texts else _EMPTY)

    def null(self, name: str) -> None:  # noqa: ARG002
        self._at += 1

    def part(self, name: str, values: Sequence[object]) -> RowPart:
        at = self._places[name]
        pieces: list[bytes] = []
        for value in values:
            if pieces:  # the name of the first column is written along with pending nulls
                pieces.append(self._names[at])
            is_time = self._columns[at].type == "time" and isinstance(value, int)
            pieces.append(_encoded(text_of_time(cast(int, value)) if is_time else value))
            at += 1
        return RowPart(values, b"".join(pieces))

    def value(self, name: str, value: object) -> None:
        if value is None:
            self.null(name)
        elif isinstance(value, str):
            self.text(name, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            if self._columns[self._at].type == "time":
                times = self._times[self._at]
                times.put(self._begin(), value)
            else:
                self._begin().write(str(value).encode())
        else:
            self._begin().write(_encoded(value))

    def shared(self, part: RowPart) -> None:
        self._begin().write(part.encoded)
        self._at = self._written = self._at + part.size - 1

    def end(self) -> None:
        assert self._at == len(self._columns)
        self._begin()
        self._at = self._written = 0
        self._rows += 1
        if self._ends is not None:
            write_i64_le(self._ends, len(self._out))


def _encoded(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which a JSON header can contain
        return _ENCODER.encode(encodable_value(value))


_DISTINCT: Final = DISTINCT_TEXTS
_LONGEST_TEXT: Final = 64
"""maximum bytes of a cached text"""
_MOST_TEXTS: Final = 4096
_SMALL: Final = 1024
_NUMBERS: Final[list[object]] = list(range(_SMALL))
"""small numbers as shared objects"""


@final
class ObjectSink(RowSink):
    """Buffered rows as objects."""

    __slots__ = ("_make", "_rows", "_texts", "_values")

    def __init__(self, make: type[msgspec.Struct] | type[tuple[Any, ...]]) -> None:
        """`make` builds a row from its values."""
        self._make: Any = make
        self._values: list[object] = []
        self._rows: list[Any] = []
        self._texts: dict[bytes, str] = {}

    @property
    def waiting(self) -> int:
        return len(self._rows)

    def take(self) -> list[Any]:
        """Return the rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def number(self, name: str, number: i64) -> None:  # noqa: ARG002
        if 0 <= number < _SMALL:
            self._values.append(_NUMBERS[number])
        elif number == NOTHING:
            self._values.append(None)
        else:
            self._values.append(int(number))

    def integer(self, name: str, number: i64) -> None:  # noqa: ARG002
        self._values.append(int(number))

    def time(self, name: str, ns: i64) -> None:  # noqa: ARG002
        self._values.append(int(ns))

    def flag(self, name: str, flag: bool) -> None:  # noqa: ARG002
        self._values.append(flag)

    def plain(self, name: str, data: bytes, place: i64) -> None:
        if place == ABSENT:
            self._values.append(None)
            return
        value = data[place >> 32 : place & PLACE_END]
        if name in _DISTINCT or len(value) > _LONGEST_TEXT:
            self._values.append(value.decode("ascii"))
            return
        text = self._texts.get(value)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[value] = value.decode("ascii")
        self._values.append(text)

    def utf8(self, name: str, data: bytes, start: i64, stop: i64) -> None:  # noqa: ARG002
        text = data[start:stop].decode("utf-8", "replace") if start < stop else None
        self._values.append(text)

    def text(self, name: str, text: str | None) -> None:  # noqa: ARG002
        self._values.append(text)

    def texts(self, name: str, texts: list[str]) -> None:  # noqa: ARG002
        self._values.append(texts or _NO_TEXTS)

    def null(self, name: str) -> None:  # noqa: ARG002
        self._values.append(None)

    def part(self, name: str, values: Sequence[object]) -> RowPart:  # noqa: ARG002
        return RowPart(values, b"")

    def shared(self, part: RowPart) -> None:
        self._values.extend(part.values)

    def value(self, name: str, value: object) -> None:  # noqa: ARG002
        self._values.append(value)

    def end(self) -> None:
        values, self._values = self._values, []
        self._rows.append(self._make(*values))
