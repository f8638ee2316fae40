"""Texts with labels: within a frame drawn by rich on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from ..console import UNLIMITED, Style, Terminal, styled, terminal_of, wrapped

if TYPE_CHECKING:
    from rich.table import Table

_WIDEST: Final = 120
"""cells of a frame around an error or a question"""
MOST_LINES: Final = 40
"""lines of one text where it is not in a frame"""


class Labelled(NamedTuple):
    """A text of as many lines as it needs."""

    text: str
    """printable"""
    style: str = ""
    """SGR sequence"""
    label: str = ""
    """what stands before its first line"""
    label_style: str = ""
    """its SGR sequence"""
    indent: int = 0
    """cells before the text; the label stands in them"""


def fact_lines(facts: Sequence[Labelled], terminal: Terminal) -> list[str]:
    """Return texts as plain lines, in colours where the terminal has them."""
    lines = []
    for fact in facts:
        width = terminal.width
        room = width - fact.indent
        texts = [fact.text] if width >= UNLIMITED else wrapped(fact.text, room, MOST_LINES)
        for number, text in enumerate(texts):
            mark = "" if number else fact.label
            start = " " * (fact.indent - len(mark))
            if terminal.colour:
                mark, text = styled(mark, fact.label_style), styled(text, fact.style)
            lines.append(f"{mark}{start}{text}")
    return lines


def panel_lines(title: str, style: str, facts: Sequence[Labelled], terminal: Terminal) -> list[str]:
    """Return a frame with a title around texts; `style` is that of the frame and the title."""
    from rich.console import Group
    from rich.panel import Panel

    from .drawing import lines_of, style_of, text_of

    panel = Panel(
        Group(*_grids(facts)),
        title=text_of(title, style),
        title_align="left",
        border_style=style_of(style),
        width=terminal.width,
    )
    return lines_of(terminal, panel)


def error_lines(texts: Sequence[str], stream: IO[str]) -> list[str]:
    """Return what is wrong, in a frame for the terminal that `stream` is."""
    return _notice("Error", Style.RED, texts, terminal_of(stream))


def question_lines(title: str, texts: Sequence[str], stream: IO[str]) -> list[str]:
    """Return what must be known before a question: in a frame on a terminal."""
    terminal = terminal_of(stream)
    if not terminal.is_terminal:
        return list(texts)
    return _notice(title, Style.YELLOW, texts, terminal)


def _notice(title: str, style: str, texts: Sequence[str], terminal: Terminal) -> list[str]:
    shown = terminal._replace(width=min(terminal.width, _WIDEST))
    return panel_lines(title, style, list(map(Labelled, texts)), shown)


def _grids(facts: Sequence[Labelled]) -> list[Table]:
    """Return the texts; those with the same indent in a row share a grid."""
    from rich.table import Table

    from .drawing import folded_text, text_of

    grids: list[Table] = []
    last = -1
    for fact in facts:
        if fact.indent != last:
            last = fact.indent
            grid = Table.grid()
            if fact.indent:
                grid.add_column(width=fact.indent, no_wrap=True)
            grid.add_column(overflow="fold")
            grids.append(grid)
        labels = [text_of(fact.label, fact.label_style)] if fact.indent else []
        grids[-1].add_row(*labels, folded_text(fact.text, fact.style))
    return grids
