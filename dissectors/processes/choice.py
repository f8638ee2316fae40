"""Choice between one and several decoding processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..budget import Budget
from ..decode.pipeline import Decode, DecodeOptions
from ..rows.encoded import EncodedBatch, Lines, RowForm
from ..tcp.source import STDIN, Source

if TYPE_CHECKING:
    from .shared_decode import SharedDecode

MAX_JOBS: Final = 64
"""maximum number of processes: each reads all packets, so more gain nothing"""
MOST_UNASKED: Final = 8
"""maximum number of processes by default"""
PAYING_BYTES: Final = 32 * 1024 * 1024
"""stored bytes of captures from which several processes are faster"""


def decode_of(
    sources: Sequence[str | Source], options: DecodeOptions | None = None, jobs: int | None = 1
) -> Decode:
    """Return a run with as many processes as requested, or one if an input is read-once.

    `jobs`: None means one per core if the captures are large enough. The processes are running when
    this returns, and end with the run.
    """
    options = options or DecodeOptions()
    files = [source for source in sources if isinstance(source, str) and source != STDIN]
    alone = Decode(sources, options)
    # Other processes get names of files: standard input and open sources need a single process.
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
    """Yield encoded rows chunk by chunk; return None if one process decodes.

    `where` is a filter; times in it without an offset are in `zone`.
    """
    shared = _shared(decode)
    if shared is None:
        return None
    from .task import RowRequest

    return shared.encoded_rows(RowRequest(form, where, zone))


def command_lines_of(
    decode: Decode, limit: int, budget: Budget
) -> Callable[[], Iterator[Lines]] | None:
    """Return a source of commands as JSON lines, or None if one process decodes.

    See `SharedDecode.command_lines`.
    """
    shared = _shared(decode)
    return None if shared is None else partial(shared.command_lines, limit, budget)


def _shared(decode: Decode) -> SharedDecode | None:
    if type(decode) is Decode:  # the usual case, for which nothing more is imported
        return None
    from .shared_decode import SharedDecode

    return decode if isinstance(decode, SharedDecode) else None


def cores() -> int:
    """Return how many cores are available to this process."""
    try:
        # os.cpu_count() ignores taskset and cpusets; macOS lacks sched_getaffinity.
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
