"""The time that was asked for: which exchanges a diagnosis looks at."""

from __future__ import annotations

from collections.abc import Callable

from dissectors.rows.record import ExchangeRecord
from dissectors.times import between

from ..api.tables.exchanges import time_of_exchange
from .request import DiagnoseRequest


def window_of(
    request: DiagnoseRequest, first_time: Callable[[], int] | None = None
) -> Callable[[ExchangeRecord], bool] | None:
    """Return the test of the time that was asked for; None: all of it.

    Times of day are of the day of `first_time`, the first packet's (ns, known once there are
    exchanges); None: of the first exchange that is tested.
    """
    if request.since is None and request.until is None:
        return None
    holds: Callable[[int | None], bool] | None = None

    def in_window(row: ExchangeRecord) -> bool:
        """Return whether an exchange began, or else ended, in that time."""
        nonlocal holds
        time = time_of_exchange(row)
        if time is None:
            return False
        if holds is None:
            first = time if first_time is None else first_time()
            holds = between(request.since, request.until, first)
        return holds(time)

    return in_window
