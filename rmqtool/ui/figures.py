"""Numbers as people read them: durations, sizes, counts, times of day."""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.printable import printable
from dissectors.quantities import duration_text, three_digits
from dissectors.times import UTC_ZONE, Zone, text_of_time

_zone = UTC_ZONE


def show_times_in(zone: Zone) -> None:
    """Set the display time zone of this process; each command sets its own."""
    global _zone
    _zone = zone


def zone_name() -> str:
    """Return the name of the display time zone."""
    return _zone.name


def duration(us: int | None) -> str:
    """Return microseconds as `duration_text` does; absent: -."""
    return "-" if us is None else duration_text(us)


def size(count: int | None) -> str:
    """Return bytes in three digits: ``324 B``, ``4.10 kB``, ``745 MB``; absent: -."""
    if count is None:
        return "-"
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5:  # more would be rounded to 1000
            return f"{three_digits(value)} {unit}"
    return f"{three_digits(value / 1000)} TB"


def count(number: int) -> str:
    """Return a number with thousands separators."""
    return f"{number:,}"


def share(part: int, whole: int) -> str:
    """Return a percentage; only exact values become 0% and 100%."""
    if part == 0 or whole == 0:
        return "0%"
    percent = 100 * part / whole
    if part == whole:
        return "100%"
    return "<0.1%" if percent < 0.1 else f"{min(percent, 99.9):.1f}%"


def clock(ns: int | None) -> str:
    """Return the time of day to the millisecond, ``10:00:00.123``; absent: -."""
    return "-" if ns is None else text_of_time(_zone.local(ns))[11:23]


def day(ns: int) -> str:
    """Return the date, ``2026-11-20``."""
    return text_of_time(_zone.local(ns))[:10]


def moment(ns: int | None) -> str:
    """Return the time in full, to the microsecond; absent: -."""
    if ns is None:
        return "-"
    return text_of_time(ns) if _zone is UTC_ZONE else _zone.text(ns)


def text_of_counts(counts: Mapping[str, int]) -> str:
    """Return ``TLS 2, HTTP 1``, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{printable(name)} {count(number)}" for name, number in ranked)
