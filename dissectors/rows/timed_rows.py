"""Times of rows as text: needed for JSON lines, and the costly part of encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from librt.strings import BytesWriter, write_i64_le
from msgspec.structs import force_setattr
from mypy_extensions import i64

from ..json_bytes import digits_of
from ..times import text_of_time

_LATEST: Final = (1 << 62) - 1
"""maximum time that is formatted here, nanoseconds"""
_NANOSECONDS: Final[i64] = 1_000_000_000
_TIME_END: Final = 0x225A000000000000
"""`Z"` as the last two of eight bytes"""
_THREE_DIGITS: Final = [f"{number:03d}" for number in range(1000)]


@final
class TimeTexts:
    """Formats times, most of which share the second of the previous one."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second: i64 = -1
        self._text = ""

    def of(self, ns: int) -> str:
        """Return the text of a time."""
        if not 0 <= ns <= _LATEST:
            return text_of_time(ns)
        at: i64 = ns
        second: i64 = at // _NANOSECONDS
        if second != self._second:
            self._second = second
            self._text = text_of_time(int(at))[:-7]  # without microseconds and Z
        micros: i64 = at % _NANOSECONDS // 1000
        return f"{self._text}{_THREE_DIGITS[micros // 1000]}{_THREE_DIGITS[micros % 1000]}Z"


@final
class TimeWriter:
    """Writes times as JSON strings, most of which share the second of the previous one."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second: i64 = -1
        self._text = b""

    def put(self, out: BytesWriter, ns: i64) -> None:
        """Write a time."""
        if ns < 0 or ns > _LATEST:
            out.write(b'"' + text_of_time(int(ns)).encode("ascii") + b'"')
            return
        second: i64 = ns // _NANOSECONDS
        if second != self._second:
            self._second = second
            self._text = b'"' + text_of_time(int(ns))[:-7].encode("ascii")
        out.write(self._text)
        write_i64_le(out, digits_of(ns % _NANOSECONDS // 1000, 6) | _TIME_END)


class TextTimes:
    """Replaces the times of structs with texts while they are encoded."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are the time fields; each caches its last second."""
        self._columns = [(name, TimeTexts()) for name in names]

    def encoded(self, rows: Sequence[Any], encode: Callable[[Sequence[Any]], bytes]) -> bytes:
        """Return the encoded rows, whose times are restored afterwards.

        Copying a row would take longer than setting its times twice.
        """
        before: list[list[int | None]] = []
        for name, texts in self._columns:
            times = [getattr(row, name) for row in rows]
            before.append(times)
            for at, row in enumerate(rows):
                ns = times[at]
                if ns is not None:
                    force_setattr(row, name, texts.of(ns))
        try:
            return encode(rows)
        finally:
            for column, times in zip(self._columns, before, strict=True):
                for at, row in enumerate(rows):
                    force_setattr(row, column[0], times[at])
