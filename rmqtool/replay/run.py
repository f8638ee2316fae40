"""One run of `replay`: show the plan, or execute it with journal and comparison.

Rules: rows of a dry run and the comparison go to standard output, everything else to standard
error. The journal keeps all sends however the run ends.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from ..decode.undecoded import refuse_terminal
from ..ui.common_options import ObjectFormat
from ..ui.console import terminal_of
from ..ui.interrupt import first_ends
from ..ui.json_array import rows_output
from ..ui.screen.progress import Progress
from ..ui.status import ExitStatus
from .options import ReplayRequest
from .plan import (
    batches_of,
    ended_in_time,
    note_cut_sources,
    plan_to_show,
    readable,
    refuse_undecoded,
    surveyed,
)
from .plan_lines import plan_json, plan_lines, summary_lines
from .prepared import PreparedReplay, prepared


def run_replay(request: ReplayRequest) -> ExitStatus:
    """Run the command; raise CommandError on failure."""
    ready = prepared(request)
    refuse_terminal(ready.sources, "replay -")
    with readable(ready) as ready:
        if ready.request.dry_run:
            return _show(ready)
        from .send import run_send

        return run_send(ready)


def _show(ready: PreparedReplay) -> ExitStatus:
    """Show the plan and the reasons; nothing is sent."""
    request = ready.request
    planned = plan_to_show(ready, surveyed(ready))
    terminal = terminal_of(sys.stdout, request.colour)
    table = plan_lines(terminal, len(planned.source.sources), request.is_live)
    as_json = request.format.is_json
    progress = Progress(sys.stderr, not request.quiet and not terminal.is_terminal, "sends")
    # Lines for people are printed; for them, nothing is written to the output.
    with rows_output("-", request.format is ObjectFormat.json) as output:
        stoppable = first_ends(planned.stop) if request.is_live else nullcontext()
        with stoppable, ended_in_time(request, planned.stop):
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
        if not as_json:
            _print(table.rest())
    note_cut_sources(planned)
    if request.interface is None:
        refuse_undecoded(planned)
    if not as_json and not request.quiet:
        lines = summary_lines(planned, sent=False)
        for line in (lines[0], f"pace: {request.pace}", *lines[1:]):
            print(line, file=sys.stderr)
    return ExitStatus.OK


def _print(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines))
