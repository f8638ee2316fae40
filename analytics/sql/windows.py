"""Windows over time: how long they are, and where they begin.

Rules: a window has a length that people count in (1, 2, 5, 10, 15, 30 of a unit), begins at a whole
multiple of it, and there are about sixty unless a length is asked for.
"""

from __future__ import annotations

from .relation import Relation

WINDOWS = 60
"""About how many windows there are."""
_MS, _S, _MIN, _H = 1_000, 1_000_000, 60_000_000, 3_600_000_000
LENGTHS_US: tuple[int, ...] = (
    *(n * _MS for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12, 24)),
)
"""Lengths that are chosen from, in microseconds."""


def with_window(relation: Relation, time: str, length_us: int) -> Relation:
    """Return a relation with `window_start` (time; null where `time` is) and `window_us`."""
    micros, length = f"unix_micros({time})", f"{int(length_us)}L"
    return relation.select(
        "*",
        f"{length} as window_us",
        f"timestamp_micros({micros} - pmod({micros}, {length})) as window_start",
    )


def window_of(span_us: int | None) -> int:
    """Return the length that cuts a span into at most about `WINDOWS`; None: a second."""
    if span_us is None:
        return _S
    return next((one for one in LENGTHS_US if span_us <= one * WINDOWS), LENGTHS_US[-1])
