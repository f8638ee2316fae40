"""Durations, sizes, and counts: one grammar for options, filters, and faults; and text for people.

A number, perhaps with a fraction, then a unit; blanks between them and case do not matter. A bare
number is bytes, or seconds in an option for one duration. In filters and faults, which mix 20ms and
5s, a duration needs its unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

_SECOND = 1_000_000_000
DURATION_UNITS: Mapping[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "min": 60 * _SECOND,
    "h": 3_600 * _SECOND,
    "d": 86_400 * _SECOND,
}
"""unit of a duration → nanoseconds"""
SIZE_UNITS: Mapping[str, int] = {"b": 1, "bytes": 1} | {
    f"{letter}{mark}b": base**power
    for power, letter in enumerate("kmg", 1)
    for mark, base in (("", 1000), ("i", 1024))  # kB and KiB
}
"""unit of a size, lowercase → bytes"""
DURATIONS_SPELLED = "ns, us, ms, s, m, min, h, d"
SIZES_SPELLED = "B, kB, KiB, MB, MiB, GB, GiB"
_TRAILING_ZEROS = re.compile(r"\.0+(?= )|(?<=\.[1-9])0(?= )")
_QUANTITY = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-zµμ]*)", re.ASCII)


def duration_ns(text: str, bare: str = "") -> Fraction | None:
    """Parse ``200ms``, ``1.5 s``, ``5m``, or ``5min`` into nanoseconds, or return None.

    `bare` is the unit of a number without one; if empty, such a number is invalid.
    """
    return _value(text, DURATION_UNITS, bare)


def duration_text(us: int) -> str:
    """Format microseconds for people: ``876 µs``, ``12.5 s``, ``5 min 2 s``, ``13 h 41 min``."""
    if us < 0:
        return "-" + duration_text(-us)
    if us < 1000:
        return f"{us} µs"
    # With three digits, anything above would be 1000 ms.
    if us < 999_500:
        return three_digits(us / 1000) + " ms"
    # Anything above would be rounded to 120 s, which is 2 min.
    if us < 119_500_000:
        return three_digits(us / 1_000_000) + " s"
    seconds = round(us / 1_000_000)
    if seconds < 6_000:
        return _two_units(seconds, 60, "min", "s")
    if seconds < 172_800:
        return _two_units(seconds // 60, 60, "h", "min")
    return _two_units(seconds // 3_600, 24, "d", "h")


def plain_duration(us: int) -> str:
    """Format microseconds for a sentence: like `duration_text`, without trailing zeros: ``3 s``."""
    return _TRAILING_ZEROS.sub("", duration_text(us))


def _two_units(number: int, size: int, unit: str, smaller: str) -> str:
    whole, rest = divmod(number, size)
    return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 send``, ``1,200 sends``; default plural: noun + s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def three_digits(value: float) -> str:
    """Format a number from 1 to 999 with three significant digits."""
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def size_bytes(text: str) -> int | None:
    """Parse ``512``, ``4KiB``, or ``1.5 MB`` into bytes, or return None."""
    value = _value(text, SIZE_UNITS, "b")
    return None if value is None else int(value)


def _value(text: str, units: Mapping[str, int], bare: str) -> Fraction | None:
    match = _QUANTITY.fullmatch(text.strip().lower())
    factor = units.get(match[2] or bare) if match else None
    return None if match is None or factor is None else Fraction(match[1]) * factor
