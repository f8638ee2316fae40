"""Tables, trees, bars, and ladder diagrams.

Rules: on a terminal rich draws them, and elsewhere tables and bars are plain lines. Rich draws
ladders everywhere, so their output is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ..columns import Laid, LineColumn, LineTable
from ..console import UNLIMITED, Style, Terminal, cut, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

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
        lines = _drawn_table(table.laid(rows), terminal)
    else:
        lines = table.lines_of(rows) + table.rest()
    return TableLines(lines, table.hidden)


def _drawn_table(laid: Laid, terminal: Terminal) -> list[str]:
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


MOST_DRAWN: Final = 2_000
"""most lines of a drawn tree: rich takes some 100 µs per line"""
_OURS: Final = re.compile("((?:\x1b\\[\\d+m)+)([^\x1b]*)\x1b\\[0m")
"""a styled part of a line; the rest is printable and has no escapes"""


def tree_lines(lines: Sequence[str], step: int, terminal: Terminal) -> list[str]:
    """Return a tree with guides; children are indented by `step` cells.

    The first line is the root. Long lines are wrapped, never cut. A tree of very many lines is
    returned unchanged.
    """
    if not 0 < len(lines) <= MOST_DRAWN:
        return list(lines)
    from rich.tree import Tree

    from .drawing import folded_text, lines_of, style_of

    guide = style_of(Style.DIM)
    nodes = [Tree(folded_text(""), guide_style=guide)]
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        depth = min((len(line) - len(bare)) // step, len(nodes)) if number else 0
        text, end = folded_text(""), 0
        for part in _OURS.finditer(bare):
            text.append(bare[end : part.start()]).append(part[2], style_of(part[1]))
            end = part.end()
        text.append(bare[end:])
        if not number:
            nodes[0].label = text
            continue
        del nodes[max(depth, 1) :]
        nodes.append(nodes[-1].add(text, guide_style=guide))
    return lines_of(terminal, nodes[0])


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
        return _drawn_bars(rows, terminal, (indent, label, wide), most, widths)
    lines = []
    for row in rows:
        length = -(-row.number * wide // most)  # rounded up: small numbers are visible, too
        blocks = styled(_BLOCK * length, Style.CYAN) if terminal.colour else _BLOCK * length
        notes = [text.rjust(width) for text, width in zip(row.notes, widths, strict=True)]
        bar = f"{blocks}{' ' * (wide - length)}"
        lines.append(" ".join([f"{' ' * indent}{row.label.ljust(label)}", bar, *notes]))
    return lines


def _drawn_bars(
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


class Ladder:
    """One diagram, from the top."""

    def __init__(self, terminal: Terminal, left: int, lanes: int) -> None:
        """`left`: cells before the lanes, for times."""
        self._terminal = terminal
        self._left = left
        self._lanes = lanes
        self._room = (terminal.width - left) // max(1, lanes)
        self._drawn: list[RenderableType] = []

    def lines(self) -> list[str]:
        """Return all lines."""
        from .drawing import lines_of

        return lines_of(self._terminal, *self._drawn)

    def text(self, text: str, style: str = "", indent: int = 0) -> None:
        """Add a text that wraps."""
        from rich.padding import Padding

        from .drawing import folded_text

        self._drawn.append(Padding(folded_text(text, style), (0, 0, 0, indent)))

    def heads(self, names: Sequence[str], style: str) -> None:
        """Add the lane headings; long names lose their beginning."""
        from rich.table import Table

        from .drawing import text_of

        grid = Table.grid()
        grid.add_column(width=self._left)
        for _ in names:
            grid.add_column(width=self._room, justify="center")
        shown = [text_of(cut(name, self._room - 2, keep_end=True), style) for name in names]
        grid.add_row("", *shown)
        self._drawn.append(grid)

    def arrow(self, left: str, source: int, target: int, label: str, style: str) -> None:
        """Add an arrow between two lanes, with a label if it fits."""
        from rich.padding import Padding

        from .drawing import style_of, text_of

        line = text_of("").append(left, style_of(Style.DIM))
        line.append(self._between(source, target, label), style_of(style))
        self._drawn.append(Padding(line, 0))

    def _between(self, source: int, target: int, label: str) -> str:
        places = [lane * self._room + self._room // 2 for lane in range(self._lanes)]
        cells = [" "] * (places[-1] + 1)
        for place in places:
            cells[place] = "│"
        start, end = places[source], places[target]
        low, high = min(start, end), max(start, end)
        for at in range(low + 1, high):
            cells[at] = "─"
        if start < end:
            cells[start], cells[end - 1], cells[end] = "├", "▶", "│"
        elif end < start:
            cells[start], cells[end + 1], cells[end] = "┤", "◀", "│"
        label = f" {label} "
        at = low + (high - low - len(label)) // 2
        if high - low >= len(label) + 2:
            cells[at : at + len(label)] = list(label)
        return "".join(cells)
