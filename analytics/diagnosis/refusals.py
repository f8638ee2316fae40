"""The shared fold of rules about refused requests: which requests and clients, by which brokers.

A rule overrides `title`, and if needed `subject`, `details`, `judge`, and `take`. There is one case
per spell, or with `per_broker` one per spell and broker. If a relay was captured on both sides, a
refusal counts once, as that of its client; between gRPC and remoting as that of the broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from copy import copy
from functools import partial
from typing import ClassVar, Final, NamedTuple, Self

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.remoting.code_names import request_name
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.topic_names import is_trace_topic
from dissectors.rows.outcome import SEND_CALLS, is_call
from dissectors.rows.record import ExchangeRecord, MessageIdentity, identity_of
from dissectors.rows.relays import Hop, Relay, hop_of, inner_hops

from .context import Context
from .keys import WHOLE, state_in, whole, with_remark
from .names import Names, by_client, called, counted_names, only, subject_of, times
from .problem import Case, Impact, Subject, Tally, end_of, shown
from .rule import Exchanges, Fold
from .spells import Parts, span_of, spells

MAX_PARTS: Final = 1000
"""maximum addresses of a fold, and intervals of each"""
MAX_MESSAGES: Final = 5000
"""maximum messages with known refusals"""
MAX_ATTEMPTS: Final = 16
"""maximum refusals of one message"""
CALL_REFUSALS: Final = frozenset(range(40_000, 60_001)) - {40_401, 40_404}
"""RocketMQ codes in gRPC, except MESSAGE_NOT_FOUND and OFFSET_NOT_FOUND, which are no refusals"""


def refused_with(
    *remarks: str, codes: Iterable[ResponseCode], requests: AbstractSet[int] | None = None
) -> tuple[Exchanges, ...]:
    """Return the exchanges of a rule: responses with a code and a remark with one of the texts.

    A proxy copies the remark into its gRPC response, with a code of its own.
    """
    responses = frozenset(codes)
    taken = Exchanges(with_remark(*remarks, key=whole), requests, responses)
    if requests is not None and not requests & SENDS:
        return (taken,)
    return taken, Exchanges(with_remark(*remarks, key=whole_of_sends), responses=CALL_REFUSALS)


def whole_of_sends(row: ExchangeRecord) -> str | None:
    """Return the only key for gRPC sends with a known message, to find the hop behind the proxy."""
    return WHOLE if row.request_name in SEND_CALLS and row.unique_key else None


class RefusedAttempt(NamedTuple):
    """One refusal of a message that is identified by its UNIQ_KEY."""

    hop: Hop
    client_address: str
    opaque: int
    topic: str | None
    group: str | None
    request: str | None


class Refusals(Fold):
    """Refused requests of one key."""

    per_broker: ClassVar[bool] = False
    """one case per broker"""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.topics = Names()
        self.groups = Names()
        self.hosts = Names()
        """requests by client address"""
        self.brokers = Names()
        """by `address:port`"""
        self.requests = Names()
        self.clients = Names()
        """by `address:port` of the client"""
        self.figures: dict[str, tuple[int, int]] = {}
        """minimum and maximum of each figure"""
        self.names: dict[str, Names] = {}
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
        """Return the state of a broker at a response time, or None if the limit is reached."""
        if self._parts is None:
            self._parts = Parts(MAX_PARTS, type(self), type(self)._join)
        name = row.server_address if self.per_broker else self.key
        return self._parts.part(name, end_of(row), self.lasts)

    def take(self, row: ExchangeRecord) -> None:
        """Collect further data that the rule needs, such as numbers in the remark.

        By `note_figure` and `note_name` only: states of several addresses of a broker are joined.
        """

    def note_figure(self, name: str, value: int | None) -> None:
        """Record the minimum and maximum of a figure; ignore None."""
        if value is None:
            return
        least, most = self.figures.get(name, (value, value))
        self.figures[name] = (min(least, value), max(most, value))

    def note_version(self, row: ExchangeRecord) -> None:
        """Count the version of the client, if it is known."""
        if row.version_name:
            self.note_name(_VERSION, f"{row.language} {row.version_name}")

    def note_name(self, name: str, value: str | None, count: int = 1) -> None:
        """Count a named value."""
        if value:
            self.names.setdefault(name, Names()).note(value, count)

    def named(self, name: str) -> Counter[str]:
        """Return the counts of `note_name`."""
        return self.names.get(name, Names())

    def subject(self, context: Context) -> Subject:
        """Return the subject: the attributes that all refusals share."""
        return subject_of(self.brokers, context, only(self.topics), only(self.groups))

    def title(self, context: Context) -> str:
        """Return the title: a sentence with concrete names."""
        raise NotImplementedError

    def details(self, context: Context) -> list[str]:
        """Return further sentences: by default who sent the refused requests."""
        lines = []
        if self.topics:
            lines.append(f"topics: {counted_names(self.topics)}")
        if self.groups:
            lines.append(f"groups: {counted_names(self.groups)}")
        if clients := self._clients(context):
            lines.append(f"clients: {counted_names(clients)}")
        if versions := self.named(_VERSION):
            lines.append(f"client versions: {counted_names(versions)}")
        return lines

    def _clients(self, context: Context) -> Counter[str]:
        """Return refusals by client id, or by address if ids are unknown or too many."""
        # With more clients than MAX_NAMED, the counts by host are the more complete ones.
        if self.clients.total() < self.hosts.total():
            return self.hosts
        return by_client(self.clients, context)

    def impact(self) -> dict[Impact, int]:
        """Return the impact on messages; empty: as in the rule."""
        sends = sum(number for name, number in self.requests.items() if name in _SEND_NAMES)
        # A message trace is sent by the client itself: the application lost nothing.
        sends -= sum(number for topic, number in self.topics.items() if is_trace_topic(topic))
        return {Impact.SENDS_FAILED: sends} if sends > 0 else {}

    def judge(self, case: Case, context: Context) -> None:
        """Override the rule's confidence, severity, or advice."""

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case, or one per broker, if anything was refused."""
        for view in self._views(context):
            if view.tally.count:
                case = view.tally.case(view.title(context), view.subject(context))
                case.details = view.details(context)
                case.impact = view.impact()
                view.judge(case, context)
                yield case

    @property
    def what(self) -> str:
        """The number of refused requests as text: ``12 sends``."""
        kinds = set(self.requests)
        if kinds <= _SEND_NAMES:
            noun = "send"
        elif kinds <= _FETCH_NAMES:
            noun = "pull"
        else:
            noun = "request"
        return counted(self.tally.count, noun)

    @property
    def of_groups(self) -> str:
        """The groups for a title: `` of group a``; empty if there are none."""
        return f" of {called('group', self.groups)}" if self.groups else ""

    def sent_again(self, context: Context) -> tuple[int, int]:
        """Return the number of messages with several refusals, and the maximum per message."""
        own = (own_attempts(attempts, context.relays) for attempts in self.tried.values())
        often = [len(refusals) for refusals in own if len(refusals) > 1]
        return len(often), max(often, default=0)

    def again_lines(self, context: Context, did: str = "refused", then: str = "") -> list[str]:
        """Return a sentence on messages with several refusals: ``3 messages refused up to twice``.

        Empty if there are none.
        """
        messages, most = self.sent_again(context)
        return (
            [f"{counted(messages, 'message')} {did} up to {times(most)}{then}"] if messages else []
        )

    def _count(self, row: ExchangeRecord) -> None:
        self.tally.add(shown(row))
        self.topics.note(row.topic)
        self.groups.note(row.group)
        self.hosts.note(host_of(row.client_address))
        self.brokers.note(row.server_address)
        self.requests.note(row.request_name)
        self.clients.note(row.client_address)
        self.take(row)

    def _note_attempt(self, row: ExchangeRecord) -> None:
        key = identity_of(row)
        if key is None:
            return
        # Kept by message and not by address: hops of a relay are at two addresses.
        attempts = state_in(self.tried, key, list, MAX_MESSAGES)
        if attempts is None:
            return
        if len(attempts) < MAX_ATTEMPTS:
            attempts.append(
                RefusedAttempt(
                    hop_of(row),
                    row.client_address,
                    row.opaque,
                    row.topic,
                    row.group,
                    row.request_name,
                )
            )

    def _views(self, context: Context) -> Iterator[Refusals]:
        """Return a copy per spell, without refusals at inner hops.

        With `per_broker` also one per broker.
        """
        # Relays are proved only when all rows are known: until then, both hops are counted.
        again = [
            attempt
            for attempts in self.tried.values()
            for attempt in repeated_views(attempts, context.relays)
        ]
        by_name: dict[str, list[_Part]] = {}
        for part in map(_Part._make, self._parts.items() if self._parts is not None else ()):
            name = context.broker(part.name) if self.per_broker else self.key
            by_name.setdefault(name, []).append(part)
        for parts in by_name.values():
            signs = [part for part in parts if part.kept.tally.count]
            for spell in spells(signs, _Part.span, self.lasts):
                first = min(part.kept.tally.first for part in spell)
                last = max(part.kept.tally.last for part in spell)
                # Parts without refusals, too: they may have figures, such as all sends of clients.
                near = [part for part in parts if part.begin <= last and part.end > first]
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
            setattr(view, name, Names(getattr(self, name)))
        view.figures = dict(self.figures)
        view.names = {name: Names(counter) for name, counter in self.names.items()}
        return view

    def _join(self, other: Refusals) -> None:
        self.tally.merge(other.tally)
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name, (least, most) in other.figures.items():
            self.note_figure(name, least)
            self.note_figure(name, most)
        for name, counter in other.names.items():
            self.names.setdefault(name, Names()).update(counter)

    def _take_out(self, again: Iterable[RefusedAttempt]) -> None:
        for attempt in again:
            self.tally.count -= 1
            for counter, name in (
                (self.topics, attempt.topic),
                (self.groups, attempt.group),
                (self.hosts, host_of(attempt.client_address)),
                (self.requests, attempt.request),
                (self.clients, attempt.client_address),
            ):
                if name is not None and name in counter:
                    counter[name] -= 1
                    if counter[name] <= 0:
                        del counter[name]
            # The outer hop of a call is at the proxy; the refusal counts as that of the broker.
            if is_call(attempt.request):
                self.brokers.pop(attempt.hop.server, None)


class _Part(NamedTuple):
    """The state of one broker in an interval."""

    name: str
    begin: int
    end: int
    kept: Refusals

    def span(self) -> tuple[int, int]:
        return span_of(self.kept.tally)


def _is_of(first: int, last: int, names: set[str] | None, attempt: RefusedAttempt) -> bool:
    near = first <= (attempt.hop.end or attempt.hop.begin) <= last
    return near and (names is None or attempt.hop.server in names)


_VERSION: Final = "version"
_COUNTERS: Final = ("topics", "groups", "hosts", "brokers", "requests", "clients")


def _names_of(codes: Iterable[int]) -> frozenset[str]:
    return frozenset(request_name(code) for code in codes)


def repeated_views(
    attempts: Iterable[RefusedAttempt], relays: Collection[Relay]
) -> list[RefusedAttempt]:
    """Return the refusals of a message that repeat another one: at hops, or in two captures."""
    ordered = sorted(attempts, key=_place)
    inner = inner_hops([attempt.hop for attempt in ordered], relays)
    # Of a gRPC call the outer hop goes, because only the inner one names the broker.
    again = {outer if ordered[outer].hop.call else place for place, outer in inner.items()}
    seen: set[tuple[str, str, int]] = set()
    for place, attempt in enumerate(ordered):
        ends = attempt.client_address, attempt.hop.server, attempt.opaque
        if ends in seen:
            again.add(place)
        seen.add(ends)
    return [ordered[place] for place in sorted(again)]


def own_attempts(
    attempts: Iterable[RefusedAttempt], relays: Collection[Relay] = ()
) -> list[RefusedAttempt]:
    """Return the refusals that the message's own client received, sorted by time."""
    every = sorted(attempts, key=_place)
    return list((Counter(every) - Counter(repeated_views(every, relays))).elements())


def _place(attempt: RefusedAttempt) -> tuple[int, int, str, str, int]:
    return (
        attempt.hop.begin,
        attempt.hop.end or 0,
        attempt.client_address,
        attempt.hop.server,
        attempt.opaque,
    )


_SEND_NAMES: Final = _names_of(SENDS) | SEND_CALLS
_FETCH_NAMES: Final = _names_of(FETCHES)


class RefusingBroker(Refusals):
    """Requests that brokers refuse for one reason. Set `because`, or override `why`."""

    per_broker = True
    because: ClassVar[str] = ""
    """reason of the refusals, for the title"""

    def why(self) -> str:
        """Return why this broker refused them."""
        return self.because

    def title(self, context: Context) -> str:
        """Return the title: the broker, the number of refusals, and the reason."""
        return f"{context.refuser(self.key)} refused {self.what}: {self.why()}"
