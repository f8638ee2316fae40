"""The plan of `replay` as the command line asks for it: what is shown, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator

from replay.captured_source import SourceError
from replay.plan import Skipped, Step
from replay.planned import Planned
from replay.rewrite import RewriteError

from .replay_options import ReplayRequest
from .status import CommandError


def planned_of(request: ReplayRequest, mark: str | None) -> Planned:
    """Return the plan that a request asks for, ready to be read."""
    return Planned(
        request.sources,
        lambda first_time: request.plan_options(first_time, mark),
        request.rewrite,
        request.given.loop,
        request.decode_as,
        request.raw_codes,
    )


def batches_of(planned: Planned) -> Iterator[list[Step | Skipped]]:
    """Read a plan; what a user's source or rule cannot do becomes a CommandError."""
    try:
        yield from planned.batches()
    except (SourceError, RewriteError) as error:
        raise CommandError(str(error)) from None
