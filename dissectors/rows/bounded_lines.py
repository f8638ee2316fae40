"""Bytes in, lines out: no line is held that is longer than the bound, and none is joined twice."""

from __future__ import annotations

from typing import Final

LONGEST_LINE: Final = 128 * 1024 * 1024
"""bytes of one line of JSON: the row of a command with 32 MiB of bodies has fewer"""


class LineTooLong(Exception):
    """A line goes on beyond the bound; its text says so."""


class BoundedLines:
    """Splits what is received at line feeds."""

    __slots__ = ("_held", "_longest", "_parts")

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0

    def receive(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk. Raises LineTooLong."""
        first, *more = chunk.split(b"\n")
        self._held += len(first)
        self._parts.append(first)
        if self._held > self._longest:
            raise LineTooLong(f"a line of more than {self._longest >> 20} MiB")
        if not more:
            return []
        lines = [self.finish(), *more]
        rest = lines.pop()
        self._parts, self._held = [rest], len(rest)
        return lines

    def finish(self) -> bytes:
        """Return what follows the last line feed, and forget it."""
        line = b"".join(self._parts)
        self._parts, self._held = [], 0
        return line
