"""Rows as aligned lines: selects columns, widths, and cuts.

Rules: on a narrow terminal the columns of the lowest ranks stay, and the remaining cells go to
those that need them. The first rows determine the widths. A wrapping text is in the line if
all of it fits, otherwise below. Without a terminal an oversized cell shifts the rest of its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from dissectors.printable import MOST_SHOWN, shortened

from .console import UNLIMITED, Style, Terminal, cells, cut, padded, styled, wrapped
from .figures import count

Row = TypeVar("Row")
CORE_RANK = 7
"""Columns up to this rank are shown in full before any other."""
_NARROW = 100
ABSENT = "-"
"""Cell of a value that is not there; it is never written below a row."""
_BELOW = "  └ "
"""Prefix of a text below its row."""
_MOST_BELOW = 4
"""Most lines of a text below its row."""


class LineColumn(NamedTuple, Generic[Row]):
    """A text column."""

    title: str
    """heading"""
    cell: Callable[[Row], str]
    """row -> printable text"""
    rank: int
    """rank: 1 is dropped last"""
    least: int
    """minimum width in cells"""
    most: int
    """maximum width in cells"""
    right: bool = False
    style: Callable[[Row], str] | None = None
    """row -> SGR sequence; None: no colour"""
    keep_end: bool = False
    """cut a long cell at its beginning: the end of an address matters more"""
    wraps: bool = False
    """write a cell that does not fit below its row, wrapped"""


class _Cells(NamedTuple):
    """The cells of a row."""

    section: str
    texts: list[str]
    """texts, one for each possible column"""
    styles: list[str]
    """SGR sequences of the texts; empty without colour"""


def counter(title: str, get: Callable[[Row], int], rank: int) -> LineColumn[Row]:
    """Return a column of numbers."""
    return LineColumn(title, lambda row: count(get(row)), rank, max(5, len(title)), 12, True)


def alarm(title: str, get: Callable[[Row], int], rank: int) -> LineColumn[Row]:
    """Return a column of numbers that should be 0."""

    def style(row: Row) -> str:
        return Style.RED if get(row) else ""

    return counter(title, get, rank)._replace(style=style)


class LaidRow(NamedTuple):
    """A row fitted to a terminal."""

    cells: list[tuple[str, str]]
    """fitted text and SGR sequence of each shown column"""
    below: list[str]
    """lines below the row, of texts that do not fit"""


class Laid(NamedTuple):
    """All rows of a bounded table, fitted to a terminal."""

    columns: list[tuple[str, int, bool]]
    """title, width, right-aligned"""
    rows: list[LaidRow]
    """rows in input order"""
    gap: int
    """cells between two columns"""


class LineTable(Generic[Row]):
    """Formats rows as lines; the first rows determine the widths."""

    def __init__(
        self,
        columns: Sequence[LineColumn[Row]],
        terminal: Terminal,
        sample: int = 500,
        section: Callable[[Row], str] | None = None,
    ) -> None:
        """`sample`: rows to wait for before the first line; 1: rows come slowly.

        `section` returns the section of a row; a change becomes a separate line.
        """
        self._columns = columns
        self._terminal = terminal
        self._sample = sample
        self._section = section
        self._last_section = ""
        self._waiting: list[_Cells] = []
        self._layout: list[tuple[LineColumn[Row], int]] | None = None
        limited = terminal.width < UNLIMITED
        self._wrapping = [column for column in columns if column.wraps and limited]
        self.hidden: list[str] = []
        """titles of non-empty columns without space, after lines were returned"""
        self._gap = " " if terminal.width < _NARROW else "  "

    def lines_of(self, rows: Sequence[Row]) -> list[str]:
        """Return the lines that are ready, the header first; rows may wait for the sample."""
        if self._layout is not None:
            return self._lines_with(rows, self._layout, self._wrapping, self._section)
        self._waiting += map(self._cells_of, rows)  # cells only: rows may hold much memory
        return self.rest() if len(self._waiting) >= self._sample else []

    def rest(self) -> list[str]:
        """Return the lines of the waiting rows."""
        if not self._waiting:
            return []
        rows, self._waiting = self._waiting, []
        self._layout = self._settle(rows)
        kept = [_of_cells(column, place) for place, column in enumerate(self._columns)]
        by_title = {column.title: column for column in kept}
        layout = [(by_title[column.title], width) for column, width in self._layout]
        wrapping = [by_title[column.title] for column in self._wrapping]
        section = None if self._section is None else _section_of
        return [self._head(self._layout), *self._lines_with(rows, layout, wrapping, section)]

    def settled(self, rows: Sequence[Row]) -> list[tuple[LineColumn[Row], int]]:
        """Return the columns that fit for these rows, with their widths."""
        return self._settle(list(map(self._cells_of, rows)))

    def laid(self, rows: Sequence[Row]) -> Laid:
        """Return all rows of a table fitted to the terminal, without drawing them."""
        cells_of_rows = list(map(self._cells_of, rows))
        layout = self._settle(cells_of_rows)
        places = {column.title: place for place, column in enumerate(self._columns)}
        columns = [(cut(c.title, width), width, c.right) for c, width in layout]
        shown = [(column, width, places[column.title]) for column, width in layout]
        titles = {column.title for column, _ in layout}
        missing = [(c, 0, places[c.title]) for c in self._wrapping if c.title not in titles]
        laid = []
        for row_cells in cells_of_rows:
            row = LaidRow([], [])
            for column, width, place in (*shown, *missing):
                text, style = row_cells.texts[place], row_cells.styles[place]
                if column.wraps and cells(text) > width:
                    row.below.extend(self._below(text, style))
                    text = ""
                if width:
                    row.cells.append((cut(text, width, column.keep_end), style))
            laid.append(row)
        return Laid(columns, laid, len(self._gap))

    def _cells_of(self, row: Row) -> _Cells:
        """Return the cells of a row."""
        section = self._section(row) if self._section is not None else ""
        texts = [_readable(column.cell(row), column.most) for column in self._columns]
        coloured = self._terminal.colour
        styles = [c.style(row) if coloured and c.style else "" for c in self._columns]
        return _Cells(section, texts, styles)

    def _head(self, layout: Sequence[tuple[LineColumn[Row], int]]) -> str:
        texts = [padded(cut(c.title, width), width, c.right) for c, width in layout]
        line = self._gap.join(texts).rstrip()
        return styled(line, Style.BOLD) if self._terminal.colour else line

    def _settle(self, rows: Sequence[_Cells]) -> list[tuple[LineColumn[Row], int]]:
        wanted = {}
        for place, column in enumerate(self._columns):
            widest = max((cells(row_cells.texts[place]) for row_cells in rows), default=0)
            wanted[column.title] = max(len(column.title) if widest else 0, widest)
        shown = [column for column in self._columns if wanted[column.title] > 0]
        if self._terminal.width >= UNLIMITED:  # nothing is left out or below
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

    def _lines_with(
        self,
        rows: Iterable[Any],
        layout: Sequence[tuple[LineColumn[Any], int]],
        wrapping: Sequence[LineColumn[Any]],
        section_of: Callable[[Any], str] | None,
    ) -> list[str]:
        """Return the lines of rows, or of their cells."""
        last = layout[-1][0] if layout and not layout[-1][0].right else None
        limited = self._terminal.width < UNLIMITED
        colour = self._terminal.colour
        gap = self._gap
        shown = [column for column, _ in layout]
        missing = [column for column in wrapping if column not in shown]
        lines = []
        for row in rows:
            if section_of is not None and (section := section_of(row)) != self._last_section:
                self._last_section = section
                lines.append(styled(section, Style.BOLD) if colour else section)
            texts = []
            below: list[str] = []
            for column, width in layout:
                text = column.cell(row)
                if column.wraps and limited and cells(text) > width:
                    below += self._below(_readable(text, column.most), self._style(column, row))
                    text = ""
                if len(text) != width or not text.isascii():
                    if len(text) > MOST_SHOWN:
                        text = _readable(text, column.most)
                    if limited:
                        text = cut(text, width, column.keep_end)
                    if column is not last:
                        if not text.isascii():
                            text = padded(text, width, column.right)
                        else:  # nearly all
                            text = text.rjust(width) if column.right else text.ljust(width)
                if colour and column.style is not None:
                    text = styled(text, column.style(row))
                texts.append(text)
            lines.append(gap.join(texts).rstrip())
            for column in missing:
                text = _readable(column.cell(row), column.most)
                below += self._below(text, self._style(column, row))
            lines += below
        return lines

    def _style(self, column: LineColumn[Any], row: object) -> str:
        return column.style(row) if self._terminal.colour and column.style is not None else ""

    def _below(self, text: str, style: str) -> list[str]:
        """Return a wrapping text as lines below its row."""
        if text == ABSENT:
            return []
        width = self._terminal.width - len(_BELOW)
        texts = wrapped(text, width, _MOST_BELOW)
        marks = [_BELOW, *[" " * len(_BELOW)] * len(texts)]
        return [f"{mark}{styled(line, style)}" for mark, line in zip(marks, texts, strict=False)]


def _of_cells(column: LineColumn[Any], place: int) -> LineColumn[Any]:
    """Return a column of the cells that were made of rows."""
    style = None if column.style is None else lambda one: str(one.styles[place])
    return column._replace(cell=lambda one: str(one.texts[place]), style=style)


def _section_of(cells_of_row: _Cells) -> str:
    return cells_of_row.section


def _readable(text: str, most: int) -> str:
    """Return a cell cut to a readable length: a captured topic may have a megabyte."""
    return shortened(text, max(MOST_SHOWN, most))


def _fit(
    columns: Sequence[LineColumn[Row]], wanted: dict[str, int], width: int, gap: int, live: bool
) -> list[tuple[LineColumn[Row], int]]:
    """Return the columns that fit into `width`, in their order, with their widths."""
    # Each column is counted with a gap, but none follows the last one.
    left = width + gap
    widths: dict[str, int] = {}
    ranked = sorted(columns, key=lambda column: column.rank)
    core = [column for column in ranked if column.rank <= CORE_RANK]
    more = [column for column in ranked if column.rank > CORE_RANK]
    for group in (core, more):
        for column in group:
            known = max(wanted[column.title], len(column.title))
            least = column.least if live else min(column.least, known)
            if least + gap <= left:
                widths[column.title] = least
                left -= least + gap
        left = _grow(widths, [(c.title, min(wanted[c.title], c.most)) for c in group], left)
    if live:  # later rows may be wider than the few that are known
        _grow(widths, [(c.title, c.most) for c in ranked], left)
    return [(column, widths[column.title]) for column in columns if column.title in widths]


def text_of_hidden(titles: Sequence[str]) -> str:
    """Return the note on columns without space."""
    return f"hidden at this width: {', '.join(titles)}"


def _grow(widths: dict[str, int], goals: Sequence[tuple[str, int]], left: int) -> int:
    """Widen the columns in order, up to their goals, while cells are left."""
    for title, goal in goals:
        if title in widths:
            more = max(0, min(left, goal - widths[title]))
            widths[title] += more
            left -= more
    return left
