"""A publish table for tests of the fault strategy."""

from __future__ import annotations

from typing import NamedTuple

from replay.fault import QueueIndex


class SomeQueue(NamedTuple):
    """A message queue."""

    topic: str
    broker_name: str
    queue_id: int


class Table:
    """Queues of a topic, an index that goes on where it is told to."""

    def __init__(self, queues: tuple[SomeQueue, ...], index: QueueIndex) -> None:
        self.queues = list(queues)
        self.index = index
        self._counts: dict[str, int] = {}
        for queue in queues:
            self._counts[queue.broker_name] = self._counts.get(queue.broker_name, 0) + 1

    def write_queue_nums(self, broker_name: str) -> int:
        """Return the number of queues of a broker."""
        return self._counts.get(broker_name, -1)


class ToldIndex(QueueIndex):
    """An index of which the next start after a reset is known."""

    def __init__(self, value: int, restart: int = 0) -> None:
        super().__init__(value)
        self.restart = restart

    def reset(self) -> None:
        """Go on where it was told to."""
        self.value = self.restart


def table_of(*brokers: str, queues: int = 2, start: int = 0, restart: int = 0) -> Table:
    """Return a table of so many queues a broker; the next index is `start` + 1."""
    every = tuple(SomeQueue("T", name, number) for name in brokers for number in range(queues))
    return Table(every, ToldIndex(start, restart))
