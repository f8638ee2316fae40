"""The producer's latency fault strategy, in three generations of the Java client, as pure state.

A broker that failed or answered slowly is avoided for a time. Nothing here has a clock or a socket:
times are arguments, in milliseconds of the client's clock, and what Java draws at random is drawn
from a `Random` that may be given. The producer and the isolation report decide by this same code.

============================  ===================  =================  =========================
generation (client versions)  ``4.7`` (to 4.7.1)   ``4.8`` (to 5.1.3)  ``5.1`` (from 5.1.4)
============================  ===================  =================  =========================
an update of the item         replaces the time:   the same           only moves it later: a fast
                              a fast response ends                    response ends nothing
                              the isolation
first choice                  available, on a      available (1)      available (2) and not the
                              retry only the same                     last broker
                              broker
second choice                 the least bad (3)    the same           reachable and not the last
                                                                      broker
last choice                   the next queue       the same           the next queue
first look at queue           a retry goes on      the same           a retry begins anywhere
============================  ===================  =================  =========================

1. 5.1.1 to 5.1.3: and not the last broker.
2. 5.1.4 itself takes a broker that is not reachable for not available.
3. One of the better half of the items, in turn (``pickOneAtLeast``). All but 4.9.8 write that
   broker's name into the shared queue object, so the topic's queues are another list afterwards.

A broker without an item is available and reachable. Off, all generations take the next queue that
is not on the last broker. Read in the sources of the tags 4.1.0 to 5.3.3 of apache/rocketmq; 4.9.8
and 5.5.0 are compared with recorded runs.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl, TopicPublishInfo, ThreadLocalIndex, and what
DefaultMQProducerImpl and MQClientAPIImpl report to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from dissectors.remoting.versions import ordinal_of

GENERATIONS = ("4.7", "4.8", "5.1")
"""The three generations, by the first (``4.7``: the last) minor version that has them."""

_OLD_LATENCY_MAX = (50, 100, 550, 1000, 2000, 3000, 15000)
_OLD_NOT_AVAILABLE = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
_NEW_LATENCY_MAX = (50, 100, 550, 1800, 3000, 5000, 15000)
_NEW_NOT_AVAILABLE = (0, 0, 2000, 5000, 6000, 10_000, 30_000)


class LastBroker(StrEnum):
    """How the previous attempt's broker affects the choice among available brokers."""

    SAME = "same"
    """a retry takes only that broker: the inverted check of the first generation"""
    IGNORED = "ignored"
    OTHER = "other"
    """a retry takes only other brokers"""


@dataclass(frozen=True, slots=True)
class FaultRules:
    """The strategy rules of one range of client versions."""

    name: str
    """first version of the range"""
    generation: str
    """one of GENERATIONS"""
    last_broker: LastBroker = LastBroker.IGNORED
    """whether a retry stays with or leaves the last broker"""
    renames_shared: bool = False
    """the least bad broker is written into the topic's own list of queues"""
    shuffles: bool = False
    """items that are equally bad are taken in any order"""
    unreachable_unavailable: bool = False
    """a broker that is not reachable is not available either"""
    not_sent_as_ms: int | None = None
    """latency that an asynchronous send which could not begin counts as; None: its real one"""

    @property
    def modern(self) -> bool:
        """Whether it is the generation since 5.1.4."""
        return self.generation == "5.1"


VARIANTS: tuple[FaultRules, ...] = (
    FaultRules("", "4.7", LastBroker.SAME, True, True, not_sent_as_ms=3000),
    FaultRules("V4_8_0", "4.8", renames_shared=True, shuffles=True, not_sent_as_ms=3000),
    FaultRules("V4_9_4", "4.8", renames_shared=True),
    FaultRules("V4_9_8", "4.8"),
    FaultRules("V5_0_0", "4.8", renames_shared=True),
    FaultRules("V5_1_1", "4.8", LastBroker.OTHER, renames_shared=True),
    FaultRules("V5_1_4", "5.1", LastBroker.OTHER, unreachable_unavailable=True),
    FaultRules("V5_2_0", "5.1", LastBroker.OTHER),
)
"""Rules by version, oldest first; `name` is the first constant of MQVersion that has them."""

_OWN = FaultRules("", "")
# -1: older than every version that has a name
_SINCE = tuple((ordinal_of(rules.name) or 0) if rules.name else -1 for rules in VARIANTS)
_TYPICAL = {"4.7": VARIANTS[0], "4.8": VARIANTS[3], "5.1": VARIANTS[-1]}


def rules_of_version(version: int | None) -> FaultRules:
    """Return the rules of a client with this MQVersion ordinal; the newest if it has none."""
    if version is None:
        return VARIANTS[-1]
    return max(zip(_SINCE, VARIANTS, strict=True), key=lambda row: (row[0] <= version, row[0]))[1]


def generation_of_version(version: int | None) -> str:
    """Return the generation, one of GENERATIONS, of a client's MQVersion ordinal."""
    return rules_of_version(version).generation


@dataclass(frozen=True, slots=True)
class FaultSettings:
    """Settings of one producer's strategy; empty tables and 0 mean the generation's defaults.

    Raises ValueError for an unknown generation or inconsistent tables.
    """

    generation: str = "5.1"
    """one of GENERATIONS"""
    enabled: bool = True
    """sendLatencyFaultEnable, sendLatencyEnable; Java's default is off"""
    latency_max: tuple[int, ...] = ()
    """milliseconds from which each step holds, ascending"""
    not_available: tuple[int, ...] = ()
    """milliseconds of avoidance of each step"""
    isolation_ms: int = 0
    """latency that a failure counts as; 0: the generation's own"""
    detector: bool = False
    """startDetectorEnable (5.1.4 and later)"""
    detect_timeout_ms: int = 200
    """timeout of one probe of the detector"""
    detect_interval_ms: int = 2000
    """shortest time between two probes of a broker"""
    rules: FaultRules = _OWN
    """what exactly the client does; by default as the generation's typical version"""

    def __post_init__(self) -> None:
        """Fill in the generation's defaults; see the class for errors."""
        if self.generation not in _TYPICAL:
            raise ValueError(
                f"generation {self.generation!r} must be one of {', '.join(GENERATIONS)}"
            )
        modern = self.generation == "5.1"
        latencies, durations = (
            (_NEW_LATENCY_MAX, _NEW_NOT_AVAILABLE)
            if modern
            else (_OLD_LATENCY_MAX, _OLD_NOT_AVAILABLE)
        )
        filled = {
            "latency_max": self.latency_max or latencies,
            "not_available": self.not_available or durations,
            "isolation_ms": self.isolation_ms or (10_000 if modern else 30_000),
            "rules": _TYPICAL[self.generation] if self.rules == _OWN else self.rules,
        }
        for name, value in filled.items():
            object.__setattr__(self, name, value)
        if self.rules.generation != self.generation:
            raise ValueError(f"rules of {self.rules.generation} in settings of {self.generation}")
        if len(self.latency_max) != len(self.not_available):
            raise ValueError("latency_max and not_available must have as many steps")
        if list(self.latency_max) != sorted(self.latency_max):
            raise ValueError("latency_max must ascend")

    @classmethod
    def of_version(cls, version: int | None, enabled: bool = True) -> FaultSettings:
        """Return the settings of a client with this MQVersion ordinal, sub-versions included."""
        rules = rules_of_version(version)
        return cls(rules.generation, enabled, rules=rules)

    def duration_of(self, latency_ms: int, isolation: bool = False) -> int:
        """Return the isolation time in ms after this latency or failure."""
        counted = self.isolation_ms if isolation else latency_ms
        steps = zip(reversed(self.latency_max), reversed(self.not_available), strict=True)
        return next((duration for least, duration in steps if counted >= least), 0)


class AttemptEvent(StrEnum):
    """An event of an attempt that is reported to the strategy."""

    ANSWERED = "answered"
    """stored, whatever SendStatus says"""
    BROKER_ERROR = "error code"
    """answered with an error code: MQBrokerException"""
    TRANSPORT_ERROR = "no response"
    """no connection, not sent, no response in time: RemotingException"""
    CLIENT_ERROR = "client error"
    """broker without an address, response that does not parse: MQClientException"""
    INTERRUPTED = "interrupted"
    HANDED_OVER = "handed over"
    """asynchronous or oneway: given to the transport, nothing known of it; its latency is that"""
    ASYNC_ERROR = "error code (asynchronous)"
    """asynchronous: answered with an error code, or not parsed"""
    ASYNC_LOST = "no response (asynchronous)"
    """asynchronous: timed out, connection lost"""
    NOT_SENT = "not sent (asynchronous)"
    """asynchronous: could not begin, above all no connection"""


class Effect(NamedTuple):
    """The effect of an event on the strategy."""

    isolation: bool
    """counts as a failure, whatever the latency"""
    reachable: bool
    """the broker counts as reachable (5.1.4 and later)"""


_FINE = Effect(isolation=False, reachable=True)
_ISOLATES = Effect(isolation=True, reachable=True)
_UNREACHABLE = Effect(isolation=True, reachable=False)
_MODERN = {
    AttemptEvent.ANSWERED: _FINE,
    AttemptEvent.BROKER_ERROR: _UNREACHABLE,
    AttemptEvent.TRANSPORT_ERROR: _ISOLATES,
    AttemptEvent.CLIENT_ERROR: _FINE,
    AttemptEvent.INTERRUPTED: _FINE,
    AttemptEvent.HANDED_OVER: _FINE,
    AttemptEvent.ASYNC_ERROR: _ISOLATES,
    AttemptEvent.ASYNC_LOST: _ISOLATES,
    AttemptEvent.NOT_SENT: _UNREACHABLE,
}
_OLD_FINE = (AttemptEvent.ANSWERED, AttemptEvent.INTERRUPTED, AttemptEvent.HANDED_OVER)


def effect_of(event: AttemptEvent, settings: FaultSettings) -> Effect:
    """Return the effect that the client's generation reports for an event of an attempt."""
    if settings.generation != "5.1":
        return _FINE if event in _OLD_FINE else _ISOLATES
    if event is AttemptEvent.TRANSPORT_ERROR and settings.detector:
        return _UNREACHABLE  # only a client with a detector may mark a broker unreachable
    return _MODERN[event]


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
