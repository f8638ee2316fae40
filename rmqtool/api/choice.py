"""The choice of rows: a filter, a time window, a limit; as text or values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from dissectors.times import SECOND, moment_of

from ..errors import ArgumentError, FilterError
from .tables.table import Table

if TYPE_CHECKING:
    from dissectors.where.conditions import Test
    from dissectors.where.fields import FieldSet

Time = str | datetime
"""A time with its date: ISO 8601, UTC without an offset; or a datetime, UTC without a zone."""
SORTS: Final = ("time", "latency")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of rows of a table."""

    where: str = ""
    """a filter; empty: all"""
    since: int | None = None
    """nanoseconds since the epoch; None: from the beginning"""
    until: int | None = None
    """nanoseconds since the epoch, not included; None: to the end"""
    limit: int | None = None
    """most rows; None: all"""
    sort: str | None = None
    """`time`, or `latency` for the slowest first; None: as completed"""

    def restrictions(self) -> dict[str, object]:
        """Return the restrictions on rows, for the manifest of a log."""
        from dissectors.times import text_of_time

        texts: dict[str, object | None] = {
            "where": self.where or None,
            "since": None if self.since is None else text_of_time(self.since),
            "until": None if self.until is None else text_of_time(self.until),
            "limit": self.limit,
        }
        return {name: value for name, value in texts.items() if value is not None}


def choice_of(
    where: str = "",
    since: Time | None = None,
    until: Time | None = None,
    limit: int | None = None,
    sort: str | None = None,
) -> Choice:
    """Return the choice; raise ArgumentError for an invalid time, limit, or order."""
    if limit is not None and limit < 0:
        raise ArgumentError(f"limit: {limit} is negative")
    if sort not in (None, *SORTS):
        raise ArgumentError(f"sort: {sort!r} is not an order", hint=f"give {' or '.join(SORTS)}")
    return Choice(where, _ns_of("since", since), _ns_of("until", until), limit, sort)


def _ns_of(name: str, time: Time | None) -> int | None:
    if time is None:
        return None
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        # exact, unlike `timestamp()`, which is a float
        return (aware - _EPOCH) // timedelta(microseconds=1) * (SECOND // 1_000_000)
    moment = moment_of(time)
    if moment is None or not moment.has_date:
        raise ArgumentError(
            f"{name}: {time!r} is not a time with a date",
            hint="give 2026-11-20T10:00:00, or a datetime",
        )
    return moment.ns


def test_of(where: str, fields: FieldSet) -> Test | None:
    """Return the test of a filter, or None without a filter; raise FilterError."""
    if not where.strip():
        return None
    from dissectors.where.filter import WhereError, compile_where

    try:
        return compile_where(where, fields)
    except WhereError as error:
        raise FilterError(error.reason, hint=error.pointed()) from None


def in_window(
    table: Table[Any], choice: Choice, always: bool = False
) -> Callable[[object], bool] | None:
    """Return the test of the time, or None if the run tests it or no time is set.

    `always`: there is no run.
    """
    if (table.windowed and not always) or (choice.since is None and choice.until is None):
        return None
    time, since, until = table.time, choice.since, choice.until

    def test(row: object) -> bool:
        seen = time(row)
        if seen is None:
            return False
        return (since is None or seen >= since) and (until is None or seen < until)

    return test


def chosen(
    rows: Sequence[Any], tests: Sequence[Callable[[object], bool]], room: int | None
) -> Sequence[Any]:
    """Return the rows that pass all tests, at most `room`."""
    for test in tests:
        rows = [row for row in rows if test(row)]
    return rows if room is None else rows[:room]
