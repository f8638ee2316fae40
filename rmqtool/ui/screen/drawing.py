"""Rich renderables as lines, for a terminal's width and colours.

Rules: all text goes to rich as `Text`, never as a string, so it cannot be markup, an emoji code, a
link, or highlighted. Rich only renders lines; they are written like all output.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from typing import IO, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.style import Style as RichStyle
from rich.text import Text
from rich.theme import Theme

from ..console import Style, Terminal

_WORDS: Final[Mapping[str, str]] = {
    Style.DIM: "dim",
    Style.BOLD: "bold",
    Style.RED: "red",
    Style.GREEN: "green",
    Style.YELLOW: "yellow",
    Style.CYAN: "cyan",
}
"""SGR sequence → rich style"""


@cache
def style_of(sgr: str) -> RichStyle:
    """Return the rich style of our SGR sequences."""
    parts = (f"\x1b{part}" for part in sgr.split("\x1b")[1:])
    return RichStyle.parse(" ".join(_WORDS[part] for part in parts))


def text_of(text: str, style: str = "") -> Text:
    """Return a printable text as rich `Text` in one style."""
    return Text(text, style_of(style), end="", no_wrap=True, overflow="crop")


def folded_text(text: str, style: str = "") -> Text:
    """Return a printable text that wraps."""
    return Text(end="", overflow="fold").append(text, style_of(style))


class Hanging:
    """A text with a hanging indent."""

    def __init__(self, text: Text, hang: int) -> None:
        self._text = text
        self._hang = hang

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if self._text.cell_len > width:
            width -= self._hang
        for number, line in enumerate(self._text.wrap(console, width, overflow="fold")):
            line.rstrip()
            if number:
                line.pad_left(self._hang)
            line.end = "\n"
            yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._text)


def console_on(
    file: IO[str], terminal: Terminal, styles: Mapping[str, str] | None = None
) -> Console:
    """Return a rich console for a stream, without markup.

    `styles` are used where rich has its own.
    """
    return Console(
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
        theme=Theme(styles) if styles else None,
        _environ={},  # `terminal` has decided on COLUMNS and NO_COLOR
    )


def lines_of(
    terminal: Terminal, *drawn: RenderableType, styles: Mapping[str, str] | None = None
) -> list[str]:
    """Return rendered lines without trailing blanks."""
    file = io.StringIO()
    console_on(file, terminal, styles).print(*drawn, sep="\n", end="")
    return [line.rstrip(" ") for line in file.getvalue().rstrip("\n").split("\n")]


_STYLES: Final = {"markdown.code": "cyan", "markdown.code_block": "cyan"}
"""styles that are readable on light and dark screens: without background"""
_CODE: Final = "ansi_light"


def document_lines(text: str, terminal: Terminal) -> list[str]:
    """Return a document of the project as lines; never a text of the network, as it is Markdown."""
    from rich.markdown import Markdown  # has a parser, which only `help` needs

    return lines_of(terminal, Markdown(text, code_theme=_CODE), styles=_STYLES)
