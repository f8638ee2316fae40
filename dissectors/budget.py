"""Bound the output for each input: a few hundred bytes must not become gigabytes.

One `Budget` covers a run. Bytes read add to it; decompressed and written bytes use it up. When it
is exhausted, output is cut, and the budget reports where that first happened and how often. A
`Bound` of the budget limits, in the same way, what is held at a time or taken over from a peer.
"""

from __future__ import annotations

from typing import Final, final

FREE_BYTES = 128 * 1024 * 1024
"""output bytes that are always allowed"""
MAX_REMEMBERED: Final = 65_536
"""connections, and queues of connections, with remembered state"""
MOST_TIMES: Final = 64
"""output bytes per input byte: JSON is at most ten times as large, and text seldom compresses to a
thirtieth
"""
EACH: Final = 4096
"""output bytes per command of any size: names and types need their room"""


@final
class Bound:
    """Limit on one kind of object at a time."""

    __slots__ = ("beyond", "ended", "first", "held", "most", "what")

    def __init__(self, what: str, most: int, beyond: str) -> None:
        """Count `what`, up to `most`; `beyond` says what happens to more ("left out")."""
        self.what = what
        self.most = most
        self.beyond = beyond
        self.held = 0
        """current number"""
        self.ended = 0
        """number beyond the limit"""
        self.first = ""
        """place where the limit was first exceeded"""

    @property
    def room(self) -> int:
        """Number that may still be added."""
        return max(self.most - self.held, 0)

    def end(self, place: str, more: int = 1) -> None:
        """Count objects beyond the limit; `place` says where."""
        self.ended += more
        self.first = self.first or place

    def said(self) -> str:
        """Describe the limit, the number beyond it, and where it was first exceeded."""
        # What is counted in bytes begins with that word, which the text then has as a unit.
        most = f"{self.most >> 20} MiB" if self.what.startswith("bytes ") else f"{self.most:,}"
        what = self.what.removeprefix("bytes ")
        more = f"{self.ended:,} {self.beyond}, first {self.first}"
        return f"no more than {most} {what}: {more}"


@final
class Budget:
    """Budget of one run."""

    __slots__ = ("_room", "_times", "bounds", "checks", "ended", "first", "made")

    def __init__(self, most: int | None = None, *, with_checks: bool = True) -> None:
        """`most`: a fixed limit; None: `FREE_BYTES` plus what input earns.

        `with_checks`: give test decompressions a budget of their own.
        """
        self._room = FREE_BYTES if most is None else most
        self._times = MOST_TIMES if most is None else 0
        self.checks = Budget(most, with_checks=False) if with_checks else self
        """budget for test decompressions of bodies"""
        self.made = 0
        """output bytes so far"""
        self.ended = 0
        """number of cut outputs"""
        self.first = ""
        """place of the first cut output"""
        self.bounds: dict[str, Bound] = {}
        """limits by kind of object"""

    def bound(self, what: str, most: int, beyond: str) -> Bound:
        """Return the limit of one kind of object, shared by all callers."""
        limit = self.bounds.get(what)
        if limit is None:
            limit = self.bounds[what] = Bound(what, most, beyond)
        return limit

    def said(self) -> list[str]:
        """Describe the limits that were exceeded."""
        return [bound.said() for bound in self.bounds.values() if bound.ended]

    @property
    def room(self) -> int:
        """Output bytes that are still allowed."""
        return max(self._room, 0)

    def earn(self, read: int) -> None:
        """Add the bytes of a command that was read."""
        if self._times:
            self._room += self._times * read + EACH
            if self.checks is not self:
                self.checks.earn(read)

    def spend(self, made: int) -> None:
        """Use up output bytes."""
        self.made += made
        self._room -= made

    def end(self, place: str) -> None:
        """Count a cut output; `place` names it."""
        self.ended += 1
        self.first = self.first or place
