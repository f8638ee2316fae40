"""Requests in flight at servers: average and peak.

A request is in flight from its packet to that of its response. Starts and ends are counted per time
slice and accumulated: no task sees the requests of a broker in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..sends.broker_names import with_names
from ..sql.relation import Relation

if TYPE_CHECKING:
    from ..kept import Kept

SLICES: Final = 1000
"""Minimum number of slices per window; the peak is the highest average over one slice."""
_WHO: Final = ("broker", "long_poll")
_LONGEST_US: Final = 2**60
"""Bound for latencies, so that adding one to a time does not overflow."""


def in_flight(kept: Kept, seen: Relation, names: Relation, length_us: int) -> Relation:
    """Return one row per broker (null: all), kind of request, and window with any activity.

    `in_flight` is the average over the window, `peak_in_flight` the highest over one of its slices;
    `waited_us`, `first_us` and `last_us` are for `of_brokers`.
    """
    most = max(1, length_us // SLICES)
    # the longest slice that divides the window: no slice is in two windows
    slice_us = next(length for length in range(most, 0, -1) if length_us % length == 0)
    levels = _levels(_slices(kept, seen, names, length_us, slice_us), slice_us)
    window_end = f"window_us + {length_us}L"
    # during a gap the level is constant
    head, tail = (
        f"if({near}, {level}, 0L)"
        for near, level in (
            (f"slice_us > greatest(window_us, coalesce(last_slice + {slice_us}L, 0L))", "before"),
            (f"slice_us + {slice_us}L < least({window_end}, next_slice)", "before + net"),
        )
    )
    windows = levels.grouped(
        (*_WHO, "window_us"),
        {
            "peak_in_flight": f"max(greatest(before + moved / {slice_us}D, {head}, {tail}))",
            "moved": f"sum(moved + net * ({window_end} - slice_us - {slice_us}L))",
            **{name: f"sum({name})" for name in ("net", "waited_us")},
            "first_us": "min(first_us)",
            "last_us": "max(last_us)",
        },
    )
    before = _before("window_us")
    return windows.adding(
        {
            "in_flight": f"{before} + moved / {length_us}D",
            "window_start": "timestamp_micros(window_us)",
        }
    )


def _slices(kept: Kept, seen: Relation, names: Relation, length_us: int, slice_us: int) -> Relation:
    """Return the starts and ends in each slice, by broker and for all brokers."""
    # without a response, it is unknown how long the client waited
    answered = seen.where("latency_us is not null and request_time is not null")
    begin, took = "unix_micros(request_time)", f"greatest(least(latency_us, {_LONGEST_US}L), 0L)"
    ends = (
        f"explode(array(named_struct('at', {begin}, 'step', 1L, 'took', {took}),"
        f" named_struct('at', {begin} + {took}, 'step', -1L, 'took', 0L))) as one"
    )
    moves = answered.select("server_address", "long_poll", ends)
    placed = moves.select(
        "server_address",
        "long_poll",
        *("one.at as moment", "one.step as step", "one.took as took"),
        f"one.at - pmod(one.at, {slice_us}L) as slice_us",
    )
    counted = placed.grouped(
        ("server_address", "long_poll", "slice_us"),
        {
            "net": "sum(step)",
            "moved": f"sum(step * (slice_us + {slice_us}L - moment))",
            "waited_us": "sum(cast(took as double))",
            "first_us": "min(moment)",
            "last_us": "max(moment)",
        },
    )
    sums = {
        **{name: f"sum({name})" for name in ("net", "moved", "waited_us")},
        "first_us": "min(first_us)",
        "last_us": "max(last_us)",
    }
    by_broker = with_names(kept.frame(counted), names).grouped((*_WHO, "slice_us"), sums)
    totals = by_broker.grouped(("long_poll", "slice_us"), sums)
    slices = by_broker.union(totals.adding({"broker": "cast(null as string)"}))
    return slices.adding({"window_us": f"slice_us - pmod(slice_us, {length_us}L)"})


def _levels(slices: Relation, slice_us: int) -> Relation:
    """Return the slices with the requests in flight before each, and their neighbors."""
    order = f"over (partition by {', '.join(_WHO)} order by slice_us)"
    return slices.adding(
        {
            "before": _before("slice_us"),
            "last_slice": f"lag(slice_us) {order}",
            "next_slice": f"coalesce(lead(slice_us) {order}, slice_us + {slice_us}L)",
        }
    )


def _before(order: str) -> str:
    """Return, as SQL, the requests in flight at the start of a slice or window."""
    earlier = f"partition by {', '.join(_WHO)} order by {order}"
    return (
        f"coalesce(sum(net) over ({earlier} rows between unbounded preceding and 1 preceding), 0L)"
    )


def of_brokers(windows: Relation) -> Relation:
    """Return the average and peak of each broker and kind of request over the whole input."""
    return windows.where("broker is not null").grouped(
        _WHO,
        {
            "in_flight": "sum(waited_us) / nullif(max(last_us) - min(first_us), 0L)",
            "peak_in_flight": "max(peak_in_flight)",
        },
    )
