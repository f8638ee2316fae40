"""Lines of printable text that can be scrolled and searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...ui.console import cells
from .paint import Piece, pieces_of, strip_of


class LinesView(ScrollView, can_focus=True):
    """Lines of styled pieces."""

    DEFAULT_CSS = """
    LinesView { height: 1fr; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", "down", show=False),
        Binding("k,up", "scroll_up", "up", show=False),
        Binding("h,left", "scroll_left", "left", show=False),
        Binding("l,right", "scroll_right", "right", show=False),
        Binding("tab", "app.other_pane", "list", show=False),
        Binding("g,home", "scroll_home", "first", show=False),
        Binding("G,end", "scroll_end", "last", show=False),
        Binding("ctrl+f,ctrl+d,pagedown", "page_down", "page down", show=False),
        Binding("ctrl+b,ctrl+u,pageup", "page_up", "page up", show=False),
    ]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._lines: list[list[Piece]] = []

    def show_lines(self, lines: Sequence[str], keep: bool = False) -> None:
        """Show printable lines, which may contain our SGR sequences; `keep`: keep the position."""
        self.show_pieces([pieces_of(line) for line in lines], keep)

    def show_pieces(self, lines: list[list[Piece]], keep: bool = False) -> None:
        """Show lines of pieces."""
        self._lines = lines
        width = max((sum(cells(text) for text, _ in line) for line in lines), default=0)
        self.virtual_size = Size(width, len(lines))
        if not keep:
            self.scroll_to(0, 0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        width = self.size.width
        at = self.scroll_offset.y + y
        if at >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        return strip_of(self._lines[at], self.rich_style, width, self.scroll_offset.x)
