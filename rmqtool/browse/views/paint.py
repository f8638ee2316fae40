"""Printable text as Textual draws it: styles by name, never markup, cells that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.text import Text
from textual.strip import Strip

from dissectors.printable import printable

PLAIN: Final = RichStyle()
_STYLES: Final = {
    "1": RichStyle(bold=True),
    "2": RichStyle(dim=True),
    "31": RichStyle(color="red"),
    "32": RichStyle(color="green"),
    "33": RichStyle(color="yellow"),
    "36": RichStyle(color="cyan"),
}
"""SGR number of `rmqtool.ui.console` → Textual style"""
_SGR: Final = re.compile(r"\x1b\[([\d;]*)m")

Piece = tuple[str, RichStyle]
"""a text with its style"""


def style_of(sgr: str) -> RichStyle:
    """Return the style of SGR sequences, or an empty string."""
    style = PLAIN
    for numbers in _SGR.findall(sgr):
        for number in numbers.split(";"):
            style += _STYLES.get(number, PLAIN)
    return style


def pieces_of(line: str) -> list[Piece]:
    """Return a printable line with our SGR sequences as styled pieces."""
    pieces: list[Piece] = []
    style = PLAIN
    for place, part in enumerate(_SGR.split(line)):
        if place % 2 == 0:
            if part:
                pieces.append((printable(part), style))
        elif part in ("", "0"):
            style = PLAIN
        else:
            style += style_of(f"\x1b[{part}m")
    return pieces


def strip_of(pieces: Iterable[Piece], base: RichStyle, width: int, start: int = 0) -> Strip:
    """Return a screen line from cell `start`, padded to its width."""
    strip = Strip([Segment(text, base + style) for text, style in pieces])
    return strip.crop(start, None if start else width).adjust_cell_length(width, base)


def text_of(text: str, style: str = "") -> Text:
    """Return a text as one printable line without markup."""
    return Text(printable(text) or " ", style=style, no_wrap=True, end="")
