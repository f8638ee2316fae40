"""Times as text: nanoseconds since the epoch ↔ ISO 8601 in UTC or a requested zone.

A time without a zone is UTC unless a zone is given, in both directions: captures are often read far
from where they were recorded, and a local time would change their meaning. Text shows microseconds,
the resolution of most captures; nanoseconds are kept inside.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from .foreign import natural_of

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59, the last one of datetime

_TIME = re.compile(
    r"(?:(?P<date>\d{4}-\d{2}-\d{2})(?:[Tt ](?=\d)|$))?"
    r"(?:(?P<clock>\d{1,2}:\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)


_QUARTER = 900
"""Seconds between possible changes of an offset: changes are at quarters of an hour."""
_OFFSETS_KEPT = 4096


class Zone:
    """A time zone: the UTC offset of its clocks."""

    def __init__(self, name: str, offset_at: Callable[[int], int]) -> None:
        """`offset_at`: seconds since the epoch → seconds ahead of UTC."""
        self.name = name
        """name as requested"""
        self._offset_at = lru_cache(maxsize=_OFFSETS_KEPT)(offset_at)

    def offset(self, ns: int) -> int:
        """Return the nanoseconds that clocks are ahead of UTC at a time."""
        quarter = min(max(ns // SECOND, 0), _LAST_SECOND - DAY // SECOND) // _QUARTER
        return self._offset_at(quarter * _QUARTER) * SECOND

    def local(self, ns: int) -> int:
        """Return the local time, as nanoseconds as if in UTC."""
        return ns + self.offset(ns)

    def instant(self, local: int) -> int:
        """Return the instant of a local time; the later one if clocks show it twice."""
        # The offset depends on the instant: guess with the local time, then use that instant's.
        guess = local - self.offset(local)
        later = local - self.offset(guess + 3600 * SECOND)
        return later if self.local(later) == local else local - self.offset(guess)

    def text(self, ns: int) -> str:
        """Return ``2026-11-20T18:00:00.123456+08:00``."""
        minutes = self.offset(ns) // (60 * SECOND)
        sign = "-" if minutes < 0 else "+"
        hours, minutes = divmod(abs(minutes), 60)
        return f"{text_of_time(self.local(ns))[:-1]}{sign}{hours:02d}:{minutes:02d}"


UTC_ZONE = Zone("UTC", lambda _: 0)
_OFFSET = re.compile(r"[+-]\d{2}:?\d{2}", re.ASCII)


def zone_named(name: str) -> Zone | None:
    """Return a zone by name: ``UTC``, ``local``, ``+08:00``, ``Asia/Shanghai``; or None."""
    if name.upper() in ("UTC", "Z"):
        return UTC_ZONE
    if name.lower() == "local":
        return Zone("local", lambda second: time.localtime(second).tm_gmtoff)
    if _OFFSET.fullmatch(name):
        return _fixed_zone(name)
    from zoneinfo import ZoneInfo  # slow to import and seldom needed

    try:
        info = ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, an invalid name, or a folder of zones
        return None

    def offset_at(second: int) -> int:
        offset = datetime.fromtimestamp(second, info).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    return Zone(name, offset_at)


@lru_cache(maxsize=64)
def _fixed_zone(text: str) -> Zone:
    """Return the zone of an offset: one object each, so that times of day can be compared."""
    seconds = _zone_of(text)
    return Zone(text, lambda _: seconds) if seconds else UTC_ZONE


class Moment(NamedTuple):
    """A time in user input."""

    ns: int
    """nanoseconds since the epoch; without a date: since midnight"""
    has_date: bool
    """False: a time of day"""
    zone: Zone = UTC_ZONE
    """zone of a time of day"""

    def on_day_of(self, ns: int) -> int:
        """Return the time; a time of day on the day of `ns`."""
        if self.has_date:
            return self.ns
        local = self.zone.local(ns)
        return self.zone.instant(local - local % DAY + self.ns)


Bounds = tuple[int | None, int | None]
"""Since and until, ns since the epoch, end excluded; None: unbounded."""


def bounds(since: Moment | None, until: Moment | None, first: int) -> Bounds:
    """Return a window in ns, end excluded; times of day are on the day of `first`."""
    start, end = (None if moment is None else moment.on_day_of(first) for moment in (since, until))
    return start, end


def between(since: Moment | None, until: Moment | None, first: int) -> Callable[[int | None], bool]:
    """Return a test whether a time is in a window; times of day are on the day of `first`.

    An absent time is in no window.
    """
    start, end = bounds(since, until, first)

    def holds(ns: int | None) -> bool:
        if ns is None:
            return False
        return (start is None or ns >= start) and (end is None or ns < end)

    return holds


@lru_cache(maxsize=4096)
def _text_of_second(second: int) -> str:
    clamped = min(max(second, 0), _LAST_SECOND)
    return datetime.fromtimestamp(clamped, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def text_of_time(ns: int) -> str:
    """Return ``2026-11-20T10:00:00.123456Z``; years over 9999 become the last moment of 9999.

    The text down to the second is cached: rows in order cost one division each.
    """
    second, rest = divmod(ns, SECOND)
    return f"{_text_of_second(second)}{rest // 1000:06d}Z"


def moment_of(text: str, zone: Zone = UTC_ZONE) -> Moment | None:
    """Parse a time, or return None.

    Accepts ``2026-11-20``, ``2026-11-20T10:00``, seconds with up to nine decimals, an offset
    (``Z``, ``+08:00``; default: `zone`), and a time of day, also with offset.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or not (match["date"] or match["clock"]):
        return None
    if match["zone"] and not match["clock"]:
        return None
    clock = f"{match['clock'] or '0:00'}:{match['second'] or '00'}"
    try:
        value = datetime.strptime(f"{match['date'] or '1970-01-01'} {clock}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    seconds = (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    local = seconds * SECOND + (natural_of((match["fraction"] or "").ljust(9, "0")) or 0)
    if match["date"]:
        offset = match["zone"]
        return Moment(local - _zone_of(offset) * SECOND if offset else zone.instant(local), True)
    return Moment(local, False, _fixed_zone(match["zone"]) if match["zone"] else zone)


def _zone_of(text: str) -> int:
    """Return the UTC offset of a zone in seconds."""
    if text in "Zz":
        return 0
    hours, minutes = natural_of(text[1:3]) or 0, natural_of(text[-2:]) or 0
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds
