"""The way of rows from a run to who asked: filtered, limited, as the table shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dissectors.decode.pipeline import Decode
from dissectors.remoting.bodies.custom import NamedDecoder, decoding_with
from dissectors.remoting.bodies.messages import PREVIEW_LIMIT as PREVIEW

from .choice import chosen
from .tables.table import Table
from .translated import translated

__all__: Final = ("PREVIEW", "read_rows")


def read_rows(
    table: Table[Any],
    started: Callable[[], Decode],
    room: int | None,
    tests: Sequence[Callable[[object], bool]],
    plugins: Sequence[NamedDecoder],
    body_limit: int,
) -> Iterator[Sequence[Any]]:
    """Read to the end, or until `room` rows were given; `started` opens the input.

    The plug-ins are there only while rows are made, and not for what the caller does meanwhile.
    """
    batches: Iterator[Sequence[Any]] | None = None
    show = table.shown
    while room is None or room > 0:
        with translated(), decoding_with(plugins):
            if batches is None:
                decode = started()
                batches = iter(table.batches(decode))
            batch = next(batches, None)
            if batch is None:
                return
            decode.take_experts()  # the table that wants them has them
            rows = chosen(batch, tests, room)
            if show is not None:
                shown = [show(row, decode.sources, body_limit) for row in rows]
        yield rows if show is None else shown
        if room is not None:
            room -= len(rows)
