"""HTML that notebooks show; text from the wire is printable and escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from dissectors.printable import printable

MOST_ROWS: Final = 20
"""rows of a table that a notebook shows"""


def html_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of the first rows with the number of further rows; empty without rows."""
    if not rows:
        return ""
    lines = ["<table><thead><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead>"]
    for row in rows[:MOST_ROWS]:
        lines.append("<tr>" + "".join(f"<td>{html_cell(value)}</td>" for value in row) + "</tr>")
    lines.append("</table>")
    if len(rows) > MOST_ROWS:
        lines.append(f"<p>… and {len(rows) - MOST_ROWS} more</p>")
    return "\n".join(lines)


def html_cell(value: object) -> str:
    """Return a value as HTML; None is a dash."""
    return "-" if value is None else escape(printable(str(value)))
