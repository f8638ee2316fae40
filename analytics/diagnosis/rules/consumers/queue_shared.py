"""Two members of a clustering group pull one queue at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS
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
    seconds,
    time_of,
)
from ...refusals import listed
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from .active_ticks import Ticks

MAX_QUEUES: Final = 4_000
"""queues of one group, each time a client pulls one"""
MAX_CLIENTS: Final = 8
"""clients of one queue that are compared"""
UNIT: Final = 1_000_000_000
"""ns of a tick here"""
TURNS: Final = 3
"""times that a client pulls again after another one did, without taking the queue anew"""
LEAST: Final = 30
"""ticks between the first and the last of them"""
ABANDONED: Final = 45
"""ticks between two pulls of a queue: a long poll takes 30 s at most"""
_QUERY: Final = int(RequestCode.QUERY_CONSUMER_OFFSET)


class _Place(NamedTuple):
    """A queue at a broker."""

    topic: str
    broker: str
    """`address:port`; after `cases` its name"""
    number: int


class _Pulls:
    """What one connection asks of one queue."""

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

    def adder_of(self, flow: Flow) -> Add:
        return self._add

    def add_exchange(self, row: ExchangeRecord) -> None:
        self._add((row,))

    def _add(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if row.topic is None or row.queue_id is None or row.request_time is None:
                continue
            key = _Place(row.topic, row.responder, row.queue_id), row.requester
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
                pulls.evidence = asked(row, f"{row.requester} pulls queue {row.queue_id}")

    def cases(self, context: Context) -> Iterable[Case]:
        if self.key not in context.clustering or self.key in context.pulling:
            return
        by_place: dict[_Place, dict[str, list[_Pulls]]] = {}
        for (place, requester), pulls in self._pulls.items():
            named = place._replace(broker=context.broker(place.broker))
            clients = by_place.setdefault(named, {})
            clients.setdefault(context.client(requester), []).append(pulls)
        by_topic: dict[tuple[str, tuple[str, str]], list[_Shared]] = {}
        for place, clients in sorted(by_place.items()):
            for one, other in combinations(sorted(clients)[:MAX_CLIENTS], 2):
                shared = _shared(place, (one, other), clients)
                if shared is not None:
                    by_topic.setdefault((place.topic, (one, other)), []).append(shared)
        for (topic, _), several in sorted(by_topic.items()):
            end = (context.last_time or 0) // UNIT
            alone = _left_alone(topic, by_place, end)
            yield self._case(topic, several, alone)

    def _case(
        self,
        topic: str,
        several: list[_Shared],
        alone: dict[_Place, int],
    ) -> Case:
        tally = Tally()
        for one in several:
            for evidence in one.evidence:
                tally.add(evidence)
        length = max(one.last - one.first for one in several) * UNIT
        queues = listed(f"{one.place.broker}:{one.place.number}" for one in several)
        what = "queue" if len(several) == 1 else f"{len(several)} queues"
        nobody = listed(f"{place.broker}:{place.number}" for place in alone)
        longest = seconds(max(alone.values(), default=0) * UNIT)
        others = f"; {nobody} by none for up to {longest}" if alone else ""
        case = tally.case(
            f"{what} of {topic} ({queues}) {'is' if len(several) == 1 else 'are'} pulled by two"
            f" members of group {self.key} at once for {seconds(length)}: messages there are"
            f" delivered twice{others}",
            Subject(
                group=self.key,
                topic=topic,
                queue=several[0].place.number if len(several) == 1 else None,
            ),
        )
        case.count = len(several)
        case.first_time = min(one.first for one in several) * UNIT
        case.last_time = max(one.last for one in several) * UNIT
        case.details = [f"members: {' and '.join(several[0].clients)}"]
        return case


def _left_alone(
    topic: str, by_place: dict[_Place, dict[str, list[_Pulls]]], end: int
) -> dict[_Place, int]:
    """Return the queues that no member pulled for long -> ticks, at the most."""
    found = {}
    for place, clients in by_place.items():
        pulled = {tick for several in clients.values() for one in several for tick in one.starts}
        ticks = sorted({*pulled, end}) if place.topic == topic and pulled else []
        longest = max((later - one for one, later in pairwise(ticks)), default=0)
        if longest >= ABANDONED:
            found[place] = longest
    return found


def _shared(
    place: _Place, pair: tuple[str, str], clients: dict[str, list[_Pulls]]
) -> _Shared | None:
    """Return the time in which two clients pulled a queue in turn; None: they did not."""
    starts, queries = [], []
    for number, client in enumerate(pair):
        merged, asks = Ticks(), Ticks()
        for pulls in clients[client]:
            merged.merge(pulls.starts)
            asks.merge(pulls.queries)
        starts += [(tick, number) for tick in merged]
        queries.append(asks)
    starts.sort()
    turns: list[int] = []
    last: dict[int, int] = {}
    for tick, number in starts:
        own, other = last.get(number), last.get(1 - number)
        if own is not None and other is not None and own <= other:
            # A client that takes a queue anew first asks for its offset.
            asked_at = queries[number].last_before(tick + 1)
            if asked_at is None or asked_at < own:
                turns.append(tick)
        last[number] = tick
    if len(turns) < TURNS or turns[-1] - turns[0] < LEAST:
        return None
    proofs = (
        min((one.evidence for one in clients[client] if one.evidence), key=lambda one: one.time)
        for client in pair
        if any(one.evidence for one in clients[client])
    )
    return _Shared(place, pair, turns[0], turns[-1], tuple(proofs))


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
        "Two clients of a group whose heartbeats say CLUSTERING pull one queue in turn for 30 s or"
        " longer. Each pulls again after the other one did, without the request for the offset (14)"
        " of a client that takes a queue over."
    ),
    explanation=(
        "In a clustering group each queue belongs to one member. Members work out by themselves who"
        " gets which queue: each sorts the members and queues and applies its allocation strategy."
        " If strategies differ, or the members see different lists, two members take the same queue"
        " and consume its messages twice, and other queues get no member at all: their messages"
        " wait."
    ),
    advice=(
        "Use the same AllocateMessageQueueStrategy (default AllocateMessageQueueAveragely), the"
        " same client library and version in all members of the group, and give each instance its"
        " own client id. Check with mqadmin consumerProgress -g GROUP which client owns which"
        " queue."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=named_group, requests=PULLS | frozenset((_QUERY,)), of_flow=True),),
    limits=(
        "Queues that no member pulls are only named beside shared ones: other members may not be in"
        " the capture."
        " Groups of pull consumers, which may assign queues by hand, are not judged."
    ),
    needs=frozenset((Need.PULLS, Need.HEARTBEATS)),
    consequence_of=frozenset(("duplicate-client-id", "inconsistent-subscription")),
    lasts=None,
)
