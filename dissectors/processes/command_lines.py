"""Commands as lines of JSON: those of one process, and those of several put in the order of one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from ..budget import FREE_BYTES, Budget
from ..decode.command_order import MOST_BYTES, MOST_HELD, CommandSeen
from ..decode.command_row import command_line_of
from ..rows.encoded import Lines
from .merging import merged_lines, rows_of
from .task import Encoded

_NO_LINES: Final = memoryview(b"")
_GIVEN: Final = 64 * 1024
"""bytes of lines that are given together"""


class CommandLines:
    """Writes commands as lines, within the budget of a run."""

    def __init__(self, captures: Sequence[str], limit: int, budget: Budget | None = None) -> None:
        """Take the names of captures by index; `limit` bytes of a body are written."""
        self._captures = captures
        self._limit = limit
        self._budget = Budget() if budget is None else budget
        self._bytes = 0
        self.most_spent = 0
        """bytes that were made, beyond what reading earned by then, at the most"""

    def each_of(self, commands: Iterable[CommandSeen]) -> Iterator[bytes]:
        """Yield the line of each command."""
        budget = self._budget
        for one in commands:
            line = command_line_of(one, self._captures, self._limit, budget)
            budget.spend(len(line))
            yield line

    def of(self, commands: Sequence[CommandSeen]) -> tuple[bytes, bytes, bytes]:
        """Return the places of commands, their lines, and where the line of each ends.

        A place is the packet, and 0: commands of one packet are of one process, in their order.
        """
        lines = []
        budget, most = self._budget, self.most_spent
        for line in self.each_of(commands):
            lines.append(line)
            most = max(most, FREE_BYTES - min(budget.room, budget.checks.room))
        self.most_spent = FREE_BYTES if budget.ended or budget.checks.ended else most
        places = array("q", [number for one in commands for number in (one.pdu.packet, 0)])
        self._bytes += sum(one.pdu.header_length + len(one.pdu.body) for one in commands)
        ends = array("q", accumulate(map(len, lines)))
        return places.tobytes(), b"".join(lines), ends.tobytes()

    def take_bytes(self) -> int:
        """Return the bytes of headers and bodies since the last call."""
        taken, self._bytes = self._bytes, 0
        return taken


class CommandMerge:
    """Puts the commands of several processes in the order of packets.

    A process that waits for a hole to be filled gives its commands late. Those of later packets
    wait here, as they would in one process.
    """

    def __init__(self, jobs: int) -> None:
        self._lines: list[bytes] = [b""] * jobs
        self._runs: list[bytes] = [b""] * jobs
        self._rows = 0
        self._bytes = 0
        self.given = 0
        """commands that were given"""

    def is_near(self, rows: int, size: int, held: tuple[int, int]) -> bool:
        """Return whether one process might hold back more than it may.

        `rows` commands of `size` bytes come now; `held`: how many, and bytes, the processes hold.
        """
        commands, command_bytes = held
        if self._rows:
            commands, command_bytes = commands + rows, command_bytes + size
        return self._rows + commands > MOST_HELD or self._bytes + command_bytes > MOST_BYTES

    def merged(self, received: Sequence[Encoded | None], rows: int, size: int, floor: int) -> Lines:
        """Return the lines of packets before `floor`, in order; they hold until the next call.

        `rows` commands of `size` bytes are received.
        """
        lines, runs = [], []
        for number, one in enumerate(received):
            data = _NO_LINES if one is None else one.data
            before = self._lines[number]
            lines.append(memoryview(before + data) if before else data)
            runs.append(self._runs[number] + (b"" if one is None else one.runs))
        pieces, ends = merged_lines(lines, runs, floor)
        self._lines = [bytes(data[at:]) for data, (at, _) in zip(lines, ends, strict=True)]
        self._runs = [of[at:] for of, (_, at) in zip(runs, ends, strict=True)]
        waiting = sum(map(rows_of, self._runs))
        given = self._rows + rows - waiting
        self._rows, self._bytes = waiting, self._bytes + size if waiting else 0
        self.given += given
        return Lines(pieces, [given])


class LinesBehind:
    """Gives the lines of commands behind the first ones, which were given already.

    All lines are made, so that the budget is the same; what is made is given soon.
    """

    def __init__(self, given: int, lines: CommandLines) -> None:
        self._given = given
        self._lines = lines

    def of(self, commands: Iterable[CommandSeen]) -> Iterator[Lines]:
        """Yield the lines of the next commands."""
        waiting: list[bytes] = []
        size = 0
        for line in self._lines.each_of(commands):
            if self._given:
                self._given -= 1
                continue
            waiting.append(line)
            size += len(line)
            if size >= _GIVEN:
                yield Lines(waiting, [len(waiting)])
                waiting, size = [], 0
        yield Lines(waiting, [len(waiting)])
