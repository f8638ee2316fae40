"""The plan of `replay` as the command line asks for it: what is shown, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator

from dissectors.budget import Budget
from replay.captured.source import SourceError, Survey, survey_of
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import PlannedSend, Skipped
from replay.plan.rewrite import RewriteError

from ..decode.undecoded import nothing_decoded
from ..ui.status import CommandError
from .options import ReplayRequest


def surveyed(request: ReplayRequest) -> Survey:
    """Read the sources ahead; of standard input nothing is known."""
    try:
        return survey_of(request.sources, request.decode_as)
    except SourceError as error:
        raise CommandError(str(error)) from None


def planned_of(
    request: ReplayRequest, mark: str | None, survey: Survey, budget: Budget | None = None
) -> PlannedRun:
    """Return the plan that a request asks for, ready to be read."""
    return PlannedRun(
        request.sources,
        lambda first_time: request.plan_options(first_time, mark),
        request.rewrite,
        request.given.loop,
        request.decode_as,
        request.raw_codes,
        survey.relays,
        Budget(request.max_output) if budget is None else budget,
    )


def batches_of(planned: PlannedRun) -> Iterator[list[PlannedSend | Skipped]]:
    """Read a plan; what a user's source or rule cannot do becomes a CommandError."""
    try:
        yield from planned.batches()
    except (SourceError, RewriteError) as error:
        raise CommandError(str(error)) from None


def refuse_undecoded(planned: PlannedRun) -> None:
    """Raise CommandError where a run found nothing to send and no RocketMQ in the captures."""
    decode = planned.source.decode
    nothing = nothing_decoded(decode.stats) if decode is not None and not planned.sends else None
    if nothing is not None:
        raise nothing
