"""A histogram: bars drawn by rich on a terminal, whole blocks elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..console import UNLIMITED, Style, Terminal, styled

WIDEST: Final = 40
"""cells of the longest bar"""
_NARROWEST: Final = 10
_BLOCK: Final = "█"


class BarRow(NamedTuple):
    """A line of a histogram."""

    label: str
    """text before the bar"""
    number: int
    notes: tuple[str, ...]
    """texts after the bar, right-aligned"""


def bar_lines(rows: Sequence[BarRow], terminal: Terminal, indent: int = 2) -> list[str]:
    """Return a line per row; the largest number has the longest bar."""
    if not rows:
        return []
    label = max(len(row.label) for row in rows)
    widths = [max(map(len, column)) for column in zip(*(row.notes for row in rows), strict=True)]
    most = max(row.number for row in rows) or 1
    wide = WIDEST
    if terminal.width < UNLIMITED:
        taken = indent + label + 1 + sum(width + 1 for width in widths)
        wide = min(WIDEST, max(_NARROWEST, terminal.width - taken))
    if terminal.is_terminal and terminal.width < UNLIMITED:
        return _drawn(rows, terminal, (indent, label, wide), most, widths)
    lines = []
    for row in rows:
        length = -(-row.number * wide // most)  # rounded up: small numbers are visible, too
        blocks = styled(_BLOCK * length, Style.CYAN) if terminal.colour else _BLOCK * length
        notes = [text.rjust(width) for text, width in zip(row.notes, widths, strict=True)]
        bar = f"{blocks}{' ' * (wide - length)}"
        lines.append(" ".join([f"{' ' * indent}{row.label.ljust(label)}", bar, *notes]))
    return lines


def _drawn(
    rows: Sequence[BarRow],
    terminal: Terminal,
    cells: tuple[int, int, int],
    most: int,
    widths: Sequence[int],
) -> list[str]:
    """Return bars with a resolution of an eighth of a cell; non-zero values have at least one."""
    from rich.bar import Bar
    from rich.padding import Padding
    from rich.table import Table

    from .drawing import lines_of, text_of

    indent, label, wide = cells
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=label, no_wrap=True)
    grid.add_column(width=wide)
    for width in widths:
        grid.add_column(width=width, no_wrap=True, justify="right")
    for row in rows:
        least = most / wide / 8 if row.number else 0  # an eighth of a cell
        bar = Bar(most, 0, max(row.number, least), width=wide, color="cyan")
        grid.add_row(text_of(row.label), bar, *map(text_of, row.notes))
    return lines_of(terminal, Padding(grid, (0, 0, 0, indent)))
