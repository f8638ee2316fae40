"""Terminals: width, colours, and text fitted to them.

Text from the network comes here only after `dissectors.printable`; widths are in terminal cells, as
rich counts them, so columns stay aligned with Chinese topics. rich is imported only for text that
needs its tables.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import IO, NamedTuple

from dissectors.printable import MOST_SHOWN, printable

UNLIMITED = 1 << 30
"""Width of non-terminals: lines are not cut."""
MOST_OF_VALUE = 32_768
"""characters of a value in a full command: properties have no more"""
_NARROWEST = 40
ONE_CELL_EACH = "[ -\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u257f]*"
"""printable text without wide and combined characters: letters of the West, arrows, box drawing"""
_WIDE = "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
KNOWN_CELLS = f"[ -\u02ff\u2010-\u2027{_WIDE}]*"
"""printable text with double-width characters: kana, Han, Hangul"""
_FIRST_WIDE = _WIDE[0]
_TWO_CELLS = f"[{_WIDE}]+"


class When(StrEnum):
    """When to use colours."""

    auto = "auto"
    always = "always"
    never = "never"


class Terminal(NamedTuple):
    """The capabilities of a stream."""

    is_terminal: bool
    width: int
    """width in cells; `UNLIMITED` without a terminal"""
    colour: bool
    """colours are supported"""


def terminal_of(
    stream: IO[str], when: When = When.auto, environment: Mapping[str, str] = os.environ
) -> Terminal:
    """Return the capabilities of `stream`; honour COLUMNS, NO_COLOR, FORCE_COLOR, TERM=dumb.

    NO_COLOR has more weight than FORCE_COLOR, and --color more than both.
    """
    is_terminal = stream.isatty()
    width = UNLIMITED
    # COLUMNS asks for lines of this width also in a pipe
    if is_terminal or environment.get("COLUMNS", "").isdecimal():
        width = max(_NARROWEST, shutil.get_terminal_size().columns)
    if environment.get("NO_COLOR"):
        shown = False
    elif environment.get("FORCE_COLOR"):
        shown = True
    else:
        shown = is_terminal and environment.get("TERM") != "dumb"
    colour = when is When.always or (when is When.auto and shown)
    return Terminal(is_terminal, width, colour)


def terminal_of_output(target: str, when: When) -> Terminal:
    """Return the capabilities of an output: `-`, or a file, which has colours only on request."""
    if target == "-":
        return terminal_of(sys.stdout, when)
    return Terminal(False, UNLIMITED, when is When.always)


class Style:
    """SGR sequences; the colours are readable on light and dark screens."""

    DIM = "\x1b[2m"
    BOLD = "\x1b[1m"
    RED = "\x1b[31m"
    GREEN = "\x1b[32m"
    YELLOW = "\x1b[33m"
    CYAN = "\x1b[36m"
    RESET = "\x1b[0m"


def styled(text: str, style: str) -> str:
    """Return `text` wrapped in `style`; an empty style changes nothing."""
    return f"{style}{text}{Style.RESET}" if style else text


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return a compiled pattern: large sets of characters take milliseconds of each start."""
    return re.compile(text)


def cells(text: str) -> int:
    """Return the width of a printable text in terminal cells."""
    if text.isascii() or _pattern(ONE_CELL_EACH).fullmatch(text):
        return len(text)
    if _pattern(KNOWN_CELLS).fullmatch(text):
        return len(text) + sum(map(len, _pattern(_TWO_CELLS).findall(text)))
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, keep_end: bool = False) -> str:
    """Return `text`, cut to `width` cells with an ellipsis."""
    if cells(text) <= width:
        return text
    kept = max(0, width - 1)
    if text.isascii() or _pattern(ONE_CELL_EACH).fullmatch(text):
        return "…" + text[len(text) - kept :] if keep_end else text[:kept] + "…"
    if _pattern(KNOWN_CELLS).fullmatch(text):
        used = 0
        for index, char in enumerate(reversed(text) if keep_end else text):
            # of these characters, all from the first kana on are wide
            used += 2 if char >= _FIRST_WIDE else 1
            if used > kept:
                return "…" + text[len(text) - index :] if keep_end else text[:index] + "…"
    from rich.cells import split_graphemes

    spans, whole = split_graphemes(text)
    for start, end, taken in spans if keep_end else reversed(spans):
        whole -= taken
        if whole <= kept:
            return "…" + text[end:] if keep_end else text[:start] + "…"
    return "…"


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Return `text` as at most `most` lines of `width` cells, wrapped at blanks if possible.

    The rest is cut with an ellipsis; an empty text has no line.
    """
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most - 1 and cells(rest) > width:
        part = cut(rest, width).removesuffix("…")
        # a blank in the first half would leave a very short line
        at = len(part) if rest[len(part)] == " " else part.rfind(" ")
        part = part[:at] if at > width // 2 else part
        lines.append(part.rstrip())
        rest = rest[len(part) :].lstrip()
    return [*lines, cut(rest, width)] if rest else lines


def padded(text: str, width: int, right: bool = False) -> str:
    """Return `text` padded to `width` cells; longer texts are unchanged."""
    if text.isascii():
        return text.rjust(width) if right else text.ljust(width)
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def one_line(text: str | None, most: int = MOST_SHOWN) -> str:
    """Return a text from the network as one printable line; empty if absent.

    Of more than `most` characters the rest is counted.
    """
    if text is None:
        return ""
    if len(text) > most:
        return f"{printable(text[:most])}… {len(text) - most:,} more"
    return text if text.isprintable() else printable(text)
