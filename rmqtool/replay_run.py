"""One run of `replay`: the plan shown, or carried out, compared and journalled.

Rules: rows of a dry run and the comparison go to standard output, all else to standard error. What
was sent stays in the journal however the run ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from replay.captured_source import SourceError
from replay.plan import Skipped, Step
from replay.planned import Planned
from replay.rewrite import RewriteError

from .console import terminal_of
from .progress import Progress
from .replay_lines import plan_json, plan_lines, summary_lines
from .replay_options import ReplayRequest
from .status import CommandError, ExitStatus


def run_replay(request: ReplayRequest) -> ExitStatus:
    """Do what was asked; raise CommandError where it cannot be done."""
    if "-" in request.sources and sys.stdin.isatty():
        raise CommandError(
            "standard input is a terminal, not a capture",
            "pipe a capture into it: tcpdump -w - … | rmqtool replay -",
            ExitStatus.USAGE,
        )
    if request.given.dry_run:
        return _show(request)
    from .replay_send import run_send

    return run_send(request)


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


def _show(request: ReplayRequest) -> ExitStatus:
    """Show the plan and the reasons; nothing is sent."""
    planned = planned_of(request, "dry-run")
    terminal = terminal_of(sys.stdout, request.given.colour)
    table = plan_lines(terminal, len(planned.source.sources), False)
    as_json = request.given.format == "jsonl"
    progress = Progress(sys.stderr, not request.given.quiet and not terminal.is_terminal, "sends")
    for batch in batches_of(planned):
        if as_json:
            sys.stdout.buffer.write(b"".join(map(plan_json, batch)))
        else:
            _print(table.lines_of(batch))
        total = planned.source.decode.bytes_total if planned.source.decode else None
        progress.update(planned.source.bytes_read, total, planned.sends)
    progress.clear()
    if as_json:
        sys.stdout.buffer.flush()
        return ExitStatus.OK
    _print(table.rest())
    if not request.given.quiet:
        for line in summary_lines(planned, sent=False):
            print(line, file=sys.stderr)
    return ExitStatus.OK


def _print(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines))
