"""Ladder diagrams: lanes side by side, arrows between them, words below; drawn by rich.

Rich draws them also without a terminal: the output is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..console import Style, Terminal, cut

if TYPE_CHECKING:
    from rich.console import RenderableType


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
