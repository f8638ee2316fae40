"""The time that was asked for: which exchanges a diagnosis looks at."""

from __future__ import annotations

from collections.abc import Callable

from dissectors.rows.record import ExchangeRecord
from dissectors.times import Moment

from ..api.tables.exchanges import time_of_exchange
from .request import DiagnoseRequest


def window_of(request: DiagnoseRequest) -> Callable[[ExchangeRecord], bool] | None:
    """Return the test of the time that was asked for; None: all of it."""
    if request.since is None and request.until is None:
        return None

    def in_window(row: ExchangeRecord) -> bool:
        """Return whether an exchange began, or else ended, in that time."""
        time = time_of_exchange(row)
        if time is None:
            return False
        since, until = _on_day(request.since, time), _on_day(request.until, time)
        return (since is None or time >= since) and (until is None or time < until)

    return in_window


def _on_day(moment: Moment | None, time: int) -> int | None:
    if moment is None:
        return None
    return moment.ns if moment.has_date else moment.on_day_of(time)
