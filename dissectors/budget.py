"""What may be made of what was read: a few hundred bytes must not become gigabytes.

One `Budget` goes through a run. What is read earns room, what is made of it takes room: bytes that
compressed bodies become, and bytes that are written. Where the room ends, less is made; the budget
says where that was first and how often, so that nobody takes a cut result for a whole one. What is
held at a time, or taken over from a peer, has a `Bound` of the budget, which says the same.
"""

from __future__ import annotations

from typing import Final, final

FREE_BYTES = 128 * 1024 * 1024
"""bytes that may be made whatever was read"""
MAX_REMEMBERED: Final = 65_536
"""connections, and queues of connections, of which something is remembered for messages"""
MOST_TIMES: Final = 64
"""bytes that each byte read may become besides: written as JSON it is ten at most, and text seldom
shrinks to a thirtieth"""
EACH: Final = 4096
"""bytes that a command may become besides, however short it is: names and types take their room"""


@final
class Bound:
    """How much of one thing there may be at a time."""

    __slots__ = ("beyond", "ended", "first", "held", "most", "what")

    def __init__(self, what: str, most: int, beyond: str) -> None:
        """Take what is counted, how much there may be, and what becomes of more ("left out")."""
        self.what = what
        self.most = most
        self.beyond = beyond
        self.held = 0
        """how much there is now"""
        self.ended = 0
        """how much more there would have been"""
        self.first = ""
        """where that was first"""

    @property
    def room(self) -> int:
        """How much more there may be."""
        return max(self.most - self.held, 0)

    def end(self, place: str, more: int = 1) -> None:
        """Note that there was more than may be; `place` says where."""
        self.ended += more
        self.first = self.first or place

    def said(self) -> str:
        """Return how much there may be, and how much more there was, first where."""
        most = f"{self.most >> 20} MiB" if self.what.startswith("bytes ") else f"{self.most:,}"
        what = self.what.removeprefix("bytes ")
        more = f"{self.ended:,} {self.beyond}, first {self.first}"
        return f"no more than {most} {what}: {more}"


@final
class Budget:
    """The room of one run."""

    __slots__ = ("_room", "_times", "bounds", "checks", "ended", "first", "made")

    def __init__(self, most: int | None = None, *, with_checks: bool = True) -> None:
        """`most` bytes whatever was read; None: `FREE_BYTES` and what reading earns.

        `with_checks`: what is made only to be looked at has a budget of its own.
        """
        self._room = FREE_BYTES if most is None else most
        self._times = MOST_TIMES if most is None else 0
        self.checks = Budget(most, with_checks=False) if with_checks else self
        """for what is made only to be looked at: whether a body can be decompressed"""
        self.made = 0
        """bytes that were made so far"""
        self.ended = 0
        """how often less was made than there was"""
        self.first = ""
        """where that was first"""
        self.bounds: dict[str, Bound] = {}
        """what may be held, or taken over, at a time: by what is counted"""

    def bound(self, what: str, most: int, beyond: str) -> Bound:
        """Return the bound of one thing, which all share who ask for it."""
        found = self.bounds.get(what)
        if found is None:
            found = self.bounds[what] = Bound(what, most, beyond)
        return found

    def said(self) -> list[str]:
        """Return what was bounded where there was more."""
        return [one.said() for one in self.bounds.values() if one.ended]

    @property
    def room(self) -> int:
        """Bytes that may still be made."""
        return max(self._room, 0)

    def earn(self, read: int) -> None:
        """Note a command of so many bytes that was read."""
        if self._times:
            self._room += self._times * read + EACH
            if self.checks is not self:
                self.checks.earn(read)

    def spend(self, made: int) -> None:
        """Note bytes that were made."""
        self.made += made
        self._room -= made

    def end(self, place: str) -> None:
        """Note that less was made than there was; `place` says of what."""
        self.ended += 1
        self.first = self.first or place
