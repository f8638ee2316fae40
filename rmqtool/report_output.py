"""Where a report goes: the screen, a file of one form, or a folder with all forms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .console import UNLIMITED, Terminal, When, terminal_of
from .output import Output
from .report_options import Format, ReportRequest
from .report_text import report_lines

if TYPE_CHECKING:
    from analytics.result import ReportResult


def check_output(request: ReportRequest) -> None:
    """Raise CommandError where the output cannot be written as asked."""


def write_report(request: ReportRequest, results: list[ReportResult]) -> list[str]:
    """Write the report; return what was written where, empty for standard output."""
    output = Output(request.output)
    if output.path is None:
        terminal = terminal_of(sys.stdout, request.colour)
    else:
        terminal = Terminal(False, UNLIMITED, request.colour is When.always)
    text = "\n".join(report_lines(results, terminal)) + "\n"
    output.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))
    output.finish()
    assert request.format in (Format.table, None)
    return []
