"""Arrow columns as bytes, built without an object per value.

Numbers are 64 bits; a text is a range of one buffer; absent values have a validity bit of 0.
Arrow: Columnar Format, Physical Memory Layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, u8

from ..json_bytes import ABSENT, NOTHING, PLACE_END, copy_range
from .column import Column
from .row_sink import RowPart, RowSink

LAST_MICROSECOND: Final = 253_402_300_799_999_999
"""last microsecond of the year 9999"""
PER_US: Final = 1000
"""nanoseconds per microsecond"""
_INT64: Final = (1 << 63) - 1


class ColumnBytes(NamedTuple):
    """The values of a column in Arrow's memory layout."""

    rows: int
    nulls: int
    buffers: list[bytes | None]
    """validity (None: no nulls), then offsets and bytes, or numbers"""
    child: ColumnBytes | None = None
    """of lists: all items"""


class ColumnWriter:
    """Writer of the values of one column.

    Nulls, and the validity bits of values, are only counted until the other kind follows.
    """

    __slots__ = ("_bits", "_nulls", "_rows", "_valid", "_waiting", "_word")

    def __init__(self) -> None:
        self._bits = BytesWriter()
        self._word: i64 = 0
        """validity bits that do not fill a byte yet"""
        self._rows: i64 = 0
        """values with validity bits"""
        self._nulls: i64 = 0
        """nulls among them"""
        self._valid: i64 = 0
        """values after them"""
        self._waiting: i64 = 0
        """nulls after those, not yet written"""

    def add_null(self) -> None:
        """Add a null."""
        self._waiting += 1

    def add_value(self, value: object) -> None:
        """Add a value of a row, clamped or replaced if it does not fit."""
        raise NotImplementedError

    def add_times(self, value: object, count: i64) -> None:
        """Add a value `count` times."""
        if value is None:
            self._waiting += count
            return
        while count > 0:
            self.add_value(value)
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the values since the last call."""
        raise NotImplementedError

    def _fill(self, count: i64) -> None:
        """Write the space of nulls."""
        raise NotImplementedError

    def _write_nulls(self) -> None:
        """Write the waiting nulls."""
        self._write_bits(1, self._valid)
        self._write_bits(0, self._waiting)
        self._nulls += self._waiting
        self._fill(self._waiting)
        self._valid = self._waiting = 0

    def _write_bits(self, bit: i64, count: i64) -> None:
        # Bits up to the end of a byte, whole bytes, then the remaining bits.
        while count > 0 and (self._rows & 7 or count < 8):
            at: i64 = self._rows & 7
            self._word |= bit << at
            self._rows += 1
            count -= 1
            if at == 7:
                self._bits.append(u8(self._word))
                self._word = 0
        if count > 0:
            self._bits.write((b"\xff" if bit else b"\0") * int(count >> 3))
            self._rows += count
            self._word = (1 << (count & 7)) - 1 if bit else 0

    def _taken_validity(self) -> tuple[int, int, bytes | None]:
        """Return the rows, the nulls, and the validity bits (None: no nulls), and reset them.

        Waiting nulls have been written.
        """
        rows, nulls = int(self._rows + self._valid), int(self._nulls)
        bits: bytes | None = None
        if nulls:
            self._write_bits(1, self._valid)
            if self._rows & 7:
                self._bits.append(u8(self._word))
            bits = self._bits.getvalue()
        self._bits.truncate(0)
        self._rows = self._nulls = self._valid = self._word = 0
        return rows, nulls, bits


class NumberWriter(ColumnWriter):
    """Writer of 64-bit integers."""

    __slots__ = ("_data", "_most", "_per")

    def __init__(self, per: int = 1, most: int = _INT64) -> None:
        """Divide row units by `per`; `most` replaces values that do not fit."""
        super().__init__()
        self._data = BytesWriter()
        self._per = per
        self._most = most

    def add(self, number: i64) -> None:
        """Add a number."""
        if self._waiting:
            self._write_nulls()
        write_i64_le(self._data, number)
        self._valid += 1

    def add_known(self, number: i64) -> None:
        """Add a number, or a null for NOTHING."""
        if number == NOTHING:
            self._waiting += 1
        else:
            self.add(number)

    def add_value(self, value: object) -> None:
        """Add an integer, or None."""
        if isinstance(value, int):
            self.add(self._fitting(value))
        else:
            self._waiting += 1

    def _fitting(self, value: int) -> int:
        """Return a row's number in the unit and range of the column."""
        number = value // self._per
        if not -_INT64 - 1 <= number <= _INT64:
            number = min(max(number, -self._most), self._most)
        return number

    def add_times(self, value: object, count: i64) -> None:
        """Add an integer, or None, `count` times."""
        if not isinstance(value, int):
            self._waiting += count
            return
        if self._waiting:
            self._write_nulls()
        number: i64 = self._fitting(value)
        self._valid += count
        while count > 0:
            write_i64_le(self._data, number)
            count -= 1

    def _fill(self, count: i64) -> None:
        while count > 0:
            write_i64_le(self._data, 0)  # Arrow has a place for a null, with any value
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the numbers since the last call."""
        if self._waiting:
            self._write_nulls()
        rows, nulls, validity = self._taken_validity()
        column = ColumnBytes(rows, nulls, [validity, self._data.getvalue()])
        self._data.truncate(0)
        return column


class TextWriter(ColumnWriter):
    """Writer of UTF-8 texts."""

    __slots__ = ("_data", "_ends")

    def __init__(self) -> None:
        super().__init__()
        self._data = BytesWriter()
        self._ends = BytesWriter()
        write_i32_le(self._ends, 0)

    def add(self, text: bytes) -> None:
        """Add a text."""
        if self._waiting:
            self._write_nulls()
        self._data.write(text)
        write_i32_le(self._ends, i32(len(self._data)))
        self._valid += 1

    def add_range(self, data: bytes, at: i64, end: i64) -> None:
        """Add a text from a range of bytes."""
        if self._waiting:
            self._write_nulls()
        copy_range(self._data, data, at, end)
        write_i32_le(self._ends, i32(len(self._data)))
        self._valid += 1

    def add_place(self, data: bytes, place: i64) -> None:
        """Add the text at a position, or a null for ABSENT."""
        if place == ABSENT:
            self._waiting += 1
        else:
            self.add_range(data, place >> 32, place & PLACE_END)

    def add_value(self, value: object) -> None:
        """Add a str, UTF-8 bytes, or None; lone surrogates are replaced."""
        if isinstance(value, bytes):
            self.add(value)
        elif isinstance(value, str):
            self.add(value.encode("utf-8", "replace"))
        else:
            self._waiting += 1

    def add_times(self, value: object, count: i64) -> None:
        """Add a text, or None, `count` times."""
        if isinstance(value, str):
            value = value.encode("utf-8", "replace")
        if not isinstance(value, bytes):
            self._waiting += count
            return
        if self._waiting:
            self._write_nulls()
        end: i64 = len(self._data)
        size: i64 = len(value)
        self._data.write(value * int(count))
        self._valid += count
        while count > 0:
            end += size
            write_i32_le(self._ends, i32(end))
            count -= 1

    def _fill(self, count: i64) -> None:
        end = i32(len(self._data))
        while count > 0:
            write_i32_le(self._ends, end)
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the texts since the last call."""
        if self._waiting:
            self._write_nulls()
        rows, nulls, validity = self._taken_validity()
        buffers = [validity, self._ends.getvalue(), self._data.getvalue()]
        self._data.truncate(0)
        self._ends.truncate(4)  # the first offset, 0, stays
        return ColumnBytes(rows, nulls, buffers)


class FlagWriter(ColumnWriter):
    """Writer of booleans."""

    __slots__ = ("_count", "_data", "_flags")

    def __init__(self) -> None:
        super().__init__()
        self._data = BytesWriter()
        self._flags: i64 = 0
        """flags that do not fill a byte yet"""
        self._count: i64 = 0

    def add(self, flag: bool) -> None:
        """Add a boolean."""
        if self._waiting:
            self._write_nulls()
        self._put(flag)
        self._valid += 1

    def _put(self, flag: bool) -> None:
        at: i64 = self._count & 7
        one: i64 = 1
        if flag:
            self._flags |= one << at
        self._count += 1
        if at == 7:
            self._data.append(u8(self._flags))
            self._flags = 0

    def add_value(self, value: object) -> None:
        """Add a boolean, or None."""
        if isinstance(value, bool):
            self.add(value)
        else:
            self._waiting += 1

    def _fill(self, count: i64) -> None:
        while count > 0:
            self._put(False)
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the flags since the last call."""
        if self._waiting:
            self._write_nulls()
        if self._count & 7:  # the last byte is not full
            self._data.append(u8(self._flags))
        rows, nulls, validity = self._taken_validity()
        column = ColumnBytes(rows, nulls, [validity, self._data.getvalue()])
        self._data.truncate(0)
        self._flags = self._count = 0
        return column


class ListWriter(ColumnWriter):
    """Writer of lists of texts."""

    __slots__ = ("_ends", "_items", "_seen")

    def __init__(self) -> None:
        super().__init__()
        self._items = TextWriter()
        self._seen: i64 = 0
        self._ends = BytesWriter()
        write_i32_le(self._ends, 0)

    def add(self, texts: list[str]) -> None:
        """Add a list."""
        if self._waiting:
            self._write_nulls()
        for text in texts:
            self._items.add_value(text)
        self._seen += len(texts)
        write_i32_le(self._ends, i32(self._seen))
        self._valid += 1

    def add_value(self, value: object) -> None:
        """Add a list, or None."""
        if isinstance(value, list):
            self.add(value)
        else:
            self._waiting += 1

    def _fill(self, count: i64) -> None:
        while count > 0:
            write_i32_le(self._ends, i32(self._seen))
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the lists since the last call."""
        if self._waiting:
            self._write_nulls()
        rows, nulls, validity = self._taken_validity()
        buffers = [validity, self._ends.getvalue()]
        self._ends.truncate(4)
        self._seen = 0
        return ColumnBytes(rows, nulls, buffers, self._items.take())


def writer_of(kind: str) -> ColumnWriter:
    """Return the writer for a column type of `dissectors.rows.column.Column`."""
    if kind == "time":
        return NumberWriter(PER_US, LAST_MICROSECOND)
    if kind == "list":
        return ListWriter()
    if kind == "bool":
        return FlagWriter()
    return TextWriter() if kind == "string" else NumberWriter()


_WIDEST: Final = 4
"""maximum bytes per character"""
_MOST_BYTES: Final = 64 * 1024 * 1024
"""maximum text bytes of a column part: Arrow offsets have 31 bits"""


@final
class ArrowSink(RowSink):
    """Buffered Arrow columns."""

    __slots__ = (
        "_announced_until",
        "_at",
        "_bytes",
        "_columns",
        "_done",
        "_places",
        "_rows",
        "_taken",
    )

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = [writer_of(column.type) for column in columns]
        self._done: list[list[ColumnBytes]] = []
        self._at: i64 = 0
        self._rows: i64 = 0
        self._taken: i64 = 0
        self._bytes: i64 = 0
        self._places = {column.name: place for place, column in enumerate(columns)}
        self._announced_until: i64 = 0

    @property
    def waiting(self) -> int:
        return int(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether the buffered columns should be taken."""
        return bool(self._done)

    def take(self) -> list[list[ColumnBytes]]:
        """Return the columns since the last call, in parts of bounded size."""
        self._end_part()
        parts, self._done = self._done, []
        self._rows = self._taken = self._announced_until = 0
        return parts

    def _end_part(self) -> None:
        """End the current part if it has rows."""
        if self._rows > self._taken:
            self._done.append([column.take() for column in self._columns])
            self._taken = self._rows
        self._bytes = 0

    def _next(self) -> ColumnWriter:
        column = self._columns[self._at]
        self._at += 1
        return column

    def _next_numbers(self) -> NumberWriter:
        column = self._next()
        assert isinstance(column, NumberWriter)
        return column

    def _next_texts(self) -> TextWriter:
        column = self._next()
        assert isinstance(column, TextWriter)
        return column

    def number(self, name: str, number: i64) -> None:  # noqa: ARG002
        self._next_numbers().add_known(number)

    def integer(self, name: str, number: i64) -> None:  # noqa: ARG002
        self._next_numbers().add(number)

    def time(self, name: str, ns: i64) -> None:  # noqa: ARG002
        self._next_numbers().add(ns // PER_US)

    def flag(self, name: str, flag: bool) -> None:  # noqa: ARG002
        column = self._next()
        assert isinstance(column, FlagWriter)
        column.add(flag)

    def plain(self, name: str, data: bytes, place: i64) -> None:  # noqa: ARG002
        self._bytes += (place & PLACE_END) - (place >> 32)
        self._next_texts().add_place(data, place)

    def utf8(self, name: str, data: bytes, start: i64, stop: i64) -> None:  # noqa: ARG002
        column = self._next_texts()
        self._bytes += stop - start
        if start == stop:
            column.add_null()
        # Other bytes may not be UTF-8, which readers of Arrow and Parquet reject.
        elif _is_ascii(data, start, stop):
            column.add_range(data, start, stop)
        else:
            column.add(data[start:stop].decode("utf-8", "replace").encode())

    def text(self, name: str, text: str | None) -> None:  # noqa: ARG002
        if text is not None:
            self._bytes += len(text) * _WIDEST
        self._next().add_value(text)

    def texts(self, name: str, texts: list[str]) -> None:  # noqa: ARG002
        for text in texts:
            self._bytes += len(text) * _WIDEST
        self._next().add_value(texts)

    def null(self, name: str) -> None:  # noqa: ARG002
        self._next().add_null()

    def part(self, name: str, values: Sequence[object]) -> RowPart:
        part = RowPart(
            [one.encode("utf-8", "replace") if isinstance(one, str) else one for one in values], b""
        )
        part.place = self._places[name]
        part.text_bytes = sum(len(one) for one in part.values if isinstance(one, bytes))
        return part

    def shared(self, part: RowPart) -> None:
        for value in part.values:
            self._next().add_value(value)
        self._bytes += part.text_bytes

    def value(self, name: str, value: object) -> None:  # noqa: ARG002
        if isinstance(value, str):
            self._bytes += len(value) * _WIDEST
        self._next().add_value(value)

    def repeat(self, parts: list[RowPart], count: i64) -> None:
        # Columns need no rows: add all values now, unless there are too many.
        size: i64 = 0
        for part in parts:
            size += part.text_bytes * count
        if size >= _MOST_BYTES:
            return
        for part in parts:
            part.is_announced = True
            at: i64 = part.place
            for value in part.values:
                self._columns[at].add_times(value, count)
                at += 1
        self._announced_until = self._rows + count

    def repeated(self, part: RowPart) -> None:
        if part.is_announced:
            self._at += part.size
            self._bytes += part.text_bytes
        else:
            self.shared(part)

    def end(self) -> None:
        assert self._at == len(self._columns)
        self._at = 0
        self._rows += 1
        # The columns of announced rows are ahead of the others: no part may end between them.
        if self._bytes >= _MOST_BYTES and self._rows >= self._announced_until:
            self._end_part()


def _is_ascii(data: bytes, at: i64, stop: i64) -> bool:
    while at < stop:
        if i64(data[at]) >= 0x80:
            return False
        at += 1
    return True
