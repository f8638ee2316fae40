"""One run of `replay`: the plan shown, or carried out, compared and journalled.

Rules: rows of a dry run and the comparison go to standard output, all else to standard error. What
was sent stays in the journal however the run ends.
"""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from typing import Final

from ..ui.console import terminal_of
from ..ui.interrupt import first_ends
from ..ui.json_array import rows_output
from ..ui.screen.progress import Progress
from ..ui.status import CommandError, ExitStatus
from .arguments import ReplayFormat
from .options import ReplayRequest
from .plan import batches_of, planned_of, readable, refuse_undecoded, say_cut, surveyed
from .plan_lines import plan_json, plan_lines, summary_lines

_COLLECT_AFTER: Final = (10_000, 3, 3)
"""Objects, and rounds, after which Python looks for circles: each connection that ended is one."""


def run_replay(request: ReplayRequest) -> ExitStatus:
    """Do what was asked; raise CommandError where it cannot be done."""
    if "-" in request.sources and sys.stdin.isatty():
        raise CommandError(
            "no capture on stdin (it is a terminal)",
            "pipe one in: tcpdump -w - … | rmqtool replay -",
            ExitStatus.USAGE,
        )
    gc.set_threshold(*_COLLECT_AFTER)
    with readable(request) as ready:
        if request.given.dry_run:
            return _show(ready)
        from .send import run_send

        return run_send(ready)


def _show(request: ReplayRequest) -> ExitStatus:
    """Show the plan and the reasons; nothing is sent."""
    planned = planned_of(request, "dry-run", surveyed(request))
    terminal = terminal_of(sys.stdout, request.given.colour)
    table = plan_lines(terminal, len(planned.source.sources), request.is_live)
    as_json = request.given.format.is_json
    output = rows_output("-", request.given.format is ReplayFormat.json)
    progress = Progress(sys.stderr, not request.given.quiet and not terminal.is_terminal, "sends")
    try:
        with first_ends(planned.stop) if request.is_live else nullcontext():
            for batch in batches_of(planned):
                if as_json:
                    output.write(b"".join(map(plan_json, batch)))
                else:
                    _print(table.lines_of(batch))
                if request.is_live:
                    sys.stdout.flush()
                total = planned.source.decode.bytes_total if planned.source.decode else None
                progress.update(planned.source.bytes_read, total, planned.sends)
        progress.clear()
        if as_json:
            output.finish()
        else:
            _print(table.rest())
    except BaseException:
        output.discard()
        raise
    say_cut(planned)
    if request.given.interface is None:
        refuse_undecoded(planned)
    if not as_json and not request.given.quiet:
        lines = summary_lines(planned, sent=False)
        for line in (lines[0], f"pace: {request.options.pace}", *lines[1:]):
            print(line, file=sys.stderr)
    return ExitStatus.OK


def _print(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines))
