"""Whether captures are decoded by one process or by several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ..budget import Budget
from ..decode.pipeline import Decode, DecodeOptions
from ..rows.encoded import EncodedBatch, Lines, RowForm
from ..tcp.source import STDIN, Source

MAX_JOBS: Final = 64
"""processes at most: each goes through all packets, so more of them gain nothing"""
MOST_UNASKED: Final = 8
"""processes at most that nobody asked for"""
PAYING_BYTES: Final = 32 * 1024 * 1024
"""bytes of captures, as they are stored, from which on several processes are sooner done"""


def decode_of(
    sources: Sequence[str | Source], options: DecodeOptions | None = None, jobs: int | None = 1
) -> Decode:
    """Return a run by as many processes as asked for; one where the captures can be read
    only once.

    `jobs`: None stands for one a core where the captures are large enough to pay for it. The
    processes are there when this returns, and end with the run.
    """
    options = options or DecodeOptions()
    files = [one for one in sources if isinstance(one, str) and one != STDIN]
    alone = Decode(sources, options)
    if jobs == 1 or options.follow or len(files) < len(sources) or alone.bytes_total is None:
        return alone
    if jobs is None:
        jobs = min(cores(), MOST_UNASKED) if alone.bytes_total >= PAYING_BYTES else 1
        if jobs == 1:
            return alone
    from .shared_decode import SharedDecode

    return SharedDecode(files, options, min(jobs, MAX_JOBS))


def encoded_rows_of(
    decode: Decode, form: RowForm, where: str, zone: str
) -> Iterator[EncodedBatch] | None:
    """Return the rows of a run as they are written, chunk by chunk; None: one process has them as
    they are.

    `where` is a filter, in which times without an offset are of `zone`.
    """
    if type(decode) is Decode:
        return None
    from .shared_decode import SharedDecode
    from .task import RowRequest

    if not isinstance(decode, SharedDecode):
        return None
    return decode.encoded_rows(RowRequest(form, where, zone))


def command_lines_of(
    decode: Decode, limit: int, budget: Budget
) -> Callable[[], Iterator[Lines]] | None:
    """Return what gives the commands of a run as lines of JSON; None: one process has them as they
    are. See `SharedDecode.command_lines`.
    """
    if type(decode) is Decode:
        return None
    from .shared_decode import SharedDecode

    if not isinstance(decode, SharedDecode):
        return None
    return partial(decode.command_lines, limit, budget)


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
