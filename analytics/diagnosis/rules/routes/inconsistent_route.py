"""Two NameServers return different routes of one topic at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import Context, Need
from ...keys import HEARTBEAT, ROUTE, SUCCESS, is_own_topic, keep, state_in, whole
from ...names import called, listed, only
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, shown
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold

MAX_TOPICS: Final = 5000
MAX_SERVERS: Final = 16
MAX_RESPONSES: Final = 256
"""maximum responses kept per NameServer and topic"""
TOGETHER: Final = 10_000_000_000
"""maximum ns between two responses that should be equal"""
SETTLED: Final = 15_000_000_000
"""ns that NameServers may differ when a broker dies: each checks for silent ones every 5 or 10 s
(RouteInfoManager.scanNotActiveBroker)"""
_MISSING: Final = int(ResponseCode.TOPIC_NOT_EXIST)
_MOST_LISTED: Final = 8
_RouteContent = frozenset[tuple[str, str]]
"""content of a route: for each broker its name, and permission and queues or an address"""


class _Response(NamedTuple):
    time: int
    said: _RouteContent
    evidence: Evidence


class _Lasting(NamedTuple):
    """Two equal consecutive responses of a NameServer: the route was valid all the time between."""

    first: _Response
    last: _Response


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.topics: dict[str, dict[str, list[_Response]]] = {}
        """topic -> NameServer -> its responses"""
        self.named: dict[str, dict[str, str]] = {}
        """NameServer -> broker address -> broker name"""
        self.served: set[str] = set()
        """addresses that responded to heartbeats"""
        self._noted: set[tuple[str, AnsweredRoute]] = set()
        """NameServer and route whose names were recorded"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == HEARTBEAT:
            keep(self.served, row.server_address, MAX_SERVERS * MAX_SERVERS)
            return
        route = answered_route(row)
        self._note_names(row.server_address, route)
        topic = row.topic or ""
        servers = state_in(self.topics, topic, dict[str, list[_Response]], MAX_TOPICS)
        if servers is None:
            return
        responses = state_in(servers, row.server_address, list[_Response], MAX_SERVERS)
        if responses is None or len(responses) >= MAX_RESPONSES:
            return
        content, names = _content_of(route)
        what = f"route of {topic} by {row.server_address}: {names}"
        responses.append(_Response(row.response_time or 0, content, shown(row, what)))

    def _note_names(self, server: str, route: AnsweredRoute) -> None:
        """Record a NameServer's broker names."""
        if (server, route) in self._noted:
            return
        named = self.named.setdefault(server, {}) if len(self.named) < MAX_TOPICS else {}
        for name, address in route.named:
            if len(named) < MAX_TOPICS:
                named[address] = name
        if len(self._noted) >= REMEMBERED:
            self._noted.clear()
        self._noted.add((server, route))

    def cases(self, context: Context) -> Iterable[Case]:
        by_servers: dict[tuple[str, str], list[_Difference]] = {}
        for topic, servers in sorted(self.topics.items()):
            if len({response.said for responses in servers.values() for response in responses}) < 2:
                continue
            for one, other in combinations(sorted(servers), 2):
                mine, theirs = (
                    sorted(
                        servers[name], key=lambda response: (response.time, sorted(response.said))
                    )
                    for name in (one, other)
                )
                pairs = _all_the_time(mine, theirs)
                # Only two routes that both stayed as they were cannot be one change that is
                # spreading.
                certain = bool(pairs)
                pairs = pairs or _side_by_side(mine, theirs)
                # Two clusters in one capture may have topics of the same name.
                if pairs and not self._of_two_clusters(one, other, context):
                    by_servers.setdefault((one, other), []).append(
                        _Difference(topic, pairs, certain)
                    )
        for (one, other), differences in sorted(by_servers.items()):
            yield _case(one, other, differences)

    def _of_two_clusters(self, one: str, other: str, context: Context) -> bool:
        """Return whether two NameServers have live masters of equal names, but none in common."""
        mine, theirs = (self.named.get(server, {}) for server in (one, other))
        # A broker registers with all NameServers of its cluster.
        if mine.keys() & theirs.keys():
            return False
        live = [
            {
                name
                for address, name in named.items()
                if address in self.served and context.slave_id(address) is None
            }
            for named in (mine, theirs)
        ]
        # A cluster has one master per name. One that moved to another address does not respond at
        # its former one.
        return bool(live[0] & live[1])


class _Difference(NamedTuple):
    topic: str
    pairs: Sequence[tuple[_Response, _Response]]
    certain: bool


def _case(one: str, other: str, differences: Sequence[_Difference]) -> Case:
    pairs = [pair for difference in differences for pair in difference.pairs]
    tally = Tally.of({response.evidence for pair in pairs for response in pair})
    only_first = frozenset(said for mine, theirs in pairs for said in mine.said - theirs.said)
    only_second = frozenset(said for mine, theirs in pairs for said in theirs.said - mine.said)
    brokers = listed(name for name, _ in only_first | only_second)
    topics = [difference.topic for difference in differences]
    case = tally.case(
        f"NameServers {one} and {other} return different routes for {called('topic', topics)}: they"
        f" differ about {brokers}",
        Subject(topic=only(topics)),
    )
    case.details = [
        f"only at {one}: {_text(only_first)}",
        f"only at {other}: {_text(only_second)}",
    ]
    if not any(difference.certain for difference in differences):
        case.doubt("too few responses to distinguish this from a route that was just changing")
    return case


def _text(said: _RouteContent) -> str:
    return ", ".join(f"{name} ({what})" for name, what in sorted(said)[:_MOST_LISTED]) or "nothing"


@lru_cache(REMEMBERED)
def _content_of(route: AnsweredRoute) -> tuple[_RouteContent, str]:
    """Return the brokers of a route (empty if none) and their names."""
    numbers = (
        (
            broker.name,
            f"permission {broker.perm}, {broker.read_queues} read queues, {broker.write_queues}"
            " write queues",
        )
        for broker in route.brokers
    )
    content = frozenset((*numbers, *route.named))
    return content, ", ".join(sorted({name for name, _ in content})) or "no broker"


def _lasting(responses: list[_Response]) -> list[_Lasting]:
    lasting: list[_Lasting] = []
    for response in responses:
        if lasting and lasting[-1].last.said == response.said:
            lasting[-1] = _Lasting(lasting[-1].first, response)
        else:
            lasting.append(_Lasting(response, response))
    return lasting


def _all_the_time(
    mine: list[_Response], theirs: list[_Response]
) -> list[tuple[_Response, _Response]]:
    """Return differing responses if both sides kept theirs for longer than a change takes."""
    return [
        pair
        for lasting in _lasting(mine)
        for other in _lasting(theirs)
        if lasting.first.said != other.first.said
        and min(lasting.last.time, other.last.time) - max(lasting.first.time, other.first.time)
        >= SETTLED
        for pair in ((lasting.first, other.first), (lasting.last, other.last))
    ]


def _side_by_side(
    mine: list[_Response], theirs: list[_Response]
) -> list[tuple[_Response, _Response]]:
    """Return two simultaneous responses that differ, if neither side ever changed."""
    if (
        len({response.said for response in mine}) != 1
        or len({response.said for response in theirs}) != 1
    ):
        return []
    if mine[0].said == theirs[0].said:
        return []
    return [
        (response, other)
        for response in mine
        for other in theirs
        if abs(response.time - other.time) <= TOGETHER
        # A topic that is missing at first and present later was created in between.
        and (response.said or other.time < response.time)
        and (other.said or response.time < other.time)
    ][:1]


def _key(row: ExchangeRecord) -> str | None:
    if row.server_address in answered_route(row).addresses:
        return None  # a proxy gives its own address for every broker
    if row.missing_bytes or (row.response_code == SUCCESS and not row.facts):
        return None  # its response was not captured
    return None if is_own_topic(row.topic) else whole(row)


RULE = DiagnosisRule(
    id="inconsistent-route",
    severity=ProblemSeverity.WARNING,
    title="Two NameServers return different routes for one topic",
    searched=("route differs between name servers", "topic not found on some name servers"),
    proof=(
        "Two NameServers respond differently to requests for the route of one topic (105) at the"
        " same time."
    ),
    explanation=(
        "NameServers do not communicate: each broker registers with all addresses in its own"
        " namesrvAddr. A broker that has another list, or cannot reach one of the NameServers, is"
        " missing in that NameServer's routes. A client asks only one of them, so its route depends"
        " on which one."
    ),
    advice=(
        "Give all brokers and clients the same namesrvAddr, with all NameServers. Check that every"
        " broker can reach every NameServer. mqadmin topicRoute -n ONE_NAMESRV shows the route of"
        " each."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests={ROUTE}, responses={SUCCESS, _MISSING}),
        Exchanges(key=whole, requests={HEARTBEAT}, responses={SUCCESS}, of_flow=True),
    ),
    references=(
        "apache/rocketmq-operator#227",
        "apache/rocketmq#2042",
        "apache/rocketmq#2090",
    ),
    limits=(
        "Clients with a zone (__ZONE_MODE) may get other routes from a NameServer that filters by"
        " zone. Routes from a proxy are ignored, and so are NameServers that each have a live"
        " master of the same name: they belong to two clusters."
    ),
    needs={Need.ROUTES},
    lasts=None,
)
