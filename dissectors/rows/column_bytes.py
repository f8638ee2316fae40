"""Columns of Arrow as bytes, to which values are added without an object for each.

Numbers are 64 bits; a text is a range of one buffer; where a value is absent its bit in the
validity is 0. Arrow: Columnar Format, Physical Memory Layout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, u8

from ..json_bytes import ABSENT, NOTHING, PLACE_END, copy_range

LAST_MICROSECOND: Final = 253_402_300_799_999_999
"""of the year 9999"""
PER_US: Final = 1000
"""nanoseconds"""
_INT64: Final = (1 << 63) - 1


class ColumnBytes(NamedTuple):
    """The values of a column, as Arrow has them in memory."""

    rows: int
    nulls: int
    buffers: list[bytes | None]
    """validity (None: all are there), then offsets and bytes, or numbers"""
    child: ColumnBytes | None = None
    """of lists: all their items"""


class ColumnWriter:
    """Takes the values of one column."""

    __slots__ = ("_bits", "_nulls", "_rows", "_word")

    def __init__(self) -> None:
        self._bits = BytesWriter()
        self._word: i64 = 0
        self._rows: i64 = 0
        self._nulls: i64 = 0

    def _note(self, valid: bool) -> None:
        """Note whether the value that was added is there."""
        at: i64 = self._rows & 7
        if valid:
            self._word |= 1 << at
        else:
            self._nulls += 1
        self._rows += 1
        if at == 7:
            self._bits.append(u8(self._word))
            self._word = 0

    def _note_times(self, valid: bool, count: i64) -> None:
        """Note whether so many values that were added are there."""
        while count > 0 and self._rows & 7:
            self._note(valid)
            count -= 1
        whole: i64 = count >> 3
        if whole:
            self._bits.write((b"\xff" if valid else b"\0") * int(whole))
            self._rows += whole << 3
            if not valid:
                self._nulls += whole << 3
        count &= 7
        while count > 0:
            self._note(valid)
            count -= 1

    def _taken_validity(self) -> bytes | None:
        """Return the bits of all values, None where none is absent, and begin anew."""
        if self._rows & 7:
            self._bits.append(u8(self._word))
        bits = self._bits.getvalue() if self._nulls else None
        self._bits.truncate(0)
        self._word = 0
        self._rows = self._nulls = 0
        return bits

    def add_value(self, value: object) -> None:
        """Add a value of a row; what does not fit is clamped or replaced."""
        raise NotImplementedError

    def add_times(self, value: object, count: i64) -> None:
        """Add a value of so many rows."""
        while count > 0:
            self.add_value(value)
            count -= 1

    def take(self) -> ColumnBytes:
        """Return the values since the last call."""
        raise NotImplementedError


class NumberWriter(ColumnWriter):
    """Takes integers of 64 bits."""

    __slots__ = ("_data", "_most", "_per")

    def __init__(self, per: int = 1, most: int = _INT64) -> None:
        """`per`: so many of a row's unit are one here; `most` stands for what does not fit."""
        super().__init__()
        self._data = BytesWriter()
        self._per = per
        self._most = most

    def add(self, number: i64) -> None:
        """Add a number."""
        write_i64_le(self._data, number)
        self._note(True)

    def add_known(self, number: i64) -> None:
        """Add a number, none for NOTHING."""
        if number == NOTHING:
            self.add_null()
        else:
            self.add(number)

    def add_null(self) -> None:
        """Add nothing."""
        write_i64_le(self._data, 0)
        self._note(False)

    def add_value(self, value: object) -> None:
        """Add an integer, or None."""
        if not isinstance(value, int):
            self.add_null()
            return
        self.add(self._fitting(value))

    def _fitting(self, value: int) -> int:
        """Return a number of a row as it is here."""
        number = value // self._per
        if not -_INT64 - 1 <= number <= _INT64:
            number = min(max(number, -self._most), self._most)
        return number

    def add_times(self, value: object, count: i64) -> None:
        """Add an integer, or None, of so many rows."""
        number: i64 = 0
        if isinstance(value, int):
            number = self._fitting(value)
        left: i64 = count
        while left > 0:
            write_i64_le(self._data, number)
            left -= 1
        self._note_times(isinstance(value, int), count)

    def take(self) -> ColumnBytes:
        """Return the numbers since the last call."""
        rows, nulls = int(self._rows), int(self._nulls)
        taken = ColumnBytes(rows, nulls, [self._taken_validity(), self._data.getvalue()])
        self._data.truncate(0)
        return taken


class TextWriter(ColumnWriter):
    """Takes texts, as UTF-8."""

    __slots__ = ("_data", "_ends")

    def __init__(self) -> None:
        super().__init__()
        self._data = BytesWriter()
        self._ends = BytesWriter()
        write_i32_le(self._ends, 0)

    def add(self, text: bytes) -> None:
        """Add a text."""
        self._data.write(text)
        self._end(True)

    def add_range(self, data: bytes, at: i64, end: i64) -> None:
        """Add a text that is a range of bytes."""
        copy_range(self._data, data, at, end)
        self._end(True)

    def add_place(self, data: bytes, place: i64) -> None:
        """Add the text at a place, none for ABSENT."""
        if place == ABSENT:
            self.add_null()
        else:
            self.add_range(data, place >> 32, place & PLACE_END)

    def add_property(self, data: bytes, place: i64) -> None:
        """Add the value of a property; an empty one is none."""
        start: i64 = place >> 32
        end: i64 = place & PLACE_END
        if start == end:
            self.add_null()
        else:
            self.add_range(data, start, end)

    def add_null(self) -> None:
        """Add nothing."""
        self._end(False)

    def _end(self, valid: bool) -> None:
        write_i32_le(self._ends, i32(len(self._data)))
        self._note(valid)

    def add_value(self, value: object) -> None:
        """Add a text, or None; half a surrogate pair is replaced."""
        if isinstance(value, str):
            self.add(value.encode("utf-8", "replace"))
        else:
            self.add_null()

    def add_times(self, value: object, count: i64) -> None:
        """Add a text, or None, of so many rows."""
        data = value.encode("utf-8", "replace") if isinstance(value, str) else b""
        if data:
            self._data.write(data * int(count))
        size: i64 = len(data)
        end: i64 = len(self._data) - size * count
        left: i64 = count
        while left > 0:
            end += size
            write_i32_le(self._ends, i32(end))
            left -= 1
        self._note_times(isinstance(value, str), count)

    def take(self) -> ColumnBytes:
        """Return the texts since the last call."""
        rows, nulls = int(self._rows), int(self._nulls)
        buffers = [self._taken_validity(), self._ends.getvalue(), self._data.getvalue()]
        self._data.truncate(0)
        self._ends.truncate(4)
        return ColumnBytes(rows, nulls, buffers)


class FlagWriter(ColumnWriter):
    """Takes what is true or false."""

    __slots__ = ("_data", "_flags")

    def __init__(self) -> None:
        super().__init__()
        self._data = BytesWriter()
        self._flags: i64 = 0

    def add(self, flag: bool) -> None:
        """Add what is true or false."""
        self._put(flag)
        self._note(True)

    def add_null(self) -> None:
        """Add nothing."""
        self._put(False)
        self._note(False)

    def _put(self, flag: bool) -> None:
        at: i64 = self._rows & 7
        one: i64 = 1
        if flag:
            self._flags |= one << at
        if at == 7:
            self._data.append(u8(self._flags))
            self._flags = 0

    def add_value(self, value: object) -> None:
        """Add what is true or false, or None."""
        if isinstance(value, bool):
            self.add(value)
        else:
            self.add_null()

    def take(self) -> ColumnBytes:
        """Return the flags since the last call."""
        rows, nulls = int(self._rows), int(self._nulls)
        if rows & 7:
            self._data.append(u8(self._flags))
        taken = ColumnBytes(rows, nulls, [self._taken_validity(), self._data.getvalue()])
        self._data.truncate(0)
        self._flags = 0
        return taken


class ListWriter(ColumnWriter):
    """Takes lists of texts."""

    __slots__ = ("_ends", "_items", "_seen")

    def __init__(self) -> None:
        super().__init__()
        self._items = TextWriter()
        self._seen: i64 = 0
        self._ends = BytesWriter()
        write_i32_le(self._ends, 0)

    def add(self, texts: list[str]) -> None:
        """Add a list."""
        for text in texts:
            self._items.add_value(text)
        self._seen += len(texts)
        write_i32_le(self._ends, i32(self._seen))
        self._note(True)

    def add_value(self, value: object) -> None:
        """Add a list, or None."""
        if isinstance(value, list):
            self.add(value)
        else:
            write_i32_le(self._ends, i32(self._seen))
            self._note(False)

    def take(self) -> ColumnBytes:
        """Return the lists since the last call."""
        rows, nulls = int(self._rows), int(self._nulls)
        buffers = [self._taken_validity(), self._ends.getvalue()]
        self._ends.truncate(4)
        self._seen = 0
        return ColumnBytes(rows, nulls, buffers, self._items.take())


def writer_of(kind: str) -> ColumnWriter:
    """Return what takes the values of a column of a type of `dissectors.rows.column.Column`."""
    if kind == "time":
        return NumberWriter(PER_US, LAST_MICROSECOND)
    if kind == "list":
        return ListWriter()
    if kind == "bool":
        return FlagWriter()
    return TextWriter() if kind == "string" else NumberWriter()
