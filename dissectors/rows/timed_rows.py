"""Rows with their times as text: what JSON lines need, and the costly part of writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from librt.strings import BytesWriter, write_i64_le
from msgspec.structs import force_setattr
from mypy_extensions import i64

from ..json_bytes import digits_of
from ..times import text_of_time
from .record import ExchangeRecord

_LATEST: Final = (1 << 62) - 1
"""nanoseconds up to which a time is taken apart here"""
_NANOSECONDS: Final[i64] = 1_000_000_000
_TIME_END: Final = 0x225A000000000000
"""`Z"` as the last two of eight bytes"""
_THREE_DIGITS: Final = [f"{number:03d}" for number in range(1000)]


@final
class TimeTexts:
    """Texts of times, most of which are of the same second as the one before."""

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
            self._text = text_of_time(int(at))[:-7]
        micros: i64 = at % _NANOSECONDS // 1000
        return f"{self._text}{_THREE_DIGITS[micros // 1000]}{_THREE_DIGITS[micros % 1000]}Z"


@final
class TimeWriter:
    """Writes times as JSON texts, most of which are of the same second as the one before."""

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


def with_text_times(
    records: Sequence[ExchangeRecord], encode: Callable[[Sequence[ExchangeRecord]], bytes]
) -> bytes:
    """Return what `encode` makes of the rows while they have texts where their times are.

    Afterwards they have their times again: to copy a row takes six times as long as to set two
    fields twice.
    """
    times_as_text = TimeTexts()
    times: list[tuple[int | None, int | None]] = []
    texts: list[tuple[str | None, str | None]] = []
    for record in records:
        request_time = record.request_time
        response_time = record.response_time
        times.append((request_time, response_time))
        texts.append(
            (
                None if request_time is None else times_as_text.of(request_time),
                None if response_time is None else times_as_text.of(response_time),
            )
        )
    try:
        _set_times(records, texts)
        return encode(records)
    finally:
        _set_times(records, times)


def _set_times(records: Sequence[Any], times: Sequence[tuple[object, object]]) -> None:
    """Set both times of rows."""
    for at, record in enumerate(records):
        record.request_time, record.response_time = times[at]


class TimesOfColumns:
    """The texts of the times in some columns, each of which remembers its last second."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns = [(name, TimeTexts()) for name in names]


def with_texts(rows: Sequence[Any], times: TimesOfColumns) -> Sequence[Any]:
    """Copy structs of one class, with texts where their times are, in the fields `times`.

    The copies break the type of the rows, so they must go nowhere but into an encoder.
    """
    return given_texts([row.__copy__() for row in rows], times)


def given_texts(rows: Sequence[Any], times: TimesOfColumns) -> Sequence[Any]:
    """Return the rows themselves, as `with_texts` copies them: nobody may need them afterwards."""
    for name, texts in times.columns:
        for row in rows:
            ns = getattr(row, name)
            if ns is not None:
                force_setattr(row, name, texts.of(ns))
    return rows
