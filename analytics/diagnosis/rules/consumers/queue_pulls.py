"""Periods in which two clients of a group pulled one queue in turn, or none pulled it.

Rules and the report of consumer groups share this state. A client owns a queue from its first pull
to its last one before it claims the queue again (an offset query, 14) or pauses. A long poll that
is still open when another client starts is no second owner: two clients share a queue only if both
keep sending requests.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode
from dissectors.times import SECOND

from ...answered_routes import READ
from ...context import Context
from ...problem import Evidence

MAX_PULLED: Final = 4_000
"""maximum queues of one group, counted per connection"""
MAX_SPANS: Final = 512
"""maximum spans: two hours of long polls; the earlier half is dropped"""
MAX_ROUTED: Final = 4_096
"""maximum queues of a topic at one broker"""
MAX_CLIENTS: Final = 8
"""maximum clients of one queue that are compared"""
PAUSE_NS: Final = 60_000_000_000
"""idle time after which a client no longer owns a queue: long polls end after 30 s"""
TURNS: Final = 2
"""times that a client pulls again after the other: a handover is one turn at most"""
TOGETHER: Final = 0.2
"""share of the period of a queue from which two clients share it, rather than hand it over"""
CLAIM: Final = int(RequestCode.QUERY_CONSUMER_OFFSET)
"""request of a client that takes a queue over"""
_Span = tuple[int, int]
_Tenure = list[_Span]
"""spans in which a client pulled a queue without a claim or pause in between"""


class Spans:
    """Spans of time, ns; those less than a second apart are one, and exact only at their ends."""

    __slots__ = ("firsts", "lasts")

    def __init__(self) -> None:
        self.firsts, self.lasts = array("q"), array("q")

    def add(self, first: int, last: int) -> None:
        """Add a span."""
        firsts, lasts = self.firsts, self.lasts
        # Almost all pulls come in order of time.
        if not firsts or first - lasts[-1] >= SECOND:
            firsts.append(first)
            lasts.append(last)
            if len(firsts) > MAX_SPANS:
                del firsts[: MAX_SPANS // 2], lasts[: MAX_SPANS // 2]
        elif first >= firsts[-1]:
            if last > lasts[-1]:
                lasts[-1] = last
        else:
            self._insert(first, last)

    def _insert(self, first: int, last: int) -> None:
        """Add a span that begins before the last one."""
        low = bisect_right(self.lasts, first - SECOND)
        high = bisect_left(self.firsts, last + SECOND)
        if low < high:
            first, last = min(first, self.firsts[low]), max(last, self.lasts[high - 1])
        elif len(self.firsts) >= MAX_SPANS:
            return
        self.firsts[low:high] = array("q", (first,))
        self.lasts[low:high] = array("q", (last,))

    def __iter__(self) -> Iterator[_Span]:
        """Yield first and last time of each span, sorted."""
        return zip(self.firsts, self.lasts, strict=True)

    def after(self, time: int) -> int | None:
        """Return the start of the first span after a time, or None."""
        at = bisect_right(self.firsts, time)
        return self.firsts[at] if at < len(self.firsts) else None

    def until(self, time: int) -> int:
        """Return the last time in a span until this time, or -1."""
        at = bisect_right(self.firsts, time)
        return min(self.lasts[at - 1], time) if at else -1


class ConnectionPulls:
    """The pulls of one queue over one connection."""

    __slots__ = ("claims", "evidence", "held", "requests", "unanswered")

    def __init__(self) -> None:
        self.requests, self.claims = Spans(), Spans()
        self.held = Spans()
        """from a request to its response"""
        self.unanswered = Spans()
        self.evidence: Evidence | None = None
        """the earliest pull, if the user of this state keeps it"""

    def add(self, time: int, answered: int | None) -> None:
        """Add a pull and the time of its response."""
        self.requests.add(time, time)
        if answered is None:
            self.unanswered.add(time, time)
        else:
            self.held.add(time, max(time, answered))


class QueuePlace(NamedTuple):
    """A queue of a topic at a broker."""

    topic: str
    broker: str
    number: int


class SharedPeriod(NamedTuple):
    """A period in which two clients pulled a queue in turn, from the second one's first pull."""

    place: QueuePlace
    clients: tuple[str, str]
    """client ids; if both are the same, with `address:port`"""
    one_id: bool
    first: int
    last: int
    """the last pull of the one that pulled less long"""
    turns: int
    """times that one pulled again after the other, without claiming the queue again"""
    evidence: list[Evidence]
    """the earliest pull of each"""

    @property
    def length(self) -> int:
        """Duration in ns."""
        return self.last - self.first


class UnpulledPeriod(NamedTuple):
    """A period in which no client pulled a queue, nor waited for a response."""

    place: QueuePlace
    before: str
    """client that sent the last request before"""
    after: str | None
    """client that pulled it next; None: none until the end of the capture"""
    first: int
    last: int

    @property
    def length(self) -> int:
        """Duration in ns."""
        return self.last - self.first


_Clients = dict[str, dict[tuple[str, str], ConnectionPulls]]
"""client id -> (server, client `address:port`) -> pulls"""


class QueuePulls:
    """The pulls of all queues of one group."""

    def __init__(self) -> None:
        self._pulls: dict[tuple[str, str, int, str], ConnectionPulls] = {}
        self.left_out = 0

    def of(self, topic: str, server: str, number: int, endpoint: str) -> ConnectionPulls | None:
        """Return the pulls of a queue over one connection; None: there are too many.

        `server` and `endpoint` are the `address:port` of broker and client.
        """
        key = topic, server, number, endpoint
        pulls = self._pulls.get(key)
        if pulls is None:
            if len(self._pulls) >= MAX_PULLED:
                self.left_out += 1
                return None
            pulls = self._pulls[key] = ConnectionPulls()
        return pulls

    def seen(self, context: Context) -> PulledQueues:
        """Return the queues with the names of their brokers and clients."""
        queues: dict[QueuePlace, _Clients] = {}
        for (topic, server, number, endpoint), pulls in self._pulls.items():
            # A claim without a pull makes no owner.
            if pulls.requests.firsts:
                place = QueuePlace(topic, context.broker(server), number)
                ends = queues.setdefault(place, {}).setdefault(context.client(endpoint), {})
                ends[server, endpoint] = pulls
        return PulledQueues(dict(sorted(queues.items())), context, not self.left_out)


class PulledQueues:
    """The queues that the clients of one group pulled."""

    def __init__(
        self, queues: dict[QueuePlace, _Clients], context: Context, complete: bool
    ) -> None:
        self._queues = queues
        self._context = context
        self._complete = complete
        self._end = context.last_time or 0

    @property
    def topics(self) -> set[str]:
        """Topics of these queues."""
        return {place.topic for place in self._queues}

    def shared(self) -> Iterator[SharedPeriod]:
        """Yield the periods in which two clients pulled a queue in turn."""
        for place, clients in self._queues.items():
            for one, other in combinations(sorted(clients)[:MAX_CLIENTS], 2):
                if self._are_apart(clients[one], clients[other]):
                    continue
                pulls = list(clients[one].values()), list(clients[other].values())
                yield from _shared(place, (one, other), False, *pulls)
            # Two processes with one client id.
            for client, ends in sorted(clients.items()):
                for first, second in combinations(sorted(ends)[:MAX_CLIENTS], 2):
                    # One client has a connection to each server, as to a master and its slave.
                    if first[0] == second[0]:
                        named = f"{client} from {first[1]}", f"{client} from {second[1]}"
                        yield from _shared(place, named, True, [ends[first]], [ends[second]])

    def _are_apart(self, *ends: Iterable[tuple[str, str]]) -> bool:
        """Return whether two clients pull a queue of the same name from brokers of two clusters."""
        one, other = ({server for server, _ in each} for each in ends)
        # A master and its slaves have the same queues, and brokers of one cluster other names.
        return one.isdisjoint(other) and all(map(self._context.is_master, one | other))

    def mostly_shared(self) -> set[QueuePlace]:
        """Return the queues that two clients pulled in turn for long, as in broadcasting."""
        longest: dict[QueuePlace, int] = {}
        for period in self.shared():
            longest[period.place] = max(longest.get(period.place, 0), period.length)
        return {place for place in longest if longest[place] > self._length(place) * TOGETHER}

    def _length(self, place: QueuePlace) -> int:
        """Return the time from the first to the last pull of a queue, in ns."""
        requests = [pulls.requests for pulls in self.pulls(place)]
        first = min(spans.firsts[0] for spans in requests)
        return max(spans.lasts[-1] for spans in requests) - first

    def unpulled(
        self, ended: Mapping[str, Sequence[int]] = MappingProxyType({})
    ) -> Iterator[UnpulledPeriod]:
        """Yield the periods of a second or more in which no client pulled a queue.

        `ended` has the times at which clients left: after that they wait for no response.
        """
        for place, clients in self._queues.items():
            held = sorted(
                (*span, client)
                for client, ends in clients.items()
                for span in self._held(list(ends.values()), ended.get(client, ()))
            )
            # From the first pull on: before that, nobody may have subscribed.
            until = held[0][0]
            for first, last, client in [*held, (self._end, self._end, None)]:
                if first - until >= SECOND:
                    yield UnpulledPeriod(place, _owner(clients, until), client, until, first)
                until = max(until, last)

    def _held(self, several: Sequence[ConnectionPulls], ended: Iterable[int]) -> Iterator[_Span]:
        """Yield when a client pulled a queue or waited for a response."""
        for pulls in several:
            yield from pulls.held
            for first, last in pulls.unanswered:
                following = min(
                    (next_ for other in several if (next_ := other.requests.after(last))),
                    default=self._end,
                )
                yield first, waits_until(last, min(following, self._end), ended)

    def of_route(self, topic: str, since: int = 0) -> tuple[list[QueuePlace], list[QueuePlace]]:
        """Return the readable queues of a topic pulled since a time, and those nobody pulled."""
        places = [
            QueuePlace(topic, broker.name, number)
            for broker in self._context.brokers_of(topic)
            if broker.perm is not None and broker.perm & READ
            for number in range(min(broker.read_queues, MAX_ROUTED))
        ]
        pulled = {
            place
            for place in places
            if any(pulls.requests.lasts[-1] >= since for pulls in self.pulls(place))
        }
        # If a limit was reached, a queue without pulls may have some.
        return sorted(pulled), sorted({*places} - pulled) if self._complete else []

    def pulls(self, place: QueuePlace) -> Iterator[ConnectionPulls]:
        """Yield the pulls of a queue over each connection."""
        for ends in self._queues.get(place, {}).values():
            yield from ends.values()


def _owner(clients: _Clients, time: int) -> str:
    """Return the client that sent the last request until a time."""
    return max(
        (pulls.requests.until(time), client)
        for client, ends in clients.items()
        for pulls in ends.values()
    )[1]


def waits_until(time: int, end: int, ended: Iterable[int]) -> int:
    """Return until when a client waits for the response to an unanswered pull.

    `end` is the end of the capture; `ended` has the times at which the client left.
    """
    return min(until for until in (time + PAUSE_NS, max(time, end), *ended) if until >= time)


def _shared(
    place: QueuePlace,
    clients: tuple[str, str],
    one_id: bool,
    one: Sequence[ConnectionPulls],
    other: Sequence[ConnectionPulls],
) -> Iterator[SharedPeriod]:
    """Yield the periods in which two clients pulled a queue in turn."""
    requests = [_joined([pulls.requests for pulls in each]) for each in (one, other)]
    # One after the other: a handover, which most pairs are.
    if max(spans.firsts[0] for spans in requests) >= min(spans.lasts[-1] for spans in requests):
        return
    tenures = [
        _tenures(spans, _joined([pulls.claims for pulls in each]))
        for spans, each in zip(requests, (one, other), strict=True)
    ]
    proofs = [
        min(evidence, key=lambda item: item.time)
        for each in (one, other)
        if (evidence := [pulls.evidence for pulls in each if pulls.evidence is not None])
    ]
    for tenure, other_tenure in _overlapping(*tenures):
        turns = _turns(tenure, other_tenure)
        if turns >= TURNS:
            first = max(tenure[0][0], other_tenure[0][0])
            last = min(tenure[-1][1], other_tenure[-1][1])
            yield SharedPeriod(place, clients, one_id, first, last, turns, proofs)


def _joined(several: Sequence[Spans]) -> Spans:
    if len(several) == 1:
        return several[0]
    joined = Spans()
    for first, last in sorted(span for spans in several for span in spans):
        joined.add(first, last)
    return joined


def _tenures(requests: Spans, claims: Spans) -> list[_Tenure]:
    """Divide the pulls of a client at its claims and pauses."""
    tenures: list[_Tenure] = []
    starts, ends, at, claimed = claims.firsts, claims.lasts, 0, True
    for begin, last in requests:
        # A claim within a span of pulls ends one tenure and begins the next.
        first, parts = begin, []
        while at < len(starts) and starts[at] <= last:
            if first < starts[at]:
                # Up to the claim, which begins the next tenure: a client that takes a queue back
                # asks for its offset again.
                parts.append((first, starts[at], claimed))
            first, claimed = max(first, ends[at]), True
            if ends[at] > last:
                break
            at += 1
        if first <= last:
            parts.append((first, last, claimed))
            claimed = False
        for start, end, is_claimed in parts:
            if is_claimed or start - tenures[-1][-1][1] > PAUSE_NS:
                tenures.append([])
            tenures[-1].append((start, end))
    return tenures


def _overlapping(one: list[_Tenure], other: list[_Tenure]) -> Iterator[tuple[_Tenure, _Tenure]]:
    """Yield the tenures of two clients that overlap; those of each client are sorted."""
    at, at_other = 0, 0
    while at < len(one) and at_other < len(other):
        tenure, tenure_of_other = one[at], other[at_other]
        if max(tenure[0][0], tenure_of_other[0][0]) < min(tenure[-1][1], tenure_of_other[-1][1]):
            yield tenure, tenure_of_other
        if tenure[-1][1] <= tenure_of_other[-1][1]:
            at += 1
        else:
            at_other += 1


def _turns(one: _Tenure, other: _Tenure) -> int:
    """Return how often a client pulled again after the other one."""
    begin = max(one[0][0], other[0][0])
    end = min(one[-1][1], other[-1][1]) + PAUSE_NS
    pulls = [(begin, begin == other[0][0])]
    for is_other, tenure in ((False, one), (True, other)):
        for first, last in tenure:
            stop = min(last, end)
            if begin < first <= stop:
                pulls.append((first, is_other))
            if max(begin, first) < stop:
                # The pulls inside a span are less than a second apart.
                step = max(SECOND, (stop - first) // MAX_SPANS)
                inner = range(max(begin, first) + SECOND, stop, step)
                pulls += ((time, is_other) for time in (*inner, stop))
    return sum(before[1] != after[1] for before, after in pairwise(sorted(pulls)))
