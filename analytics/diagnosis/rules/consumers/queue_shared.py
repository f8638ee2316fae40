"""Two members of a clustering group pull one queue at the same time, or none pulls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import MEMBER, facts_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import Add, Flow, named_group
from ...need import Need
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    duration,
    end_of,
    time_of,
)
from ...refusals import listed
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...topics import is_own_topic
from .active_ticks import Ticks

MAX_QUEUES: Final = 4_000
"""maximum queues of one group, counted per client"""
MAX_CLIENTS: Final = 8
"""maximum clients of one queue that are compared"""
UNIT: Final = 1_000_000_000
"""ns per tick here"""
ORPHANED: Final = "queue-orphaned"
"""id of the rule about unassigned queues, reported by the same state"""
TURNS: Final = 3
"""times that a client pulls again after another one without claiming the queue again"""
LEAST: Final = 30
"""ticks between the first and the last such pull"""
ABANDONED: Final = 45
"""maximum ticks between two pulls of a queue: a long poll takes 30 s at most"""
MAX_LISTS: Final = 1_000
"""maximum responses with member lists"""
_QUERY: Final = int(RequestCode.QUERY_CONSUMER_OFFSET)
_LIST: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
_READ: Final = 4
"""PermName.PERM_READ"""


class _Place(NamedTuple):
    """A queue at a broker."""

    topic: str
    broker: str
    """`address:port`; after `cases` its name"""
    number: int


class _Pulls:
    """The pulls of one queue over one connection."""

    __slots__ = ("evidence", "queries", "starts")

    def __init__(self) -> None:
        self.starts, self.queries = Ticks(), Ticks()
        self.evidence: Evidence | None = None
        """the earliest pull"""


class _Shared(NamedTuple):
    """A queue that two clients pulled in turn."""

    place: _Place
    clients: tuple[str, str]
    first: int
    last: int
    """ticks"""
    evidence: tuple[Evidence, ...]


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._pulls: dict[tuple[_Place, str], _Pulls] = {}
        self._lists: dict[int, frozenset[str]] = {}
        """tick -> members of the group at that time"""

    def adder_of(self, flow: Flow) -> Add:
        return self._add

    def add_exchange(self, row: ExchangeRecord) -> None:
        self._add((row,))

    def _add(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if row.request_code == _LIST:
                self._add_list(row)
                continue
            if row.topic is None or row.queue_id is None or row.request_time is None:
                continue
            key = _Place(row.topic, row.server_address, row.queue_id), row.client_address
            pulls = self._pulls.get(key)
            if pulls is None:
                if len(self._pulls) >= MAX_QUEUES:
                    continue
                pulls = self._pulls[key] = _Pulls()
            tick = (row.request_time // UNIT,)
            if row.request_code == _QUERY:
                pulls.queries.add(tick)
                continue
            pulls.starts.add(tick)
            pulls.starts.forget()
            if pulls.evidence is None or time_of(row) < pulls.evidence.time:
                pulls.evidence = asked(row, f"{row.client_address} pulls queue {row.queue_id}")

    def _add_list(self, row: ExchangeRecord) -> None:
        members = frozenset(facts_in(row.facts, MEMBER))
        tick = end_of(row) // UNIT
        if members and (tick in self._lists or len(self._lists) < MAX_LISTS):
            # Of several in one second the longest list: their order is undefined.
            before = self._lists.get(tick, frozenset())
            self._lists[tick] = max(before, members, key=lambda item: (len(item), sorted(item)))

    def cases(self, context: Context) -> Iterable[Case]:
        if self.key not in context.clustering or self.key in context.pulling:
            return
        by_place: dict[_Place, dict[str, list[_Pulls]]] = {}
        for (place, client_address), pulls in self._pulls.items():
            named = place._replace(broker=context.broker(place.broker))
            clients = by_place.setdefault(named, {})
            clients.setdefault(context.client(client_address), []).append(pulls)
        by_topic: dict[tuple[str, tuple[str, str]], list[_Shared]] = {}
        for place, clients in sorted(by_place.items()):
            for one, other in combinations(sorted(clients)[:MAX_CLIENTS], 2):
                shared = _shared(place, (one, other), clients)
                if shared is not None:
                    by_topic.setdefault((place.topic, (one, other)), []).append(shared)
        end = (context.last_time or 0) // UNIT
        for (topic, _), several in sorted(by_topic.items()):
            yield self._case(topic, several, _left_alone(topic, by_place, end))
        for topic in sorted({place.topic for place in by_place} - {topic for topic, _ in by_topic}):
            case = self._orphans(topic, by_place, end, context)
            if case is not None:
                yield case

    def _orphans(
        self,
        topic: str,
        by_place: dict[_Place, dict[str, list[_Pulls]]],
        end: int,
        context: Context,
    ) -> Case | None:
        """Return the case of queues that no member pulls, while all members are alive."""
        times = sorted(self._lists)
        if not times or is_own_topic(topic):
            return None
        members = self._lists[times[-1]]
        # The last members, and since when they are unchanged.
        others = [tick for tick in times if self._lists[tick] != members]
        same = min(tick for tick in times if not others or tick > others[-1])
        if end - same < ABANDONED or not members <= set(context.clients.values()):
            return None
        queues = {
            _Place(topic, broker.name, number)
            for broker in context.brokers_of(topic)
            if broker.perm is not None and broker.perm & _READ
            for number in range(broker.read_queues)
        }
        pulled = {place: clients for place, clients in by_place.items() if place in queues}
        now = {place for place, clients in pulled.items() if _pulled_since(same, clients)}
        brokers = {place.broker for place in now}
        orphans = sorted(place for place in queues - now if place.broker in brokers)
        if not orphans:
            return None
        proofs = (
            pulls.evidence
            for place in now
            for several in pulled[place].values()
            for pulls in several
        )
        tally = Tally.of(proof for proof in proofs if proof is not None)
        case = tally.case(
            f"{counted(len(orphans), 'queue')} of {topic}"
            f" ({listed(f'{orphan.broker}:{orphan.number}' for orphan in orphans)})"
            f" {'was' if len(orphans) == 1 else 'were'} not pulled by any member of group"
            f" {self.key} for {duration((end - same) * UNIT)}: messages there wait, although the"
            f" group has {counted(len(members), 'member')}",
            Subject(
                group=self.key,
                topic=topic,
                queue=orphans[0].number if len(orphans) == 1 else None,
            ),
        )
        case.rule = ORPHANED
        case.count = len(orphans)
        case.first_time, case.last_time = same * UNIT, end * UNIT
        case.details = [f"members: {listed(members)}"]
        return case

    def _case(
        self,
        topic: str,
        shared_queues: list[_Shared],
        alone: dict[_Place, int],
    ) -> Case:
        tally = Tally()
        for shared in shared_queues:
            for evidence in shared.evidence:
                tally.add(evidence)
        length = max(shared.last - shared.first for shared in shared_queues) * UNIT
        queues = listed(f"{shared.place.broker}:{shared.place.number}" for shared in shared_queues)
        nobody = listed(f"{place.broker}:{place.number}" for place in alone)
        longest = duration(max(alone.values(), default=0) * UNIT)
        others = f"; no member pulled {nobody} for up to {longest}" if alone else ""
        case = tally.case(
            f"{counted(len(shared_queues), 'queue')} of {topic} ({queues})"
            f" {'is' if len(shared_queues) == 1 else 'are'} pulled by two members of group"
            f" {self.key} at once, {' and '.join(shared_queues[0].clients)}, for"
            f" {duration(length)}: messages there are delivered twice{others}",
            Subject(
                group=self.key,
                topic=topic,
                queue=shared_queues[0].place.number if len(shared_queues) == 1 else None,
            ),
        )
        case.count = len(shared_queues)
        case.first_time = min(shared.first for shared in shared_queues) * UNIT
        case.last_time = max(shared.last for shared in shared_queues) * UNIT
        return case


def _pulled_since(tick: int, clients: dict[str, list[_Pulls]]) -> bool:
    """Return whether a queue was pulled at or after a tick."""
    return any(
        start >= tick for several in clients.values() for pulls in several for start in pulls.starts
    )


def _left_alone(
    topic: str, by_place: dict[_Place, dict[str, list[_Pulls]]], end: int
) -> dict[_Place, int]:
    """Return the queues that no member pulled for long -> ticks."""
    unassigned = {}
    for place, clients in by_place.items():
        pulled = {
            tick for several in clients.values() for shared in several for tick in shared.starts
        }
        ticks = sorted({*pulled, end}) if place.topic == topic and pulled else []
        longest = max((later - tick for tick, later in pairwise(ticks)), default=0)
        if longest >= ABANDONED:
            unassigned[place] = longest
    return unassigned


def _shared(
    place: _Place, pair: tuple[str, str], clients: dict[str, list[_Pulls]]
) -> _Shared | None:
    """Return the period in which two clients pulled a queue in turn, or None."""
    starts, queries = [], []
    for number, client in enumerate(pair):
        merged, asks = Ticks(), Ticks()
        for pulls in clients[client]:
            merged.merge(pulls.starts)
            asks.merge(pulls.queries)
        starts += [(tick, number) for tick in merged]
        queries.append(asks)
    starts.sort()
    since: list[int] = []
    turns: dict[int, int] = {}
    last: dict[int, int] = {}
    for tick, number in starts:
        own, other = last.get(number), last.get(1 - number)
        if own is not None and other is not None and own <= other:
            # A client that claims a queue first queries its offset.
            asked_at = queries[number].last_before(tick + 1)
            if asked_at is None or asked_at < own:
                since.append(other)
                turns[number] = tick
        last[number] = tick
    # The old owner pulls it again only briefly, the new owner keeps pulling.
    if len(since) < TURNS or len(turns) < 2 or min(turns.values()) - since[0] < LEAST:
        return None
    proofs = (
        min(
            (pulls.evidence for pulls in clients[client] if pulls.evidence),
            key=lambda item: item.time,
        )
        for client in pair
        if any(pulls.evidence for pulls in clients[client])
    )
    return _Shared(place, pair, since[0], max(turns.values()), tuple(proofs))


RULE = DiagnosisRule(
    id="queue-shared",
    severity=ProblemSeverity.ERROR,
    title="Two members of a group pull one queue at the same time",
    searched=(
        "AllocateMessageQueueStrategy",
        "messages consumed twice by two consumers of a group",
        "some queues have no consumer",
    ),
    proof=(
        "Two clients of a group whose heartbeats say CLUSTERING take turns pulling one queue for 30"
        " s or longer. Each pulls again after the other one, without the offset request (14) of a"
        " client that takes a queue over."
    ),
    explanation=(
        "In a clustering group, each queue belongs to one member. The members compute the"
        " assignment themselves: each sorts members and queues and applies its allocation strategy."
        " If strategies differ, or the members see different lists, two members take the same queue"
        " and consume its messages twice, and other queues get no member: their messages wait."
    ),
    advice=(
        "Use the same AllocateMessageQueueStrategy (default AllocateMessageQueueAveragely), client"
        " library, and version in all members of the group, and give each instance its own client"
        " id. mqadmin consumerProgress -g GROUP shows which client owns which queue."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests=PULLS | frozenset((_QUERY, _LIST)), of_flow=True),
    ),
    limits="Groups of pull consumers, which may assign queues manually, are ignored.",
    needs=frozenset((Need.PULLS, Need.HEARTBEATS)),
    consequence_of=frozenset(("duplicate-client-id", "inconsistent-subscription")),
    lasts=None,
)
