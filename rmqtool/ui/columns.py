"""Rows as aligned lines: which columns fit, how wide each is, and what is cut.

Rules: a column has a rank; on a narrow terminal the columns of the lowest ranks stay, at a width
that can still be read, and what is left is given to those that need it. Widths are settled with
the first rows, so that lines can be shown while the input is still being read. A text that may wrap
(a remark) stands in the line where there is room for all of it, else in lines below its row. Where
there is no terminal a cell over the largest width moves the rest of its line. A text that nobody
can read, such as a topic of a megabyte, is cut everywhere, and the rest of it counted. Of the first
rows only the cells are kept, never what they were made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from dissectors.printable import MOST_SHOWN, shortened

from .console import UNLIMITED, Style, Terminal, cells, cut, padded, styled, wrapped

Row = TypeVar("Row")
CORE_RANK = 7
"""Columns up to this rank are shown in full before any other gets a place."""
_NARROW = 100
_BELOW = "  └ "
"""Begins a text below its row."""
_COUNT = 32
"""Characters that say how many more there are, at most."""
_MOST_BELOW = 4
"""Lines of such a text."""


class LineColumn(NamedTuple, Generic[Row]):
    """A column of lines."""

    title: str
    """head of the column"""
    cell: Callable[[Row], str]
    """row -> printable text"""
    rank: int
    """1 stays longest"""
    least: int
    """cells below which it is not shown at all"""
    most: int
    """cells that it may grow to"""
    right: bool = False
    """aligned to the right"""
    style: Callable[[Row], str] | None = None
    """row -> SGR sequence; None: no colour"""
    keep_end: bool = False
    """a cell that is too long loses its beginning: of an address, the end tells more"""
    wraps: bool = False
    """a cell for which the line has no room is written below it, in as many lines as it needs"""


class _Cells(NamedTuple):
    """What a row shows."""

    section: str
    """what it is in"""
    texts: list[str]
    """one for each column that is shown, or may be"""
    styles: list[str]
    """their SGR sequences; empty where there is no colour"""


class LineTable(Generic[Row]):
    """Turns rows into lines; the first rows settle the widths."""

    def __init__(
        self,
        columns: Sequence[LineColumn[Row]],
        terminal: Terminal,
        sample: int = 500,
        section: Callable[[Row], str] | None = None,
    ) -> None:
        """`sample` rows are waited for before the first line is given; 1: rows come slowly.

        `section` names what a row is in; where that changes, it becomes a line of its own.
        """
        self._columns = columns
        self._terminal = terminal
        self._sample = sample
        self._section = section
        self._last_section = ""
        self._waiting: list[_Cells] = []
        self._shown: Sequence[LineColumn[Row]] = columns
        self._layout: list[tuple[LineColumn[Row], int]] | None = None
        limited = terminal.width < UNLIMITED
        self._wrapping = [column for column in columns if column.wraps and limited]
        self.hidden: list[str] = []
        """titles of columns that have something to show and no room, once lines were given"""
        self._gap = " " if terminal.width < _NARROW else "  "

    def lines_of(self, rows: Sequence[Row]) -> list[str]:
        """Return the lines that can be shown now, the head first; rows may wait for the sample."""
        if self._layout is not None:
            return self._lines(rows)
        self._waiting += map(self._cells_of, rows)
        return self.rest() if len(self._waiting) >= self._sample else []

    def rest(self) -> list[str]:
        """Return the lines of the rows that wait."""
        if not self._waiting:
            return []
        found, self._waiting = self._waiting, []
        if self._layout is not None:
            return self._lines_of_cells(found)
        layout = self._layout = self._settle(found)
        places = {column.title: place for place, column in enumerate(self._columns)}
        shown = [column for column, _ in layout]
        self._shown = shown + [column for column in self._wrapping if column not in shown]
        kept = [places[column.title] for column in self._shown]
        return [self._head(), *self._lines_of_cells([_of_columns(one, kept) for one in found])]

    def _lines(self, rows: Sequence[Row]) -> list[str]:
        return self._lines_of_cells(map(self._cells_of, rows))

    def _cells_of(self, row: Row) -> _Cells:
        """Return what a row shows in the columns that have a place, or may have."""
        section = self._section(row) if self._section is not None else ""
        texts = []
        for column in self._shown:
            text = column.cell(row)
            if len(text) > MOST_SHOWN + _COUNT:  # else it may be cut and counted already
                text = shortened(text, max(MOST_SHOWN, column.most))
            texts.append(text)
        styles: list[str] = []
        if self._terminal.colour:
            styles = [c.style(row) if c.style is not None else "" for c in self._shown]
        return _Cells(section, texts, styles)

    def _head(self) -> str:
        layout = self._layout or []
        texts = [padded(cut(c.title, width), width, c.right) for c, width in layout]
        line = self._gap.join(texts).rstrip()
        return styled(line, Style.BOLD) if self._terminal.colour else line

    def _settle(self, found: Sequence[_Cells]) -> list[tuple[LineColumn[Row], int]]:
        wanted = {}
        for place, column in enumerate(self._columns):
            widest = max((cells(one.texts[place]) for one in found), default=0)
            wanted[column.title] = max(len(column.title) if widest else 0, widest)
        shown = [column for column in self._columns if wanted[column.title] > 0]
        if self._terminal.width >= UNLIMITED:
            return [(c, max(c.least, min(c.most, wanted[c.title]))) for c in shown]
        live = self._sample <= 1
        width, gap = self._terminal.width, len(self._gap)
        fixed = [column for column in shown if not column.wraps]
        layout = dict(_fit(fixed, wanted, width, gap, live))
        left = width - sum(layout.values()) - gap * len(layout)
        for column in shown:
            if column.wraps and wanted[column.title] <= left:
                layout[column] = wanted[column.title]
                left -= wanted[column.title] + gap
        self.hidden = [column.title for column in fixed if column not in layout]
        return [(column, layout[column]) for column in shown if column in layout]

    def _lines_of_cells(self, found: Iterable[_Cells]) -> list[str]:
        layout = self._layout or []
        last = layout[-1][0] if layout and not layout[-1][0].right else None
        limited = self._terminal.width < UNLIMITED
        colour = self._terminal.colour
        gap = self._gap
        lines = []
        for section, shown, styles in found:
            if section != self._last_section:
                self._last_section = section
                lines.append(styled(section, Style.BOLD) if colour else section)
            texts = []
            below: list[str] = []
            for place, (column, width) in enumerate(layout):
                text = shown[place]
                if column.wraps and limited and cells(text) > width:
                    below += self._below(text, styles[place] if colour else "")
                    text = ""
                if len(text) != width or not text.isascii():
                    if limited:
                        text = cut(text, width, column.keep_end)
                    if column is not last:
                        text = padded(text, width, column.right)
                if colour:
                    text = styled(text, styles[place])
                texts.append(text)
            lines.append(gap.join(texts).rstrip())
            for place in range(len(layout), len(shown)):
                below += self._below(shown[place], styles[place] if colour else "")
            lines += below
        return lines

    def _below(self, text: str, style: str) -> list[str]:
        """Return a text that may wrap as lines below its row."""
        width = self._terminal.width - len(_BELOW)
        texts = wrapped(text, width, _MOST_BELOW)
        marks = [_BELOW, *[" " * len(_BELOW)] * len(texts)]
        texts = [styled(one, style) for one in texts]
        return [f"{mark}{one}" for mark, one in zip(marks, texts, strict=False)]


def _of_columns(one: _Cells, kept: Sequence[int]) -> _Cells:
    styles = [one.styles[place] for place in kept] if one.styles else []
    return _Cells(one.section, [one.texts[place] for place in kept], styles)


def _fit(
    columns: Sequence[LineColumn[Row]], wanted: dict[str, int], width: int, gap: int, live: bool
) -> list[tuple[LineColumn[Row], int]]:
    """Return the columns that fit into `width`, in their order, with their widths."""
    left = width + gap
    widths: dict[str, int] = {}
    ranked = sorted(columns, key=lambda column: column.rank)
    core = [column for column in ranked if column.rank <= CORE_RANK]
    more = [column for column in ranked if column.rank > CORE_RANK]
    for group in (core, more):
        for column in group:
            least = min(column.least, max(wanted[column.title], len(column.title)))
            if least + gap <= left:
                widths[column.title] = least
                left -= least + gap
        left = _grow(widths, [(c.title, min(wanted[c.title], c.most)) for c in group], left)
    if live:  # later rows may be wider than the few that are known
        _grow(widths, [(c.title, c.most) for c in ranked], left)
    return [(column, widths[column.title]) for column in columns if column.title in widths]


def text_of_hidden(titles: Sequence[str]) -> str:
    """Return what is said of columns that have no room."""
    return f"not shown at this width: {', '.join(titles)}"


def _grow(widths: dict[str, int], goals: Sequence[tuple[str, int]], left: int) -> int:
    """Widen the columns in order, as far as their goals and as long as there are cells left."""
    for title, goal in goals:
        if title in widths:
            more = max(0, min(left, goal - widths[title]))
            widths[title] += more
            left -= more
    return left
