"""What rich draws, as lines: for a terminal of a certain width, with colours or without.

Rules: all text goes to rich as `Text`, never as a string, so that nothing in it is markup, an emoji
code, a link, or coloured for what it looks like. Where the lines go is not rich's business: they
are written as all output is.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from typing import Final

from rich.console import Console, RenderableType
from rich.style import Style as RichStyle
from rich.text import Text

from ..console import Style, Terminal

_WORDS: Final[Mapping[str, str]] = {
    Style.DIM: "dim",
    Style.BOLD: "bold",
    Style.RED: "red",
    Style.GREEN: "green",
    Style.YELLOW: "yellow",
    Style.CYAN: "cyan",
}
"""SGR sequence → what rich calls it"""


@cache
def style_of(sgr: str) -> RichStyle:
    """Return the style that some of our SGR sequences mean."""
    parts = (f"\x1b{part}" for part in sgr.split("\x1b")[1:])
    return RichStyle.parse(" ".join(_WORDS[part] for part in parts))


def text_of(text: str, style: str = "") -> Text:
    """Return a printable text as rich takes it: as it is, in one style."""
    return Text(text, style_of(style), end="", no_wrap=True, overflow="crop")


def folded_text(text: str, style: str = "") -> Text:
    """Return a printable text that takes as many lines as it needs."""
    return Text(text, style_of(style), end="", overflow="fold")


def lines_of(terminal: Terminal, *drawn: RenderableType) -> list[str]:
    """Return what rich draws, without blanks at the ends of lines."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=terminal.width,
        force_terminal=True,
        color_system="standard" if terminal.colour else None,
        no_color=not terminal.colour,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        force_jupyter=False,
        _environ={},
    )
    console.print(*drawn, sep="\n", end="")
    return [line.rstrip(" ") for line in file.getvalue().rstrip("\n").split("\n")]
