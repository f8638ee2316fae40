"""Which of several processes sends a step: all steps that wait for each other go to one.

Rules: lanes that one step is in belong together, and so on through all steps, whatever connections
they are of. Lanes are kept as buckets of a table of fixed size: two lanes of one bucket only belong
together without need. Steps without lanes are dealt out in turn. Processes that are forked share
the hashes that this depends on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from ..plan.planner import PlannedSend

BUCKETS: Final = 1 << 20


class LaneShares:
    """Steps are added first, then shared out."""

    def __init__(self, jobs: int) -> None:
        self.sends = [0] * jobs
        """steps of each process that have lanes"""
        self.free = 0
        """steps without lanes"""
        self._jobs = jobs
        self._parents = array("i", range(BUCKETS))
        self._steps = array("i", bytes(4 * BUCKETS))
        self._job_of = array("i")

    def add(self, step: PlannedSend) -> None:
        """Let the lanes of a step belong together."""
        if not step.lanes:
            self.free += 1
            return
        first, *others = (hash(lane) % BUCKETS for lane in step.lanes)
        self._steps[first] += 1
        for other in others:
            self._parents[self._root(other)] = self._root(first)

    def deal(self) -> None:
        """Share out what was added: the largest part first, to the process that has least."""
        counts = array("i", bytes(4 * BUCKETS))
        for bucket, steps in enumerate(self._steps):
            if steps:
                counts[self._root(bucket)] += steps
        job_of = array("i", bytes(4 * BUCKETS))
        for root in sorted(self._used(counts), key=counts.__getitem__, reverse=True):
            job = min(range(self._jobs), key=self.sends.__getitem__)
            self.sends[job] += counts[root]
            job_of[root] = job
        self._job_of = job_of

    def job_of(self, step: PlannedSend) -> int:
        """Return the number of the process that sends a step, 0 first."""
        if not step.lanes:
            return step.number % self._jobs
        return self._job_of[self._root(hash(step.lanes[0]) % BUCKETS)]

    @property
    def largest(self) -> float:
        """Share of the steps that the busiest process sends, 0 to 1."""
        steps = sum(self.sends) + self.free
        return (max(self.sends) + self.free / self._jobs) / steps if steps else 0.0

    @staticmethod
    def _used(counts: array[int]) -> Iterable[int]:
        return (bucket for bucket, count in enumerate(counts) if count)

    def _root(self, bucket: int) -> int:
        parents = self._parents
        root = bucket
        while parents[root] != root:
            root = parents[root]
        while parents[bucket] != root:
            parents[bucket], bucket = root, parents[bucket]
        return root
