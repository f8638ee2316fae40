"""Text from the network made safe to show: what could steer a terminal becomes visible.

A topic, a remark or a key is what somebody else wrote. Escape sequences in it could recolour a
screen, answer for the keyboard or hide what follows; line ends could forge a line; direction marks
could turn one round. So a character that does not print is shown as an escape, ``\\x1b``.
"""

from __future__ import annotations

import re
from typing import Final

MOST_SHOWN: Final = 1000
"""characters of one text in a table or a page; JSON lines, CSV and Parquet have all"""
COUNT_LENGTH: Final = 32
"""characters that say how many more there are, at most: nothing is cut for fewer"""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return `text` with what does not print shown as ``\\n``, ``\\x1b`` or ``\\u202e``."""
    if text.isprintable():
        return text
    return _UNUSUAL.sub(_visible, text)


_UNUSUAL = re.compile("[^ -~]+")


def _visible(found: re.Match[str]) -> str:
    known = _ESCAPES.get(found[0])  # nearly all: what separates properties
    if known is not None:
        return known
    return "".join(char if char.isprintable() else _escape_of(char) for char in found[0])


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
    """Return a text as it is, or its first `most` characters and how many more there are.

    One that was cut so already stays as it is.
    """
    return text if len(text) <= most + COUNT_LENGTH else f"{text[:most]}… {len(text) - most:,} more"
