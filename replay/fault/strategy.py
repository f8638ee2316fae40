"""State and queue selection of the fault strategy: items, index, selection, detector.

Times are milliseconds of the client's clock, given by the caller. The state changes in `report`,
`update`, `select`, `probing`, `probed` and `forget` only. Thread-safety is the caller's, as is the
index of each thread. RocketMQ: MQFaultStrategy.selectOneMessageQueue, LatencyFaultToleranceImpl,
TopicPublishInfo.selectOneMessageQueue, ThreadLocalIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from .rules import AttemptEvent, FaultSettings, LastBroker, effect_of

DETECTOR_PERIOD_MS = 3000
"""Probe interval of the detector, ms; the first probe runs one interval after the start."""
_INT_MASK = 0x7FFFFFFF


class StrategyQueue(Protocol):
    """A named tuple with a broker name and a queue id, as replay.message.MessageQueue."""

    @property
    def broker_name(self) -> str: ...
    @property
    def queue_id(self) -> int: ...
    def _replace(self, *, broker_name: str = ..., queue_id: int = ...) -> Self: ...


Q = TypeVar("Q", bound=StrategyQueue)


class QueueIndex:
    """The round-robin counter of a thread: any start, incremented before each use."""

    __slots__ = ("_random", "value")

    def __init__(self, value: int | None = None, random: Random | None = None) -> None:
        """Start after `value`; None draws a random start as Java does."""
        self._random = random or Random()
        self.value = self._random.getrandbits(32) if value is None else value

    def next(self) -> int:
        """Return the next number, 0 to 2^31 - 1."""
        # Java's int overflows to negative numbers, and the mask cuts off the sign
        self.value = (self.value + 1) & 0xFFFFFFFF
        return self.value & _INT_MASK

    def reset(self) -> None:
        """Draw a new random position, as a retry does since 5.1.4."""
        self.value = self._random.randrange(_INT_MASK)


class StrategyTable(Protocol[Q]):
    """The writable queues of a topic, and the index into them."""

    @property
    def queues(self) -> MutableSequence[Q]:
        """In the order of the route; up to 5.1.3 (but 4.9.8) `select` may rename one of them."""

    @property
    def index(self) -> QueueIndex: ...

    def write_queue_nums(self, broker_name: str) -> int:
        """Return a broker's number of write queues in the route, or -1 if it has none."""


class ChoiceReason(StrEnum):
    """Why a queue was chosen."""

    ROUND_ROBIN = "round robin"
    OTHER_BROKER = "not the last broker"
    AVAILABLE = "available"
    REACHABLE = "reachable, none available"
    LEAST_BAD = "least bad, none available"
    LAST_RESORT = "next queue, none to prefer"


class QueueChoice(NamedTuple, Generic[Q]):
    """A queue and the reason of the choice."""

    queue: Q
    why: ChoiceReason


@dataclass(slots=True)
class FaultItem:
    """The strategy's item of a broker; times are ms of the client's clock."""

    name: str
    """broker name"""
    current_latency: int = 0
    """latency of the last reported attempt"""
    start_timestamp: int = 0
    """the broker is avoided until then"""
    check_stamp: int = 0
    """the detector does not probe before"""
    reachable: bool = True
    """false: the last attempt says that the broker cannot be used (5.1.4 and later)"""

    def _badness(self, now: int) -> tuple[bool, int, int]:
        return now < self.start_timestamp, self.current_latency, self.start_timestamp


class FaultStrategy:
    """The fault strategy of one producer."""

    def __init__(self, settings: FaultSettings, random: Random | None = None) -> None:
        """Start without items; `random` is for generations that shuffle."""
        self.settings = settings
        self._rules = settings.rules
        self._random = random or Random()
        self._worst = QueueIndex(random=self._random)
        self._items: dict[str, FaultItem] = {}

    def items(self) -> tuple[FaultItem, ...]:
        """Return the items by broker name."""
        return tuple(self._items[name] for name in sorted(self._items))

    def isolated_until(self, broker: str) -> int:
        """Return when the isolation of a broker ends; 0 if it never was isolated."""
        item = self._items.get(broker)
        return item.start_timestamp if item else 0

    def is_available(self, broker: str, now: int) -> bool:
        """Return whether a broker is not isolated; one without an item is available."""
        item = self._items.get(broker)
        if item is None:
            return True
        if self._rules.unreachable_unavailable and not item.reachable:
            return False
        return now >= item.start_timestamp

    def is_reachable(self, broker: str) -> bool:
        """Return whether a broker is not marked unreachable."""
        item = self._items.get(broker)
        return item is None or item.reachable

    # reports

    def report(self, broker: str, event: AttemptEvent, latency_ms: int, now: int) -> None:
        """Record how an attempt ended, as the client's generation does."""
        effect = effect_of(event, self.settings)
        if event is AttemptEvent.NOT_SENT and self._rules.not_sent_as_ms is not None:
            latency_ms = self._rules.not_sent_as_ms
        self.update(broker, latency_ms, effect.isolation, effect.reachable, now)

    def update(
        self, broker: str, latency_ms: int, isolation: bool, reachable: bool, now: int
    ) -> None:
        """Update a broker's item; do nothing while the strategy is off."""
        if not self.settings.enabled:
            return
        duration = self.settings.duration_of(latency_ms, isolation)
        item = self._items.setdefault(broker, FaultItem(broker))
        item.current_latency = latency_ms
        if self._rules.modern:
            item.reachable = reachable
            # since 5.1.4 a fast response does not end an isolation; before, it does
            if duration > 0:
                item.start_timestamp = max(item.start_timestamp, now + duration)
        else:
            item.start_timestamp = now + duration

    # selection

    def allowed(
        self, brokers: Iterable[str], last_broker: str | None, now: int
    ) -> tuple[frozenset[str], ChoiceReason]:
        """Return the brokers that `select` may choose, and the rule; change nothing.

        `brokers` have queues of the topic. Equally bad items have no fixed order: if one may be
        chosen, all may.
        """
        every = frozenset(brokers)
        for why, fits in self._steps(last_broker, now):
            chosen = frozenset(filter(fits, every))
            if chosen:
                return chosen, why
        if self.settings.enabled and not self._rules.modern:
            better = every & self._perhaps_better(now)
            if better:
                return better, ChoiceReason.LEAST_BAD
        return every, self._last_resort(last_broker)

    def select(
        self,
        publish: StrategyTable[Q],
        last_broker: str | None = None,
        reset_index: bool = False,
        now: int = 0,
    ) -> QueueChoice[Q]:
        """Return the queue for an attempt; `publish` must have one.

        `last_broker` is the broker of the previous attempt, None on a first attempt; `reset_index`
        is true from the second attempt on. The index advances as in Java.
        """
        if self.settings.enabled and reset_index and self._rules.modern:
            publish.index.reset()
        for why, fits in self._steps(last_broker, now):
            queue = self._first(publish, fits)
            if queue is not None:
                return QueueChoice(queue, why)
        if self.settings.enabled and not self._rules.modern:
            queue = self._least_bad(publish, now)
            if queue is not None:
                return QueueChoice(queue, ChoiceReason.LEAST_BAD)
        return QueueChoice(self._next(publish), self._last_resort(last_broker))

    def _steps(
        self, last_broker: str | None, now: int
    ) -> tuple[tuple[ChoiceReason, Callable[[str], bool]], ...]:
        """Return the criteria of each pass, in order."""
        if not self.settings.enabled:
            off = (ChoiceReason.OTHER_BROKER, lambda name: name != last_broker)
            return (off,) if last_broker is not None else ()

        def available(name: str) -> bool:
            return self._fits(name, last_broker) and self.is_available(name, now)

        def reachable(name: str) -> bool:
            return self._fits(name, last_broker) and self.is_reachable(name)

        first = (ChoiceReason.AVAILABLE, available)
        return (first, (ChoiceReason.REACHABLE, reachable)) if self._rules.modern else (first,)

    def _fits(self, name: str, last_broker: str | None) -> bool:
        """Return whether a broker may follow the last one, regardless of its item."""
        rule = self._rules.last_broker
        if last_broker is None or rule is LastBroker.IGNORED:
            return True
        return (name == last_broker) == (rule is LastBroker.SAME)

    def _last_resort(self, last_broker: str | None) -> ChoiceReason:
        if self.settings.enabled or last_broker is not None:
            return ChoiceReason.LAST_RESORT
        return ChoiceReason.ROUND_ROBIN

    def _first(self, publish: StrategyTable[Q], fits: Callable[[str], bool]) -> Q | None:
        """Try each queue once. Either each try advances the index, or the pass does by one."""
        queues, index = publish.queues, publish.index
        each = self._rules.modern or not (self.settings.enabled or self._rules.generation == "4.7")
        start = 0 if each else index.next()
        for step in range(len(queues)):
            queue = queues[(index.next() if each else start + step) % len(queues)]
            if fits(queue.broker_name):
                return queue
        return None

    def _next(self, publish: StrategyTable[Q]) -> Q:
        return publish.queues[publish.index.next() % len(publish.queues)]

    def _better_half(self, now: int) -> list[FaultItem]:
        items = list(self._items.values())
        if self._rules.shuffles:
            self._random.shuffle(items)
        items.sort(key=lambda item: item._badness(now))
        # as Java: half of them, rounded down, but a single item is chosen
        return items[: max(len(items) // 2, 1)]

    def _perhaps_better(self, now: int) -> frozenset[str]:
        """Return the brokers that may be in the better half, as equally bad items have no order."""
        items = sorted(self._items.values(), key=lambda item: item._badness(now))
        if not items:
            return frozenset()
        limit = items[max(len(items) // 2, 1) - 1]._badness(now)
        return frozenset(item.name for item in items if item._badness(now) <= limit)

    def _least_bad(self, publish: StrategyTable[Q], now: int) -> Q | None:
        """Return a queue of a broker in the better half, unless the route no longer has it."""
        better = self._better_half(now)
        if not better:
            return None  # Java fails on the missing name here, and continues with the next queue
        # as Java: with a single item the index stays
        turn = self._worst.next() if len(self._items) > 1 else 0
        name = better[turn % len(better)].name
        count = publish.write_queue_nums(name)
        if count <= 0:
            self.forget(name)
            return None
        place = publish.index.next() % len(publish.queues)
        queue = publish.queues[place]._replace(
            broker_name=name, queue_id=publish.index.next() % count
        )
        if self._rules.renames_shared:
            publish.queues[place] = queue
        return queue

    # the detector of 5.1.4

    def due(self, now: int) -> tuple[str, ...]:
        """Return the brokers to probe now; called every DETECTOR_PERIOD_MS.

        A probe is GET_MAX_OFFSET of queue 0 of any known topic, with `detect_timeout_ms`. Call
        `probing` before each probe, `probed` after it, or `forget` if a broker no longer has an
        address.
        """
        if not (self.settings.detector and self._rules.modern):
            return ()
        return tuple(item.name for item in self._items.values() if now >= item.check_stamp)

    def probing(self, broker: str, now: int) -> None:
        """Record the start of a probe: the next one follows after the interval."""
        item = self._items.get(broker)
        if item is not None:
            item.check_stamp = now + self.settings.detect_interval_ms

    def probed(self, broker: str, answered: bool) -> None:
        """Record a probe: a response makes the broker reachable, a timeout changes nothing."""
        item = self._items.get(broker)
        if item is not None and answered:
            item.reachable = True

    def forget(self, broker: str) -> None:
        """Drop a broker's item."""
        self._items.pop(broker, None)
