"""Commands as JSON lines, from one process or merged from several in packet order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from ..budget import FREE_BYTES, Budget
from ..decode.command_order import MOST_BYTES, MOST_HELD, CommandSeen
from ..decode.command_row import CommandLineWriter
from ..rows.encoded import Lines
from .merging import merged_lines, rows_of

if TYPE_CHECKING:
    from .task import Encoded

_BATCH_BYTES: Final = 64 * 1024
"""size of a batch of lines, bytes"""


class CommandLines:
    """Writes commands as lines, within the budget of a run."""

    def __init__(self, captures: Sequence[str], limit: int, budget: Budget | None = None) -> None:
        """Write at most `limit` bytes of a body; `captures` are the names by index."""
        self._budget = Budget() if budget is None else budget
        self._writer = CommandLineWriter(captures, limit, self._budget)
        self.most_spent = 0
        """peak of the bytes spent beyond what reading had earned by then"""

    def each_of(self, commands: Iterable[CommandSeen]) -> Iterator[bytes]:
        """Yield the line of each command."""
        budget = self._budget
        for command in commands:
            line = self._writer.line_of(command)
            budget.spend(len(line))
            yield line

    def of(self, commands: Sequence[CommandSeen]) -> tuple[bytes, bytes, bytes, int]:
        """Return the places of commands, their lines, the end offset of each line, and the bytes of
        headers and bodies.

        A place is (packet, 0): commands of one packet come from one process, in order.
        """
        lines = []
        budget, most = self._budget, self.most_spent
        for line in self.each_of(commands):
            lines.append(line)
            most = max(most, FREE_BYTES - min(budget.room, budget.checks.room))
        self.most_spent = FREE_BYTES if budget.ended or budget.checks.ended else most
        places = array("q", [number for command in commands for number in (command.pdu.packet, 0)])
        size = sum(command.pdu.header_length + len(command.pdu.body) for command in commands)
        ends = array("q", accumulate(map(len, lines)))
        return places.tobytes(), b"".join(lines), ends.tobytes(), size


class CommandMerge:
    """Merges the commands of several processes in packet order.

    A process that waits for a hole to be filled emits its commands late; commands of later packets
    wait here, as they would in a single process.
    """

    def __init__(self, jobs: int) -> None:
        self._lines: list[bytes] = [b""] * jobs
        self._runs: list[bytes] = [b""] * jobs
        self._rows = 0
        self._bytes = 0
        self.given = 0
        """commands emitted"""

    def is_near(self, rows: int, size: int, held: tuple[int, int]) -> bool:
        """Return whether a single process might exceed its limit of held commands.

        `rows` commands of `size` bytes arrive; `held` are the number and bytes held by the
        processes.
        """
        commands, command_bytes = held
        if self._rows:
            commands, command_bytes = commands + rows, command_bytes + size
        return self._rows + commands > MOST_HELD or self._bytes + command_bytes > MOST_BYTES

    def merged(self, received: Sequence[Encoded], rows: int, size: int, floor: int) -> Lines:
        """Return the lines of packets before `floor`, in order; valid until the next call.

        `rows` commands of `size` bytes were received.
        """
        lines, runs = [], []
        for number, encoded in enumerate(received):
            before = self._lines[number]  # held back from earlier groups
            lines.append(memoryview(before + encoded.data) if before else encoded.data)
            runs.append(self._runs[number] + encoded.runs)
        pieces, ends = merged_lines(lines, runs, floor)
        self._lines = [bytes(data[at:]) for data, (at, _) in zip(lines, ends, strict=True)]
        self._runs = [of[at:] for of, (_, at) in zip(runs, ends, strict=True)]
        waiting = sum(map(rows_of, self._runs))
        emitted = self._rows + rows - waiting
        self._rows, self._bytes = waiting, self._bytes + size if waiting else 0
        self.given += emitted
        return Lines(pieces, [emitted])


def batched(lines: Iterable[bytes]) -> Iterator[Lines]:
    """Yield lines in batches as they are made, for prompt output."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _BATCH_BYTES:
            yield Lines(waiting, [len(waiting)])
            waiting, size = [], 0
    yield Lines(waiting, [len(waiting)])
