"""Time windows: their lengths and starts.

Rules: a window has a round length (1, 2, 5, 10, 15, 30 of a unit) and starts at a whole multiple of
it; there are about sixty unless a length is given. A few rows that are months away from all others
(an unset clock) are excluded from the span.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, Final, NamedTuple

from .relation import Relation

if TYPE_CHECKING:
    from .engine import SqlEngine

WINDOWS = 60
"""Approximate number of windows."""
_MS, _S, _MIN, _H = 1_000, 1_000_000, 60_000_000, 3_600_000_000
LENGTHS_US: tuple[int, ...] = (
    *(n * _MS for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12, 24)),
)
"""Available lengths in microseconds."""


_DAY: Final = 24 * _H
_APART: Final = 30 * _DAY
"""µs without rows that separate stray rows from the others."""
_MOST_STRAY: Final = 0.05
"""Maximum share of stray rows."""


class Usual(NamedTuple):
    """The time range of nearly all rows."""

    first: int
    """µs since the epoch"""
    last: int
    """µs since the epoch"""
    stray: int
    """number of rows outside it"""


def usual_of(counts: Iterable[tuple[int, int, int]]) -> Usual | None:
    """Return the time range of nearly all rows from (first, last, rows) of parts, or None.

    Times are µs since the epoch. The result is None if no row has a time.
    """
    spans: list[Usual] = []
    total = 0
    for first, last, rows in sorted(counts):
        total += rows
        if spans and first - spans[-1].last <= _APART:
            before = spans[-1]
            spans[-1] = Usual(before.first, max(before.last, last), before.stray + rows)
        else:
            spans.append(Usual(first, last, rows))
    if not spans:
        return None
    most = max(spans, key=lambda span: span.stray)
    # Too many to be an unset clock: the input simply has a long pause.
    if total - most.stray > _MOST_STRAY * total:
        return Usual(spans[0].first, spans[-1].last, 0)
    return most._replace(stray=total - most.stray)


def span_of(
    engine: SqlEngine, relation: Relation, times: tuple[str, str], rows: Relation, time: str
) -> int | None:
    """Return the µs from the first to the last time of a relation without stray rows, or None.

    `times` are, as SQL, the first and the last time. See `usual_span`.
    """
    first, last = (f"unix_micros({moment})" for moment in times)
    times_of_rows = engine.rows(relation.grouped((), {"first": first, "last": last}))
    begin, end = (times_of_rows.column(name)[0].as_py() for name in ("first", "last"))
    return None if begin is None or end is None else usual_span(engine, begin, end, rows, time)


def usual_span(engine: SqlEngine, begin: int, end: int, rows: Relation, time: str) -> int:
    """Return the µs between two times (µs since the epoch), without stray rows.

    Only if these are far apart, all `rows` are queried for their `time`, an SQL expression.
    """
    if end - begin > _APART:
        day = rows.adding({"day": f"unix_micros({time}) div {_DAY}L"}).where("day is not null")
        of_days = {"first": f"unix_micros(min({time}))", "last": f"unix_micros(max({time}))"}
        days = engine.rows(day.grouped(("day",), {**of_days, "rows": "count(*)"}))
        columns = (days.column(name).to_pylist() for name in (*of_days, "rows"))
        usual = usual_of(zip(*columns, strict=True))
        if usual is not None:
            begin, end = max(begin, usual.first), min(end, usual.last)
    return max(0, end - begin)


def with_window(relation: Relation, time: str, length_us: int) -> Relation:
    """Return a relation with `window_start` (time; null where `time` is) and `window_us`."""
    micros, length = f"unix_micros({time})", f"{int(length_us)}L"
    return relation.select(
        "*",
        f"{length} as window_us",
        f"timestamp_micros({micros} - pmod({micros}, {length})) as window_start",
    )


def base_of(length_us: int) -> int:
    """Return the longest base window that composes this one and all longer ones."""
    return gcd(length_us, *(length for length in LENGTHS_US if length > length_us))


def window_of(span_us: int | None) -> int:
    """Return the length that divides a span into at most about `WINDOWS`; one second for None."""
    if span_us is None:
        return _S
    return next((length for length in LENGTHS_US if span_us <= length * WINDOWS), LENGTHS_US[-1])
