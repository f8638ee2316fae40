"""Memory that a process shares with the one that started it: what it writes there is read where it
stands, without a copy through a pipe.

A byte for each unit says whether it is in use. Only the writer takes units and only the reader
gives them back, so none of them waits; where there is no room, the writer takes another way. A
place is said in a message through a pipe, behind what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Final

UNIT: Final = 16 * 1024
UNITS: Final = 512
"""8 MiB in all, of which only what is used takes memory"""
NO_PLACE: Final = -1


class SharedBlocks:
    """Blocks of bytes from one process to another; made before the process is forked."""

    def __init__(self) -> None:
        """Raise OSError where there is no memory to share."""
        self._memory = mmap(-1, UNITS + UNITS * UNIT)
        self._view = memoryview(self._memory)

    def put(self, parts: Sequence[bytes | memoryview], size: int) -> int:
        """Write the parts of a block, `size` bytes in all; return its place.

        NO_PLACE: there is no room. The lowest place is taken, which the processor still knows.
        """
        units = -(-size // UNIT)
        unit = self._memory.find(bytes(units), 0, UNITS)
        if unit < 0:
            return NO_PLACE
        self._memory[unit : unit + units] = b"\1" * units
        begin = at = UNITS + unit * UNIT
        for part in parts:
            self._memory[at : at + len(part)] = part
            at += len(part)
        return begin

    def block(self, place: int, size: int) -> memoryview:
        """Return a block as it stands there; it holds until it is given back."""
        return self._view[place : place + size]

    def free(self, place: int, size: int) -> None:
        """Give a block back."""
        unit, units = (place - UNITS) // UNIT, -(-size // UNIT)
        self._memory[unit : unit + units] = bytes(units)
