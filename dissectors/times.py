"""Times as text: nanoseconds since the epoch ↔ ISO 8601 in UTC.

A time without a zone is UTC, in both directions: a capture is read far from where it was recorded,
and a local time would change its meaning. Text shows microseconds, which is what captures have;
nanoseconds are kept inside.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59, the last that a datetime can show

_TIME = re.compile(
    r"(?:(?P<date>\d{4}-\d{2}-\d{2})(?:[Tt ](?=\d)|$))?"
    r"(?:(?P<clock>\d{1,2}:\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)


class Moment(NamedTuple):
    """A time as somebody wrote it."""

    ns: int
    """nanoseconds since the epoch; without a date: since midnight"""
    has_date: bool
    """False: a time of day"""


@lru_cache(maxsize=4096)
def _text_of_second(second: int) -> str:
    clamped = min(max(second, 0), _LAST_SECOND)
    return datetime.fromtimestamp(clamped, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def text_of_time(ns: int) -> str:
    """Return ``2026-11-20T10:00:00.123456Z``; years over 9999 are shown as the last moment of 9999.

    The part down to the second is remembered, so that rows in order cost one division each.
    """
    second, rest = divmod(ns, SECOND)
    return f"{_text_of_second(second)}{rest // 1000:06d}Z"


def moment_of(text: str) -> Moment | None:
    """Return the time that `text` names, None where it names none.

    Known are ``2026-11-20``, ``2026-11-20T10:00``, seconds with a fraction of up to nine digits, a
    zone (``Z``, ``+08:00``; UTC where there is none), and a time of day alone.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or not (match["date"] or match["clock"]):
        return None
    if match["zone"] and not (match["date"] and match["clock"]):
        return None
    clock = f"{match['clock'] or '0:00'}:{match['second'] or '00'}"
    try:
        value = datetime.strptime(f"{match['date'] or '1970-01-01'} {clock}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    offset = _zone_of(match["zone"] or "Z")
    seconds = (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    fraction = int((match["fraction"] or "").ljust(9, "0"))
    return Moment((seconds - offset) * SECOND + fraction, match["date"] is not None)


def _zone_of(text: str) -> int:
    """Return the seconds that a zone is east of UTC."""
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def start_of_day(ns: int) -> int:
    """Return the midnight (UTC) before `ns`."""
    return ns - ns % DAY
