"""Line splitting with a bounded line length; no bytes are joined twice."""

from __future__ import annotations

from typing import Final

LONGEST_LINE: Final = 128 * 1024 * 1024
"""maximum bytes of one JSON line: a command row with 32 MiB of bodies has fewer"""


class LineTooLong(Exception):
    """A line exceeds the bound; the message says so."""


class BoundedLines:
    """Splits received bytes at line feeds."""

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
        """Return what follows the last line feed, and clear it."""
        line = b"".join(self._parts)
        self._parts, self._held = [], 0
        return line
