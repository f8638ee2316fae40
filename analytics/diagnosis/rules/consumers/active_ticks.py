"""A compact set of active ticks, one bit per tick, independent of the order.

A tick is an eighth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

PER_SECOND: Final = 8
TICK: Final = 1_000_000_000 // PER_SECOND
"""ns"""
CHUNK: Final = 1024
"""ticks per chunk"""
MAX_CHUNKS: Final = 8192
"""twelve days; later ticks are not kept"""

MANY_CHUNKS: Final = 16
"""half an hour; `forget` shortens longer sets"""


class Ticks:
    """A set of ticks since the epoch."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}

    @property
    def full(self) -> bool:
        """Whether later ticks may be missing."""
        return len(self._chunks) >= MAX_CHUNKS

    def add(self, ticks: Iterable[int]) -> None:
        """Add ticks."""
        chunks = self._chunks
        for tick in ticks:
            number, bit = divmod(tick, CHUNK)
            known = chunks.get(number)
            if known is not None:
                chunks[number] = known | 1 << bit
            elif len(chunks) < MAX_CHUNKS:
                chunks[number] = 1 << bit

    def merge(self, other: Ticks) -> None:
        """Add the ticks of another set."""
        for number, bits in other._chunks.items():
            known = self._chunks.get(number)
            if known is not None or len(self._chunks) < MAX_CHUNKS:
                self._chunks[number] = bits | (known or 0)

    def forget(self) -> None:
        """Drop the earlier half of a long set."""
        if len(self._chunks) > MANY_CHUNKS:
            for number in sorted(self._chunks)[: MANY_CHUNKS // 2]:
                del self._chunks[number]

    def __contains__(self, tick: int) -> bool:
        number, bit = divmod(tick, CHUNK)
        return bool(self._chunks.get(number, 0) >> bit & 1)

    def __iter__(self) -> Iterator[int]:
        """Yield the ticks in ascending order."""
        for number, bits in sorted(self._chunks.items()):
            while bits:
                lowest = bits & -bits  # the lowest bit alone
                yield number * CHUNK + lowest.bit_length() - 1
                bits ^= lowest

    def last_before(self, tick: int) -> int | None:
        """Return the last earlier tick, or None."""
        number, bit = divmod(tick, CHUNK)
        bits = self._chunks.get(number, 0) & ((1 << bit) - 1)
        # Almost always in the chunk before: only a long gap needs the search through all of them.
        if not bits and number - 1 in self._chunks:
            number -= 1
            bits = self._chunks[number]
        if not bits:
            earlier = [one for one in self._chunks if one < number]
            if not earlier:
                return None
            number = max(earlier)
            bits = self._chunks[number]
        return number * CHUNK + bits.bit_length() - 1
