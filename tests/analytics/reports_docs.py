"""The tables of docs/reports.md, made from the reports; run as a module, it writes them.

python -m tests.analytics.reports_docs
"""

from __future__ import annotations

import re
from pathlib import Path

from analytics.report import Report
from analytics.reports import report_names, report_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reports.md"
_MARKED = re.compile(r"(<!-- tables: begin -->\n).*?(<!-- tables: end -->)", re.DOTALL)


def tables_text() -> str:
    """All tables of all reports with their columns."""
    described: dict[str, str] = {}
    return "\n".join(_report_text(report_of(name), described) for name in report_names())


def _report_text(report: Report, described: dict[str, str]) -> str:
    """Describe a report; `described` has the tables of those before it, with their reports."""
    parts = [f"### `{report.name}`: {report.title}", "", report.question, ""]
    for table in report.tables:
        first = described.setdefault(table.name, report.name)
        if first != report.name:
            parts += [f"**`{table.name}`** {table.title}: the table of `{first}`.", ""]
            continue
        parts += [
            f"**`{table.name}`** {table.title}. {table.meaning}",
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
            *(
                f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning.replace('|', chr(92) + '|')} |"
                for c in table.columns
            ),
            "",
        ]
    return "\n".join(parts)


def page() -> str:
    """The page with its tables as they should be."""
    return _MARKED.sub(lambda m: f"{m[1]}{tables_text()}\n{m[2]}", PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
