"""Complete tables: drawn by rich on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from ..columns import Laid, LineColumn, LineTable
from ..console import Style, Terminal

Row = TypeVar("Row")
_HEAD: Final = 2
"""lines of the header: titles and rule"""


class TableLines(NamedTuple):
    """A bounded table as lines."""

    lines: list[str]
    """header and rows; empty without rows"""
    hidden: list[str]
    """titles of non-empty columns without space"""


def table_lines(
    rows: Sequence[Row], columns: Sequence[LineColumn[Row]], terminal: Terminal
) -> TableLines:
    """Return all rows of a table as lines that fit the terminal."""
    if not rows:
        return TableLines([], [])
    # A sample of more rows than there are: all of them determine the widths.
    table = LineTable(columns, terminal, len(rows) + 1)
    if terminal.is_terminal:
        lines = drawn(table.laid(rows), terminal)
    else:
        lines = table.lines_of(rows) + table.rest()
    return TableLines(lines, table.hidden)


def drawn(laid: Laid, terminal: Terminal) -> list[str]:
    """Return the lines of a table with fitted cells."""
    from rich import box
    from rich.table import Table

    from .drawing import lines_of, style_of, text_of

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, laid.gap - 1, 0, 0),
        border_style=style_of(Style.DIM),
    )
    for title, width, right in laid.columns:
        head = text_of(title, Style.BOLD)
        table.add_column(head, width=width, no_wrap=True, justify="right" if right else "left")
    for row in laid.rows:
        table.add_row(*(text_of(text, style) for text, style in row.cells))
    lines = lines_of(terminal, table)
    result = lines[:_HEAD]
    for line, row in zip(lines[_HEAD:], laid.rows, strict=True):
        result += [line, *row.below]
    return result
