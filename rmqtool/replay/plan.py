"""The plan of `replay` for the command line, to show or to send."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer

from dissectors.budget import Budget
from dissectors.live.interface import LiveSource
from replay.captured.inputs import CopyError, repeatable
from replay.captured.source import OwnConnections, SourceError, Survey, survey_of
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import PlannedSend, Skipped
from replay.plan.rewrite import RewriteError
from replay.run.journal import Progressed, read_steps

from ..decode.undecoded import nothing_decoded
from ..live.keeping import Keeping, opened_capture
from ..live.options import LiveRequest
from ..ui.errors import print_note
from ..ui.figures import size
from ..ui.screen.progress import Far, Progress
from ..ui.status import CommandError
from .options import ReplayRequest
from .prepared import PreparedReplay


class _CopyProgress(Progress):
    """Progress of copying a pipe."""

    def far(self, read: int, total: int | None, found: int, seconds: float) -> Far:  # noqa: ARG002
        return Far(
            f"{size(read)} read; sending starts at the end of the input (to start now: --live)"
        )


@contextmanager
def readable(ready: PreparedReplay) -> Iterator[PreparedReplay]:
    """Yield the command with readable inputs: pipes are copied first, unless live."""
    request = ready.request
    if request.interface is not None:
        with _captured(request, request.interface) as source:
            yield replace(ready, inputs=(source,))
        return
    if request.live:
        yield replace(ready, inputs=ready.sources)
        return
    progress = _CopyProgress(sys.stderr, not request.quiet, "bytes")
    try:
        copies = repeatable(ready.sources, lambda read: progress.update(read, None, 0))
        with copies as inputs:
            progress.clear()
            yield replace(ready, inputs=inputs)
    except CopyError as error:
        raise CommandError(
            str(error), "set TMPDIR to another folder, or use --live to read a pipe without a copy"
        ) from None


@contextmanager
def _captured(request: ReplayRequest, interface: str) -> Iterator[LiveSource]:
    """Yield the packets of an interface after dropping capture privileges."""
    duration = None if request.duration is None else request.duration / 1e9
    live = LiveRequest(interface, filter=request.filter, keep=request.keep, duration=duration)
    with Keeping(live, opened_capture(live, request.quiet), request.force) as keeping:
        yield keeping.source
    keeping.say_end(request.quiet)


@contextmanager
def ended_in_time(request: ReplayRequest, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` from a thread when the --duration of a live pipe is over: it may be silent.

    An interface ends by itself, and what is sent at a pace ends with the plan.
    """
    if not request.live or request.interface is not None or request.duration is None:
        yield
        return
    timer = Timer(request.duration / 1e9, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def surveyed(ready: PreparedReplay) -> Survey:
    """Scan the sources; live sources are unknown."""
    if ready.request.is_live:
        return Survey(set(), set())
    return survey_of(ready.inputs, ready.request.decode_as, ready.request.max_ratio)


def planned_of(
    ready: PreparedReplay,
    mark: str | None,
    survey: Survey,
    budget: Budget | None = None,
    own: OwnConnections | None = None,
    loops: int | None = None,
    is_done: Callable[[int], bool] | None = None,
) -> PlannedRun:
    """Return the plan of a request; `is_done`: see `PlannedRun`."""
    request = ready.request
    return PlannedRun(
        ready.inputs,
        lambda first_time: request.plan_options(first_time, mark),
        ready.rewrite,
        request.loop if loops is None else loops,
        request.decode_as,
        request.raw_codes,
        survey.relays,
        Budget(request.max_output) if budget is None else budget,
        OwnConnections() if own is None else own,
        request.max_ratio,
        is_done,
    )


def plan_to_show(ready: PreparedReplay, survey: Survey) -> PlannedRun:
    """Return the plan of what is left to send, for people."""
    if ready.request.resume is None:
        return planned_of(ready, "dry-run", survey)
    before = Progressed()
    for _ in before.receive(read_steps(Path(ready.request.resume))):
        pass
    return planned_of(ready, "dry-run", survey, is_done=before.is_done)


def batches_of(planned: PlannedRun) -> Iterator[list[PlannedSend | Skipped]]:
    """Read a plan; turn errors of sources and rules into CommandError."""
    try:
        yield from planned.batches()
    except (SourceError, RewriteError) as error:
        raise CommandError(str(error)) from None


def note_cut_sources(planned: PlannedRun) -> None:
    """Report sources that were not fully read, and why: their other sends are missing."""
    for reason in planned.source.cut:
        print_note(f"not all of a source was read: {reason}")


def refuse_undecoded(planned: PlannedRun) -> None:
    """Raise CommandError if there is nothing to send and no RocketMQ in the captures."""
    decode = planned.source.decode
    nothing = nothing_decoded(decode.stats) if decode is not None and not planned.sends else None
    if nothing is not None:
        raise nothing
