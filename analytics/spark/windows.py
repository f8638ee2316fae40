"""Windows over time: how long they are, and where they begin.

Rules: a window has a length that people count in (1, 2, 5, 10, 15, 30 of a unit), begins at a whole
multiple of it, and there are about sixty unless a length is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def with_window(frame: DataFrame, time: str, length_us: int | None) -> DataFrame:
    """Return `frame` with `window_start` (time; null where `time` is) and `window_us`.

    The length is looked for with another look at the column where none is given.
    """
    if length_us is None:
        span = frame.selectExpr(f"unix_micros(max({time})) - unix_micros(min({time})) as _span")
        length = span.selectExpr(f"{length_of('_span')} as window_us")
        frame = frame.crossJoin(F.broadcast(length))
    else:
        frame = frame.selectExpr("*", f"{int(length_us)}L as window_us")
    micros = f"unix_micros({time})"
    return frame.selectExpr(
        "*", f"timestamp_micros({micros} - pmod({micros}, window_us)) as window_start"
    )


def window_of(span_us: int) -> int:
    """Return the length that cuts a span into at most about `WINDOWS`."""
    return next((one for one in LENGTHS_US if span_us <= one * WINDOWS), LENGTHS_US[-1])


def length_of(span_us: str) -> str:
    """Return, as SQL, the length that cuts a span into at most about `WINDOWS`; null: a second."""
    cases = " ".join(
        f"when {span_us} <= {length * WINDOWS}L then {length}L" for length in LENGTHS_US
    )
    return f"case when {span_us} is null then {_S}L {cases} else {LENGTHS_US[-1]}L end"
