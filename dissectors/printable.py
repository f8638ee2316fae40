"""Make captured text safe to show: escape what could control a terminal.

Topics, remarks, and keys are foreign text. Escape sequences could recolour a screen, send input, or
hide text; line ends could forge a line; direction marks could reverse one. Unprintable characters
are shown as escapes, ``\x1b``.
"""

from __future__ import annotations

import re
from typing import Final

MOST_SHOWN: Final = 1000
"""characters of one text in a table or a page; JSON lines, CSV, and Parquet have all"""
COUNT_LENGTH: Final = 32
"""maximum characters of the "how many more" suffix: nothing is cut for fewer"""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return `text` with unprintable characters shown as ``\n``, ``\x1b``, or ``\u202e``."""
    if text.isprintable():
        return text
    return _UNUSUAL.sub(_visible, text)


_UNUSUAL = re.compile("[^ -~]+")


def _visible(match: re.Match[str]) -> str:
    known = _ESCAPES.get(match[0])  # the most frequent one: separator of properties
    if known is not None:
        return known
    return "".join(char if char.isprintable() else _escape_of(char) for char in match[0])


def _escape_of(char: str) -> str:
    named = _NAMED.get(char)
    if named is not None:
        return named
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_ESCAPES: Final = {chr(number): _escape_of(chr(number)) for number in range(ord(" "))}


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text, cut after `most` characters with the number of characters left out.

    A text that is already cut stays as it is.
    """
    return text if len(text) <= most + COUNT_LENGTH else f"{text[:most]}… {len(text) - most:,} more"
