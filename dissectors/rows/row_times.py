"""Time range of a row of any table, by its columns."""

from __future__ import annotations

from typing import NamedTuple

Span = tuple[int | None, int | None]
"""begin and end, ns since the epoch; None: unknown"""


class RowTimes(NamedTuple):
    """The columns with begin and end of a table's rows."""

    until: tuple[str, ...]
    """the first of these with a value is the end"""
    since: str | None = None
    """column of the begin; None: equal to the end"""
    took: str | None = None
    """column with the duration before the end, µs"""

    def of_row(self, row: object) -> Span:
        """Return begin and end of a row."""
        times = (getattr(row, name) for name in self.until)
        last: int | None = next((time for time in times if time is not None), None)
        if last is None:
            return None, None
        if self.since is not None:
            return getattr(row, self.since), last
        took = getattr(row, self.took) if self.took is not None else None
        return last - (took or 0) * 1000, last
