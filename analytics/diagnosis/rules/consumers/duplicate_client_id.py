"""Two processes have the same client id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.heartbeats import consumers_in
from dissectors.remoting.row_facts.names import MEMBER, PRODUCER, facts_in
from dissectors.remoting.topic_names import INNER_PRODUCER, TRACER_PREFIX
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import HEARTBEAT, keep, keep_least, state_in, whole
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, time_of
from ...rule import DiagnosisRule, Exchanges, Fold

MEMBERS: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
OF_CLIENTS: Final = frozenset(
    (
        HEARTBEAT,
        MEMBERS,
        int(RequestCode.UNREGISTER_CLIENT),
        int(RequestCode.QUERY_CONSUMER_OFFSET),
        int(RequestCode.UPDATE_CONSUMER_OFFSET),
        int(RequestCode.LOCK_BATCH_MQ),
        int(RequestCode.CONSUMER_SEND_MSG_BACK),
    )
)
"""requests that show that a client is alive, sent every few seconds at most"""
MAX_ENDPOINTS: Final = 20_000
MAX_GROUPS: Final = 1_000
"""maximum groups of a kind that one place announces"""
MOST_NAMED: Final = 4

_Place = tuple[str, str, str]
"""capture, the client's and the broker's `address:port`"""


class _Fold(Fold):
    """All clients. Only heartbeats have the client id, so it cannot be the key of all rows."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.alive: dict[_Place, tuple[int, int]] = {}
        """first and last request"""
        self.ids: dict[str, dict[_Place, Evidence]] = {}
        """client id -> the sources of its heartbeats, with the first of each"""
        self.consumers: dict[_Place, set[str]] = {}
        self.producers: dict[_Place, set[str]] = {}
        self.listed: dict[tuple[str, str], Evidence] = {}
        """(group, client id) -> the first member list that has the id twice"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        # By capture: behind NAT or a relay, another capture shows the same client at other ends.
        place = (row.capture, row.client_address, row.server_address)
        time = time_of(row)
        before = self.alive.get(place)
        if before is not None:
            self.alive[place] = (min(before[0], time), max(before[1], time))
        elif len(self.alive) < MAX_ENDPOINTS:
            self.alive[place] = (time, time)
        else:
            return
        if row.request_code == HEARTBEAT:
            self._take_heartbeat(row, place)
        elif row.request_code == MEMBERS:
            self._take_members(row)

    def _take_heartbeat(self, row: ExchangeRecord, place: _Place) -> None:
        client = row.client_id
        if client is None:
            return
        places = state_in(self.ids, client, dict[_Place, Evidence], MAX_ENDPOINTS)
        if places is None:
            return
        first = places.get(place)
        if first is None or time_of(row) <= first.time:
            evidence = asked(row, f"heartbeat of {client} from {row.client_address}")
            places[place] = evidence if first is None else min(first, evidence)
        groups = self.consumers.setdefault(place, set())
        for group in consumers_in(row.facts):
            keep(groups, group.name, MAX_GROUPS)
        groups = self.producers.setdefault(place, set())
        for name in facts_in(row.facts, PRODUCER):
            # Java clients announce these themselves: they are no group in common.
            if name != INNER_PRODUCER and not name.startswith(TRACER_PREFIX):
                keep(groups, name, MAX_GROUPS)

    def _take_members(self, row: ExchangeRecord) -> None:
        members = facts_in(row.facts, MEMBER)
        for client in {member for member in members if members.count(member) > 1}:
            what = f"{row.server_address} lists {client} {members.count(client)} times"
            keep_least(self.listed, (row.group or "", client), asked(row, what), MAX_ENDPOINTS)

    def cases(self, context: Context) -> Iterable[Case]:
        for client, places in sorted(self.ids.items()):
            at_once = self._at_once(sorted(places))
            if not at_once:
                continue
            common = _common(at_once, self.consumers)
            # Consumers come first: their queues are divided by client id, which does the harm.
            of_consumers = bool(common)
            common = common or _common(at_once, self.producers)
            if not common:
                continue
            tally = Tally()
            for place in at_once:
                tally.add(places[place], last=self.alive[place][1])
            group = sorted(common)[0]
            listed = self.listed.get((group, client))
            if listed is not None:
                tally.add(listed)
            endpoints = sorted({place[1] for place in at_once})
            tally.count = len(endpoints)
            hurts = (
                "both pull the same queues, and no one pulls the others"
                if of_consumers
                else "requests from brokers may reach the wrong process"
            )
            case = tally.case(
                f"{client} is the client id of {len(endpoints)} processes at once"
                f" ({', '.join(endpoints[:MOST_NAMED])}) in {group}: {hurts}",
                Subject(group=group, client=client),
            )
            if not of_consumers:
                case.severity = ProblemSeverity.WARNING
            if len(common) > 1:
                case.details.append(f"groups of both: {', '.join(sorted(common)[:MOST_NAMED])}")
            yield case

    def _at_once(self, places: list[_Place]) -> list[_Place]:
        """Return the places of one id that were alive at the same time at a broker, per capture."""
        places_at_once: set[_Place] = set()
        longest: dict[tuple[str, str], _Place] = {}
        for place in sorted(places, key=lambda place: (self.alive[place], place)):
            # A client has one connection to a broker; a new one follows the old one.
            broker = place[0], place[2]
            begin, end = self.alive[place]
            other = longest.get(broker)
            before = 0 if other is None else self.alive[other][1]
            # A restarted client may have the same id: one connection after the other is normal.
            if other is not None and begin < min(end, before):
                places_at_once.update((place, other))
            if other is None or end > before:
                longest[broker] = place
        return sorted(places_at_once)


def _common(places: Iterable[_Place], groups: dict[_Place, set[str]]) -> set[str]:
    """Return the common groups of two of the places."""
    seen: set[str] = set()
    twice: set[str] = set()
    # By endpoint: one process has a place per broker.
    for endpoint in {place[1] for place in places}:
        own: set[str] = set()
        for place in places:
            if place[1] == endpoint:
                own |= groups.get(place, set())
        twice |= seen & own
        seen |= own
    return twice


RULE = DiagnosisRule(
    id="duplicate-client-id",
    severity=ProblemSeverity.ERROR,
    title="Two processes of a group have the same client id",
    searched=("same clientId", "consume only part of the queues", "clientId duplicate container"),
    proof=(
        "Heartbeats (34) with one client id and one group arrive on two simultaneous connections to"
        " one broker. The broker's list of members (38) then contains the id twice."
    ),
    explanation=(
        "Members of a group divide the queues by their position in the sorted list of client ids."
        " Two processes with one id have the same position: both consume the same queues, so"
        " messages are delivered twice, and no member consumes the queues of the other position."
        " For producers, replies and transaction checks may reach the wrong process."
    ),
    advice=(
        "Give each process its own instanceName, or its own clientIP. A client id is"
        " clientIP@instanceName. Before 4.9.0, instanceName DEFAULT becomes the process id, which"
        " is often 1 in containers that share an address; since 4.9.0, a time is appended. A"
        " configured name (rocketmq.client.name) is used unchanged."
    ),
    grpc="Not covered: gRPC clients build their ids from host, process id, a counter, and a time.",
    fold=_Fold,
    exchanges=(Exchanges(key=whole, requests=OF_CLIENTS),),
    references=(
        "apache/rocketmq#667",
        "apache/rocketmq#1547",
        "apache/rocketmq#2760",
        "apache/rocketmq#3480",
        "apache/rocketmq#1589",
        "apache/rocketmq-spring#387",
        "apache/rocketmq-client-go#536",
        "alibaba/spring-cloud-alibaba#1633",
    ),
    limits=(
        "Both processes must be connected to one broker in one capture. A process that follows"
        " another, as after a restart, is not reported."
    ),
    needs={Need.HEARTBEATS},
    lasts=None,
)
