"""Feed the sources through the planner, loop by loop: yield steps and skipped sends.

Rules: memory does not depend on the sources; skipped sends are counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from dissectors.budget import Budget
from dissectors.rows.relays import Relay
from dissectors.tcp.decompression import MOST_TIMES

from ..captured.captured_send import SkipReason
from ..captured.inputs import Input
from ..captured.source import CapturedSource
from .planner import PlannedSend, Planner, PlanOptions, Skipped
from .rewrite import Rewrite

MAX_TOPICS = 10_000
"""topics that are counted separately"""


PORTION_BYTES: Final = 8 * 1024 * 1024
"""bytes of bodies of the steps that are made at a time: a few bytes may decompress to megabytes"""


class PlannedRun:
    """One run over the sources; iterate `batches` once."""

    def __init__(
        self,
        sources: Sequence[Input],
        options_of: Callable[[int], PlanOptions],
        rewrite: Rewrite | None = None,
        loops: int = 1,
        decode_as: frozenset[int] = frozenset(),
        raw_codes: frozenset[int] | None = None,
        relays: Iterable[Relay] = (),
        budget: Budget | None = None,
        own: Container[object] = (),
        max_ratio: int = MOST_TIMES,
        is_done: Callable[[int], bool] | None = None,
    ) -> None:
        """`options_of` returns the options for the time of the first command, in ns.

        `relays`: those already known. `own`, `max_ratio`: see `CapturedSource`. `is_done`: whether
        an earlier run has done the step of a number, which is counted but not yielded.
        """
        self.budget = Budget() if budget is None else budget
        """limit of decompressed bodies; records where it was reached"""
        self.skipped: Counter[tuple[SkipReason, str]] = Counter()
        """captured commands that are not replayed, by reason and name; of the first loop"""
        self.topics: Counter[str] = Counter()
        """messages to replay, by topic"""
        self.sends = 0
        """steps so far"""
        self.done = 0
        """steps among them that an earlier run has done"""
        self.done_messages = 0
        """messages of these"""
        self.first_due: int | None = None
        """when the first step that is left is due, ns since the run began"""
        self.last_due = 0
        """when the last step so far is due, ns since the run began"""
        self.planner: Planner | None = None
        """the plan; None before the first command"""
        self._open = partial(
            CapturedSource,
            sources,
            decode_as,
            raw_codes,
            budget=self.budget,
            own=own,
            max_ratio=max_ratio,
        )
        self.source = self._open(relays)
        """the source of the current loop"""
        self.loop = 0
        """number of the current loop, 0 first"""
        self._stopped = False
        self._options_of = options_of
        self._rewrite = rewrite
        self._loops = loops
        self._is_done = is_done

    @property
    def messages(self) -> int:
        """Number of messages of all steps so far."""
        return self.planner.messages if self.planner is not None else 0

    @property
    def commands(self) -> int:
        """Number of commands read in the current loop."""
        return self.source.commands

    def stop(self) -> None:
        """Stop reading; may be called from another thread."""
        self._stopped = True
        self.source.stop()

    def batches(self) -> Iterator[list[PlannedSend | Skipped]]:
        """Yield steps in due order, and the skipped sends between them."""
        while True:
            yield from self._loop_once()
            self.loop += 1
            planner = self.planner
            if self.loop >= self._loops or planner is None or planner.ended or not self.sends:
                return
            planner.again()
            self.source = self._open(self.source.relays)
            # `stop` may have reached the source of the last loop only
            if self._stopped:
                return

    def _loop_once(self) -> Iterator[list[PlannedSend | Skipped]]:
        for batch in self.source.batches():
            if self.planner is None:
                if self.source.first_time is None:
                    continue
                # only now: a time of day in the options refers to the day of the first command
                options = self._options_of(self.source.first_time)
                self.planner = Planner(options, self._rewrite, self.budget)
            for planned in portions_of(self.planner.steps(batch)):
                left = self._left_of(planned)
                self._count(left)
                yield left
            if self.planner.ended:
                break
        if self.loop == 0:
            self.skipped.update(self.source.skipped)

    def _left_of(self, planned: list[PlannedSend | Skipped]) -> list[PlannedSend | Skipped]:
        """Count the steps that an earlier run has done; return the others."""
        if self._is_done is None:
            return planned
        left: list[PlannedSend | Skipped] = []
        for item in planned:
            if isinstance(item, PlannedSend) and self._is_done(item.number):
                self.sends += 1
                self.done += 1
                self.done_messages += len(item.messages)
            else:
                left.append(item)
        return left

    def _count(self, planned: list[PlannedSend | Skipped]) -> None:
        for item in planned:
            if isinstance(item, PlannedSend):
                self.sends += 1
                self.last_due = item.due
                self.first_due = item.due if self.first_due is None else self.first_due
                topic = item.messages[0].topic
                if topic in self.topics or len(self.topics) < MAX_TOPICS:
                    self.topics[topic] += len(item.messages)
                continue
            if self.loop == 0:
                self.skipped[item.why, _detail_of(item)] += 1


def portions_of(steps: Iterable[PlannedSend | Skipped]) -> Iterator[list[PlannedSend | Skipped]]:
    """Yield the steps of a batch in portions of `PORTION_BYTES` or one step; at least one
    portion.
    """
    portion: list[PlannedSend | Skipped] = []
    size = 0
    for step in steps:
        portion.append(step)
        size += step.size if isinstance(step, PlannedSend) else 0
        if size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    yield portion


_EACH_ITS_OWN: Final = frozenset(
    (SkipReason.ANOTHER_ATTEMPT, SkipReason.INNER_HOP, SkipReason.CUT, SkipReason.DAMAGED)
)
"""reasons whose detail is another one for each send"""


def _detail_of(skipped: Skipped) -> str:
    """Return the detail by which skipped sends are counted; it must have few values."""
    return "" if skipped.why in _EACH_ITS_OWN else skipped.detail
