"""A list of rows of which only those on the screen are fetched.

Rules: the row under the cursor stays there while rows come and go, unless the list follows. A cell
is chosen, too: keys make filters of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Protocol

from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...ui.columns import LineColumn, LineTable
from ...ui.console import Terminal, cut, padded
from .paint import PLAIN, Piece, strip_of, style_of

SAMPLE: Final = 60
"""rows that determine the column widths"""
_MARK: Final = 2
"""cells before the first column, for the mark"""


class Rows(Protocol):
    """What is listed."""

    def __len__(self) -> int: ...

    def number_at(self, place: int) -> int | None:
        """Return the number of the row at a position, or None."""

    def place_of(self, number: int) -> int:
        """Return the position of a row."""

    def row(self, number: int) -> Any:
        """Return a row, or None if it was dropped."""


class RowList(ScrollView, can_focus=True):
    """Rows as lines with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--head", "rows--cursor", "rows--cell"}
    DEFAULT_CSS = """
    RowList { height: 1fr; overflow-y: scroll; scrollbar-size: 0 1; }
    RowList > .rows--head { text-style: bold; background: $panel; color: $foreground; }
    RowList > .rows--cursor { background: $primary-muted; }
    RowList:focus > .rows--cursor { text-style: bold; }
    RowList > .rows--cell { text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("g,home", "first", "first", show=False),
        Binding("G,end", "last", "last", show=False),
        Binding("ctrl+d", "half(1)", "half a page down", show=False),
        Binding("ctrl+u", "half(-1)", "half a page up", show=False),
        Binding("ctrl+f,pagedown", "page(1)", "page down", show=False),
        Binding("ctrl+b,pageup", "page(-1)", "page up", show=False),
        Binding("h,left", "cell(-1)", "column left", show=False),
        Binding("l,right", "cell(1)", "column right", show=False),
        Binding("enter", "open", "details", show=False),
        Binding("tab", "app.other_pane", "details", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows
            """whose cursor"""

    class Opened(Message):
        """A row was opened."""

    def __init__(
        self,
        rows: Rows,
        columns: Sequence[LineColumn[Any]],
        is_marked: Callable[[int], bool] = lambda _: False,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.rows = rows
        self.follow = False
        """the cursor stays on the last row"""
        self.cursor = 0
        """position of the selected row"""
        self.number: int | None = None
        """number of the selected row"""
        self.cell = 0
        """index of the selected column"""
        self._is_marked = is_marked
        self._columns = list(columns)
        self._layout: list[tuple[LineColumn[Any], int]] = []
        self._sampled = 0
        self._width = 0

    # -- what is shown ----------------------------------------------------------------------------

    def show(self, rows: Rows, columns: Sequence[LineColumn[Any]]) -> None:
        """List other rows or columns."""
        self.rows = rows
        self._columns = list(columns)
        self._sampled = 0
        self.update_rows()

    @property
    def column(self) -> LineColumn[Any] | None:
        """The selected column."""
        return self._layout[self.cell][0] if self.cell < len(self._layout) else None

    def update_rows(self) -> None:
        """Refresh the rows after additions, removals, or a new list."""
        count = len(self.rows)
        before = self.cursor
        if self.follow:
            self.cursor = max(0, count - 1)
        elif self.number is not None:
            self.cursor = self.rows.place_of(self.number)
        self.cursor = max(0, min(self.cursor, count - 1))
        self._settle(count)
        self.virtual_size = Size(self.scrollable_content_region.width, count + 1)
        if self.follow:
            self._show_cursor()
        elif self.cursor != before:
            self.scroll_to(y=self.scroll_offset.y + self.cursor - before, animate=False)
            self._show_cursor()
        self._note_moved()
        self.refresh()

    def _settle(self, count: int) -> None:
        """Determine columns and widths again for a new width, or if there were few rows."""
        width = self.scrollable_content_region.width
        enough = self._sampled >= min(count, SAMPLE) and (self._sampled or not count)
        if self._layout and enough and width == self._width:
            return
        chosen = self.column
        self._width = width
        first = max(0, min(self.cursor, count - SAMPLE))
        numbers = [self.rows.number_at(place) for place in range(first, min(count, first + SAMPLE))]
        rows = [self.rows.row(number) for number in numbers if number is not None]
        # A row is one line; the details have the rest.
        columns = [
            column._replace(wraps=False, most=min(column.most, 60)) for column in self._columns
        ]
        table = LineTable(columns, Terminal(True, max(width - _MARK, 20), True))
        self._sampled = len(rows)
        self._layout = table.settled([row for row in rows if row is not None])
        titles = [column.title for column, _ in self._layout]
        if chosen is not None and chosen.title in titles:
            self.cell = titles.index(chosen.title)
        self.cell = max(0, min(self.cell, len(titles) - 1))

    def render_line(self, y: int) -> Strip:
        """Return one line: the header or a row."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y == 0:
            head = self.get_component_rich_style("rows--head")
            pieces: list[Piece] = [(" " * _MARK, PLAIN)]
            for index, (column, room) in enumerate(self._layout):
                text = padded(cut(column.title, room), room, column.right)
                chosen = (
                    RichStyle(underline=True) if index == self.cell and self.has_focus else PLAIN
                )
                pieces += [(text, chosen), (" ", PLAIN)]
            return strip_of(pieces, head, width)
        place = self.scroll_offset.y + y - 1
        number = self.rows.number_at(place)
        row = None if number is None else self.rows.row(number)
        if row is None or number is None:
            return Strip.blank(width, base)
        is_cursor = place == self.cursor
        if is_cursor:
            base += self.get_component_rich_style("rows--cursor", partial=True)
            base += RichStyle(reverse=self.app.no_color) if self.app.no_color else PLAIN
        mark = "●" if self._is_marked(number) else ">" if is_cursor else " "
        pieces = [(f"{mark} ", RichStyle(bold=True))]
        for index, (column, room) in enumerate(self._layout):
            pieces.append(self._cell(column, room, row, is_cursor and index == self.cell))
            pieces.append((" ", PLAIN))
        return strip_of(pieces, base, width)

    def _cell(self, column: LineColumn[Any], room: int, row: Any, chosen: bool) -> Piece:
        text = column.cell(row)
        style = PLAIN if column.style is None else style_of(column.style(row))
        if chosen:
            style += self.get_component_rich_style("rows--cell", partial=True)
        return padded(cut(text, room, column.keep_end), room, column.right), style

    # -- the cursor -------------------------------------------------------------------------------

    def go_to(self, place: int) -> None:
        """Move the cursor to a row."""
        count = len(self.rows)
        self.cursor = max(0, min(place, count - 1))
        if self.cursor < count - 1:
            self.follow = False
        self._show_cursor()
        self._note_moved()
        self.refresh()

    def _show_cursor(self) -> None:
        height = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def _note_moved(self) -> None:
        number = self.rows.number_at(self.cursor)
        if number != self.number:
            self.number = number
            self.post_message(self.Moved(self))

    def action_move(self, by: int) -> None:
        """Go up or down."""
        self.go_to(self.cursor + by)

    def action_half(self, by: int) -> None:
        """Go half a page."""
        self.go_to(self.cursor + by * max(1, self.size.height // 2))

    def action_page(self, by: int) -> None:
        """Go a page."""
        self.go_to(self.cursor + by * max(1, self.size.height - 2))

    def action_first(self) -> None:
        """Go to the first row."""
        self.go_to(0)

    def action_last(self) -> None:
        """Go to the last row."""
        self.go_to(len(self.rows) - 1)

    def action_cell(self, by: int) -> None:
        """Select the next or previous column."""
        self.cell = max(0, min(self.cell + by, len(self._layout) - 1))
        self.refresh()

    def action_open(self) -> None:
        """Open the row."""
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Select row and column under the mouse; a second click opens the row."""
        self.focus()
        at = _MARK
        for index, (_, room) in enumerate(self._layout):
            if at <= event.x < at + room + 1:
                self.cell = index
            at += room + 1
        place = self.scroll_offset.y + event.y - 1
        if event.y > 0 and place < len(self.rows):
            is_second = place == self.cursor and event.chain > 1
            self.go_to(place)
            if is_second:
                self.action_open()
        self.refresh()

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self.update_rows()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw other rows."""
        super().watch_scroll_y(old_value, new_value)
        self.refresh(Region(0, 0, self.size.width, self.size.height))
