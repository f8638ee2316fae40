"""The fold that most rules about refused requests share: who and what was refused, by whom.

A rule takes it as it is, or overrides `title`, `subject`, `details`, `judge` and `take`. Rules:
there is a case for each spell, with `per_broker` for each of each broker, by its name, because a
broker may be asked at several addresses; what `take` keeps therefore goes through `note_figure` and
`note_name`, which can be joined. Where a relay was captured on both sides, a refusal counts once:
that of its client; of one between gRPC and remoting that of the broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import ClassVar, Final, NamedTuple, Self

from dissectors.endpoint import host_of
from dissectors.remoting.code_names import request_name
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.outcome import SEND_CALLS, is_call
from dissectors.rows.record import ExchangeRecord, MessageIdentity, identity_of

from .context import Context
from .keys import WHOLE, whole, with_remark
from .problem import Case, Subject, Tally, end_of, shown, time_of
from .rule import Exchanges, Fold
from .spells import Parts, span_of, spells

MAX_NAMED: Final = 256
"""topics, groups and clients that a fold tells apart"""
MAX_PARTS: Final = 1000
"""addresses, and intervals of time of each, that a fold tells apart"""
MAX_MESSAGES: Final = 5000
"""messages of which a fold keeps who refused them"""
MAX_ATTEMPTS: Final = 16
"""refusals of one message that are kept"""
MOST_SAID: Final = 3
"""names in one sentence"""
CALL_REFUSALS: Final = frozenset(range(40_000, 60_001)) - {40_401, 40_404}
"""codes of RocketMQ in gRPC, but MESSAGE_NOT_FOUND and OFFSET_NOT_FOUND, which refuse nothing"""


def refused_with(
    *remarks: str, codes: Iterable[ResponseCode], requests: frozenset[int] | None = None
) -> tuple[Exchanges, ...]:
    """Return which exchanges a rule takes: the response has a code, its remark one of the texts.

    A proxy passes the remark on in its response to a send by gRPC, with a code of its own.
    """
    responses = frozenset(map(int, codes))
    taken = Exchanges(with_remark(*remarks, key=whole), requests, responses)
    if requests is not None and not requests & SENDS:
        return (taken,)
    return taken, Exchanges(with_remark(*remarks, key=whole_of_sends), responses=CALL_REFUSALS)


def whole_of_sends(row: ExchangeRecord) -> str | None:
    """Return the one key for sends by gRPC whose message is known: a hop behind it is found so."""
    return WHOLE if row.request_name in SEND_CALLS and row.unique_key else None


class RefusedAttempt(NamedTuple):
    """One refusal of a message that is told by its UNIQ_KEY."""

    begin: int
    end: int
    requester: str
    responder: str
    opaque: int
    topic: str | None
    group: str | None
    request: str | None


class Refusals(Fold):
    """Refused requests of one key."""

    per_broker: ClassVar[bool] = False
    """one case for each broker"""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.topics: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        """requests by address of the client"""
        self.brokers: Counter[str] = Counter()
        """by `address:port`"""
        self.requests: Counter[str] = Counter()
        self.clients: Counter[str] = Counter()
        """by `address:port` of the client"""
        self.figures: dict[str, tuple[int, int]] = {}
        """least and most of each figure"""
        self.names: dict[str, Counter[str]] = {}
        self.tried: dict[MessageIdentity, list[RefusedAttempt]] = {}
        """message -> its refusals"""
        self._parts: Parts[Self] | None = None

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Count a refusal."""
        self._note_attempt(row)
        part = self.part(row)
        if part is not None:
            part._count(row)

    def part(self, row: ExchangeRecord) -> Self | None:
        """Return what is kept of a broker at the time of an answer; None where that is too much."""
        if self._parts is None:
            self._parts = Parts(MAX_PARTS, type(self), type(self)._join)
        name = row.responder if self.per_broker else self.key
        return self._parts.part(name, end_of(row), self.lasts)

    def take(self, row: ExchangeRecord) -> None:
        """Take what the rule needs besides, such as numbers in the remark."""

    def note_figure(self, name: str, value: int | None) -> None:
        """Keep the least and the most of a figure; None is none."""
        if value is None:
            return
        least, most = self.figures.get(name, (value, value))
        self.figures[name] = (min(least, value), max(most, value))

    def note_name(self, name: str, value: str | None, count: int = 1) -> None:
        """Count a value of something that has names."""
        if value:
            names = self.names.get(name)
            if names is None:
                names = self.names[name] = Counter()
            _add(names, value, count)

    def named(self, name: str) -> Counter[str]:
        """Return what was counted by `note_name`."""
        return self.names.get(name, Counter())

    def subject(self, context: Context) -> Subject:
        """Return what the case is about: what all refusals have in common."""
        proxies = {one for one in self.brokers if context.is_proxy(one)}
        brokers = self.brokers.keys() - proxies
        return Subject(
            broker=only(context.broker(one) for one in brokers),
            topic=only(self.topics),
            group=only(self.groups),
            server=None if brokers else only(proxies),
        )

    def title(self, context: Context) -> str:
        """Return the sentence that says what is wrong, with names."""
        raise NotImplementedError

    def details(self, context: Context) -> list[str]:
        """Return further sentences: by default whose requests were refused."""
        said = []
        if self.topics:
            said.append(f"topics: {counted_names(self.topics)}")
        if self.groups:
            said.append(f"groups: {counted_names(self.groups)}")
        if clients := self._clients(context):
            said.append(f"clients: {counted_names(clients)}")
        return said

    def _clients(self, context: Context) -> Counter[str]:
        """Return refusals by client id, by address where ids are not known or are too many."""
        if self.clients.total() < self.hosts.total():
            return self.hosts
        return by_client(self.clients, context)

    def judge(self, case: Case, context: Context) -> None:
        """Change what the rule says in general: confidence, severity, advice."""

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case, or one for each broker, if anything was refused."""
        for view in self._views(context):
            if view.tally.count:
                case = view.tally.case(view.title(context), view.subject(context))
                case.details = view.details(context)
                view.judge(case, context)
                yield case

    @property
    def what(self) -> str:
        """The refused requests with their number: ``12 sends``."""
        kinds = set(self.requests)
        if kinds <= _SEND_NAMES:
            noun = "send"
        elif kinds <= _FETCH_NAMES:
            noun = "pull"
        else:
            noun = "request"
        return counted(self.tally.count, noun)

    def sent_again(self) -> tuple[int, int]:
        """Return how many messages were refused more than once, and how often the most."""
        often = [len(one) for one in map(own_attempts, self.tried.values()) if len(one) > 1]
        return len(often), max(often, default=0)

    def _count(self, row: ExchangeRecord) -> None:
        self.tally.add(shown(row))
        for counter, name in (
            (self.topics, row.topic),
            (self.groups, row.group),
            (self.hosts, host_of(row.requester)),
            (self.brokers, row.responder),
            (self.requests, row.request_name),
            (self.clients, row.requester),
        ):
            if name:
                _add(counter, name)
        self.take(row)

    def _note_attempt(self, row: ExchangeRecord) -> None:
        key = identity_of(row)
        if key is None:
            return
        attempts = self.tried.get(key)
        if attempts is None:
            if len(self.tried) >= MAX_MESSAGES:
                return
            attempts = self.tried[key] = []
        if len(attempts) < MAX_ATTEMPTS:
            attempts.append(
                RefusedAttempt(
                    time_of(row),
                    end_of(row),
                    row.requester,
                    row.responder,
                    row.opaque,
                    row.topic,
                    row.group,
                    row.request_name,
                )
            )

    def _views(self, context: Context) -> Iterator[Refusals]:
        """Return a copy for each spell, that refusals at inner hops are taken out of.

        With `per_broker` for each of each broker.
        """
        again = [one for attempts in self.tried.values() for one in repeated_views(attempts)]
        by_name: dict[str, list[_Part]] = {}
        for part in map(_Part._make, self._parts.items() if self._parts is not None else ()):
            name = context.broker(part.name) if self.per_broker else self.key
            by_name.setdefault(name, []).append(part)
        for parts in by_name.values():
            signs = [part for part in parts if part.kept.tally.count]
            for spell in spells(signs, _Part.span, self.lasts):
                first = min(part.kept.tally.first for part in spell)
                last = max(part.kept.tally.last for part in spell)
                near = [one for one in parts if one.begin <= last and one.end > first]
                view = near[0].kept._copied()
                for part in near[1:]:
                    view._join(part.kept)
                names = {part.name for part in near} if self.per_broker else None

                own = partial(_is_of, first, last, names)
                view._take_out(filter(own, again))
                view.tried = {
                    key: attempts for key, attempts in self.tried.items() if any(map(own, attempts))
                }
                yield view

    def _copied(self) -> Refusals:
        view = copy(self)
        view.tally = Tally()
        view.tally.merge(self.tally)
        for name in _COUNTERS:
            setattr(view, name, Counter(getattr(self, name)))
        view.figures = dict(self.figures)
        view.names = {name: Counter(counter) for name, counter in self.names.items()}
        return view

    def _join(self, other: Refusals) -> None:
        self.tally.merge(other.tally)
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name, (least, most) in other.figures.items():
            self.note_figure(name, least)
            self.note_figure(name, most)
        for name, counter in other.names.items():
            self.names.setdefault(name, Counter()).update(counter)

    def _take_out(self, again: Iterable[RefusedAttempt]) -> None:
        for one in again:
            self.tally.count -= 1
            for counter, name in (
                (self.topics, one.topic),
                (self.groups, one.group),
                (self.hosts, host_of(one.requester)),
                (self.requests, one.request),
                (self.clients, one.requester),
            ):
                if name is not None and name in counter:
                    counter[name] -= 1
                    if counter[name] <= 0:
                        del counter[name]
            if is_call(one.request):
                self.brokers.pop(one.responder, None)


class _Part(NamedTuple):
    """What is kept of one broker in an interval of time."""

    name: str
    begin: int
    end: int
    kept: Refusals

    def span(self) -> tuple[int, int]:
        return span_of(self.kept.tally)


def _is_of(first: int, last: int, names: set[str] | None, one: RefusedAttempt) -> bool:
    return first <= one.end <= last and (names is None or one.responder in names)


_COUNTERS: Final = ("topics", "groups", "hosts", "brokers", "requests", "clients")


def _names_of(codes: Iterable[int]) -> frozenset[str]:
    return frozenset(request_name(code) for code in codes)


def _add(counter: Counter[str], name: str, count: int = 1) -> None:
    if name in counter or len(counter) < MAX_NAMED:
        counter[name] += count


def by_client(endpoints: Counter[str], context: Context) -> Counter[str]:
    """Return numbers by client id, by address where that is not known, from those by address."""
    named: Counter[str] = Counter()
    for endpoint, number in endpoints.items():
        named[context.client(endpoint)] += number
    return named


def repeated_views(attempts: Iterable[RefusedAttempt]) -> list[RefusedAttempt]:
    """Return the refusals of a message that are another one seen again.

    That of an inner hop is within the time of the outer one, at another responder: a client makes
    its attempts one after the other. Of a call of gRPC the inner hop counts, which names the
    broker. One that two captures saw has the same ends and opaque.
    """
    found = []
    seen: set[tuple[str, str, int]] = set()
    ordered = sorted(attempts, key=_place)
    for one in ordered:
        place = one.requester, one.responder, one.opaque
        others = [other for other in ordered if other.responder != one.responder]
        if is_call(one.request):
            again = any(_is_around(one, inner) for inner in others)
        else:
            again = any(_is_around(outer, one) for outer in others if not is_call(outer.request))
        if again or place in seen:
            found.append(one)
        seen.add(place)
    return found


def _is_around(outer: RefusedAttempt, inner: RefusedAttempt) -> bool:
    spans = (outer.begin, outer.end), (inner.begin, inner.end)
    return outer.begin <= inner.begin and inner.end <= outer.end and spans[0] != spans[1]


def _place(one: RefusedAttempt) -> tuple[int, int, str, str, int]:
    return one.begin, one.end, one.requester, one.responder, one.opaque


def own_attempts(attempts: Iterable[RefusedAttempt]) -> list[RefusedAttempt]:
    """Return the refusals of a message that its client got, by time."""
    every = list(attempts)
    again = Counter(repeated_views(every))
    kept = []
    for one in sorted(every, key=_place):
        if again[one] > 0:
            again[one] -= 1
        else:
            kept.append(one)
    return kept


def only(names: Iterable[str]) -> str | None:
    """Return the name where there is one only."""
    different = set(names)
    return different.pop() if len(different) == 1 else None


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 send``, ``12 sends``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def listed(names: Iterable[str]) -> str:
    """Return names in a sentence: ``broker-a and broker-b``."""
    ordered = sorted(set(names))
    more = len(ordered) - MOST_SAID
    said = [*ordered[:MOST_SAID], *([f"{more} more"] if more > 0 else [])]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}" if said else ""


def called(noun: str, names: Iterable[str]) -> str:
    """Return names with what they are: ``group a``, ``groups a and b``."""
    different = set(names)
    return f"{noun if len(different) == 1 else noun + 's'} {listed(different)}"


def counted_names(counter: Mapping[str, int]) -> str:
    """Return names with their numbers, the most frequent first: ``Orders (12), Bills (3)``."""
    ordered = sorted(counter.items(), key=lambda one: (-one[1], one[0]))
    said = ", ".join(f"{name} ({number:,})" for name, number in ordered[:MOST_SAID])
    more = len(ordered) - MOST_SAID
    return f"{said} and {more} more" if more > 0 else said


def times(count: int) -> str:
    """Return ``once``, ``twice`` or ``N times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


_SEND_NAMES: Final = _names_of(SENDS) | SEND_CALLS
_FETCH_NAMES: Final = _names_of(FETCHES)
