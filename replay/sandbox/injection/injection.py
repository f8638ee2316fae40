"""An injection: the fault, its requests, its time window, and its latency, as values.

Latencies: `20ms` constant, `20ms..200ms` uniform, `exp:50ms` exponential with a mean,
`normal:50ms,10ms` mean and deviation, `lognormal:20ms,500ms` median and 99th percentile.
RocketMQ: BrokerFastFailure, DefaultMessageStore (busy, disk full), PermName.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from dissectors.quantities import DURATIONS_SPELLED, duration_ns
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode

from ..errors import SandboxError

_P99: Final = 2.3263478740408408
"""99th percentile of the standard normal distribution."""
_LONGEST_MS: Final = 3_600_000.0
_SHAPES: Final = {"fixed": 1, "uniform": 2, "exp": 1, "normal": 2, "lognormal": 2}
"""shape → how many durations it has"""


def duration_ms(text: str) -> int:
    """Parse `20ms`, `1.5s`, `2m`, or `1h` to milliseconds; SandboxError if invalid."""
    length = duration_ns(text)
    if length is None:
        hint = f"give a number and a unit ({DURATIONS_SPELLED}): 20ms"
        raise SandboxError(f"not a valid duration: {text!r}", hint)
    return round(length / 1_000_000)


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of latencies."""

    shape: str
    """fixed, uniform, exp, normal or lognormal"""
    first_ms: float
    """the latency; the least; the mean; the median"""
    second_ms: float = 0.0
    """the most; the deviation; the 99th percentile"""

    def draw(self, chance: random.Random) -> float:
        """Return a latency in seconds."""
        # a normal distribution gives negative numbers, an exponential one has no end
        return min(max(0.0, self._draw_ms(chance)), _LONGEST_MS) / 1000

    def _draw_ms(self, chance: random.Random) -> float:
        first, second = self.first_ms, self.second_ms
        if self.shape == "uniform":
            return chance.uniform(first, second)
        if self.shape == "exp":
            return chance.expovariate(1 / first) if first > 0 else 0.0
        if self.shape == "normal":
            return chance.gauss(first, second)
        if self.shape == "lognormal" and first > 0:
            return chance.lognormvariate(math.log(first), math.log(second / first) / _P99)
        return first

    def __str__(self) -> str:
        first = f"{self.first_ms:g}ms"
        if self.shape == "fixed":
            return first
        second = f"{self.second_ms:g}ms"
        if self.shape == "uniform":
            return f"{first}..{second}"
        return f"{self.shape}:{first}" + ("" if self.shape == "exp" else f",{second}")


def latency_of(text: str) -> Latency:
    """Parse a latency distribution; SandboxError if invalid."""
    shape, colon, rest = text.strip().partition(":")
    if not colon:
        shape, rest = ("uniform", text) if ".." in text else ("fixed", text)
    separator = ".." if shape == "uniform" else ","
    parts = [part.strip() for part in rest.split(separator)]
    if _SHAPES.get(shape) != len(parts):
        raise SandboxError(
            f"{text!r} is not a valid latency",
            "for example 20ms, 20ms..200ms, exp:50ms, normal:50ms,10ms or lognormal:20ms,500ms",
        )
    try:
        durations = [float(duration_ms(part)) for part in parts]
    except SandboxError as error:
        raise SandboxError(f"{text!r} is not a valid latency", error.hint) from None
    latency = Latency(shape, *durations)
    if shape in ("uniform", "lognormal") and latency.second_ms < latency.first_ms:
        raise SandboxError(f"latency {text!r}: the second duration is below the first")
    return latency


class InjectionKind(StrEnum):
    """Kinds of faults."""

    LATENCY = "latency"
    """responses come later"""
    ERROR = "error"
    """an error code instead of the work, or after it (`stored`)"""
    BUSY = "busy"
    """code 2, as when requests waited too long: [TIMEOUT_CLEAN_QUEUE]broker busy"""
    DISK_FULL = "disk-full"
    """code 14, as by a broker whose disk is full"""
    READ_ONLY = "read-only"
    """code 16, and routes say that nothing may be written"""
    DROP = "drop"
    """the connection ends instead of a response"""
    HALF = "half"
    """half of the response's frame, then the connection ends"""
    SILENT = "silent"
    """no response at all"""
    GARBAGE = "garbage"
    """bytes that are not a frame instead of a response"""
    HUGE = "huge"
    """a frame that announces a gigabyte instead of a response"""
    SLOW_READ = "slow-read"
    """bytes are taken slowly from clients"""
    FREEZE = "freeze"
    """nothing is done until the window ends, then everything that waited"""
    DOWN = "down"
    """connections are reset, as by a process that was killed"""
    LEAVE_ROUTE = "leave-route"
    """routes do not name the broker; it still serves"""


NOT_OF_REQUESTS: Final = frozenset(
    {InjectionKind.SLOW_READ, InjectionKind.DOWN, InjectionKind.LEAVE_ROUTE}
)
"""kinds that concern connections or routes, not single requests"""


def _codes(*codes: RequestCode) -> frozenset[int]:
    return frozenset(map(int, codes))


FAMILIES: Final[Mapping[str, frozenset[int]]] = {
    "send": SENDS | _codes(RequestCode.CONSUMER_SEND_MSG_BACK),
    "pull": FETCHES,
    "heartbeat": _codes(RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT),
    "offset": _codes(
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
    ),
    "route": _codes(RequestCode.GET_ROUTEINFO_BY_TOPIC),
    "all": frozenset(),
}
"""Word for requests → their codes; `all`: every one."""

ANY_BROKER: Final = "*"
NAMESRV: Final = "namesrv"


@dataclass(frozen=True, slots=True)
class Injection:
    """One injected fault."""

    kind: InjectionKind
    """what goes wrong"""
    broker: str = ANY_BROKER
    """pattern of broker names; `namesrv` for the NameServer, which `*` does not mean"""
    topic: str = "*"
    """pattern of topics; `*` also means requests without one"""
    group: str = "*"
    """pattern of producer and consumer groups; `*` also means requests without one"""
    client: str = "*"
    """pattern of clients: their IP address, `ip:port`, or the client ID of their heartbeats"""
    codes: frozenset[int] = FAMILIES["send"]
    """request codes; empty: all"""
    from_ms: int = 0
    """when it begins, ms after the start of the sandbox"""
    until_ms: int | None = None
    """when it is over; None: never"""
    every_ms: int = 0
    """period in ms with which it comes back, for `for_ms`; 0: once, from `from_ms` to `until_ms`"""
    for_ms: int = 0
    """how long it lasts each time"""
    probability: float = 1.0
    """share of the requests that it hits"""
    times: int | None = None
    """how many requests it hits at the most on each broker; None: no limit"""
    latency: Latency | None = None
    """how much later responses come; also of the other kinds"""
    code: int = int(ResponseCode.SYSTEM_ERROR)
    """response code of ERROR"""
    remark: str = ""
    """text of the response"""
    stored: bool = False
    """the work is done anyway; only its response is lost or an error"""
    rate: int = 1024
    """bytes a second of SLOW_READ"""

    def lasts_at(self, elapsed_ms: float) -> bool:
        """Return whether it is active at this time after the start."""
        if elapsed_ms < self.from_ms or (self.until_ms is not None and elapsed_ms >= self.until_ms):
            return False
        return not self.every_ms or (elapsed_ms - self.from_ms) % self.every_ms < self.for_ms

    def is_on(self, server: str) -> bool:
        """Return whether it applies to that broker or the NameServer."""
        if server == NAMESRV:
            return self.broker == NAMESRV
        return fnmatchcase(server, self.broker)

    def hits(self, code: int, topic: str, groups: Iterable[str] = ()) -> bool:
        """Return whether it applies to requests with that code, topic, and one of the groups."""
        if self.codes and code not in self.codes:
            return False
        if self.topic != "*" and not fnmatchcase(topic, self.topic):
            return False
        return self.group == "*" or any(fnmatchcase(name, self.group) for name in groups)

    def is_for(self, clients: Iterable[str]) -> bool:
        """Return whether it applies to a client with one of these names."""
        return self.client == "*" or any(fnmatchcase(name, self.client) for name in clients)

    def next_window(self, from_ms: int) -> tuple[int, int | None] | None:
        """Return begin and end of its first active window that begins at this time or later.

        None: there is none; end None: it never ends.
        """
        if not self.every_ms:
            return (self.from_ms, self.until_ms) if from_ms <= self.from_ms else None
        periods = max(0, -((self.from_ms - from_ms) // self.every_ms))
        begin = self.from_ms + periods * self.every_ms
        end = begin + self.for_ms
        if self.until_ms is None:
            return begin, end
        return (begin, min(end, self.until_ms)) if begin < self.until_ms else None

    def __str__(self) -> str:
        value = {
            InjectionKind.ERROR: str(self.code),
            InjectionKind.LATENCY: str(self.latency),
            InjectionKind.SLOW_READ: f"{self.rate}B/s",
        }.get(self.kind)
        parts = [self.kind.value if value is None else f"{self.kind}={value}"]
        parts += [f"broker={self.broker}"] if self.broker != ANY_BROKER else []
        parts += [f"topic={self.topic}"] if self.topic != "*" else []
        parts += [f"group={self.group}"] if self.group != "*" else []
        parts += [f"client={self.client}"] if self.client != "*" else []
        parts += [f"p={self.probability:g}"] if self.probability < 1 else []
        return " ".join(parts)
