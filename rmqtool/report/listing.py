"""`rmqtool report --list`: the reports, their tables and columns, from their descriptions."""

from __future__ import annotations

from ..ui.console import Style
from ..ui.extras import REPORT_LIBRARIES, require
from ..ui.option_values import refuse_named, usage_error
from ..ui.output import write_text
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import ExitStatus
from .options import ALL, ReportRequest
from .output import output_terminal


def show_reports(request: ReportRequest) -> ExitStatus:
    """Write the list of reports to standard output or the `-o` file."""
    require("a report", "report", *REPORT_LIBRARIES)
    from analytics.reports import report_names, report_of

    for word in request.words:
        if word not in (*report_names(), ALL):
            raise usage_error("--list", f"{word} is not a report; omit it")
    refuse_named(request.named_options, ("tables",), "cannot be combined with --list; omit it")
    named = [] if ALL in request.words else list(dict.fromkeys(request.words))
    terminal = output_terminal(request)

    def labelled(depth: int, name: str, text: str) -> Labelled:
        label = f"{' ' * depth}{name}:"
        return Labelled(text, label=label, label_style=Style.BOLD, indent=len(label) + 1)

    lines = []
    for name in named or report_names():
        report = report_of(name)
        facts = [labelled(0, name, report.question)]
        for table in report.tables:
            facts.append(labelled(2, table.name, table.meaning))
            for column in table.columns:
                kind = f"{column.type}, {column.unit}" if column.unit else column.type
                text = f"{column.name} ({kind}): {column.meaning}"
                facts.append(Labelled(text, indent=4, hang=2))
        lines += fact_lines(facts, terminal)
    write_text(request.output, lines, request.force)
    return ExitStatus.OK
