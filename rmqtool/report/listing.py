"""`rmqtool report --list`: the reports, their tables and columns, from their descriptions."""

from __future__ import annotations

import sys

from ..ui.console import Style, When, styled, terminal_of
from ..ui.extras import REPORT_LIBRARIES, require
from ..ui.status import ExitStatus


def show_reports(colour: When) -> ExitStatus:
    """Write what there is to standard output."""
    require("a report", "spark", *REPORT_LIBRARIES)
    from analytics.reports import report_names, report_of

    terminal = terminal_of(sys.stdout, colour)

    def bold(text: str) -> str:
        return styled(text, Style.BOLD) if terminal.colour else text

    lines = []
    for name in report_names():
        report = report_of(name)
        lines.append(f"{bold(name)}: {report.question}")
        for table in report.tables:
            lines.append(f"  {bold(table.name)}: {table.meaning}")
            for column in table.columns:
                kind = f"{column.type}, {column.unit}" if column.unit else column.type
                lines.append(f"    {column.name} ({kind}): {column.meaning}")
    sys.stdout.write("\n".join(lines) + "\n")
    return ExitStatus.OK
