"""The differences between generations of the fault strategy, as tables.

A row of `VARIANTS` has the rules of one range of client versions; `FaultSettings` are those of one
producer: the rules of a variant, with the tables that the user may set.
RocketMQ: MQFaultStrategy, DefaultMQProducerImpl.sendDefaultImpl, MQClientAPIImpl.sendMessageAsync.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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
