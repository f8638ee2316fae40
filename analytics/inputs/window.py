"""The requested time range, as far as known before rows are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dissectors.times import Moment, moment_of

if TYPE_CHECKING:
    from dissectors.decode.log_parts import PartEntry


class TimeWindow(NamedTuple):
    """A requested time range: parts of logs outside it are not opened."""

    since: int | None = None
    """nanoseconds since the epoch; None: from the beginning"""
    until: int | None = None
    """nanoseconds since the epoch, exclusive; None: to the end"""

    def takes(self, part: PartEntry) -> bool:
        """Return whether a part may have rows in the range."""
        first, last = (_ns_of(text) for text in (part.first_time, part.last_time))
        if first is None or last is None:
            return True
        # stored times are in microseconds
        return (self.since is None or last + 999 >= self.since) and (
            self.until is None or first < self.until
        )


def time_of(since: Moment | None, until: Moment | None) -> TimeWindow:
    """Return the range between two moments, or an open one if a moment has only a time of day."""
    # the day of a time without a date is that of the first exchange, which is not known yet
    if any(moment is not None and not moment.has_date for moment in (since, until)):
        return TimeWindow()
    return TimeWindow(*(None if moment is None else moment.ns for moment in (since, until)))


def _ns_of(text: str | None) -> int | None:
    moment = moment_of(text) if text is not None else None
    return None if moment is None else moment.ns
