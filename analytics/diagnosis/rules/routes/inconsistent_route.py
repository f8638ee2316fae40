"""Two NameServers give different routes of one topic at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import Case, Confidence, Evidence, ProblemSeverity, Subject, Tally, shown
from ...refusals import called, listed, only
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold
from ...topics import is_own_topic

MAX_TOPICS: Final = 5000
MAX_SERVERS: Final = 16
MAX_ANSWERS: Final = 256
"""answers of one NameServer for one topic that are kept"""
TOGETHER: Final = 10_000_000_000
"""ns between two answers that should be the same"""
SETTLED: Final = 15_000_000_000
"""ns that NameServers may differ when a broker dies: each looks for silent ones every 5 or 10 s
(RouteInfoManager.scanNotActiveBroker)"""
_HEARTBEAT: Final = int(RequestCode.HEART_BEAT)
_ROUTE_REQUEST: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_MISSING: Final = int(ResponseCode.TOPIC_NOT_EXIST)
_MOST_TOLD: Final = 8
Said = frozenset[tuple[str, str]]
"""what a route says: for each broker its name, and permission and queues or an address"""


class _Answer(NamedTuple):
    time: int
    said: Said
    evidence: Evidence


class _Lasting(NamedTuple):
    """What one NameServer said twice in a row: it was so all the time between."""

    first: _Answer
    last: _Answer


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.topics: dict[str, dict[str, list[_Answer]]] = {}
        """topic -> NameServer -> what it answered"""
        self.named: dict[str, dict[str, str]] = {}
        """NameServer -> address of a broker -> its name"""
        self.served: set[str] = set()
        """addresses that answered heartbeats"""
        self._noted: set[tuple[str, AnsweredRoute]] = set()
        """NameServer and route of which the names were noted"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == _HEARTBEAT:
            if len(self.served) < MAX_SERVERS * MAX_SERVERS:
                self.served.add(row.responder)
            return
        route = answered_route(row)
        self._note_names(row.responder, route)
        topic = row.topic or ""
        if topic not in self.topics and len(self.topics) >= MAX_TOPICS:
            return
        servers = self.topics.setdefault(topic, {})
        if row.responder not in servers and len(servers) >= MAX_SERVERS:
            return
        answers = servers.setdefault(row.responder, [])
        if len(answers) >= MAX_ANSWERS:
            return
        said, names = _said_in(route)
        what = f"route of {topic} by {row.responder}: {names}"
        answers.append(_Answer(row.response_time or 0, said, shown(row, what)))

    def _note_names(self, server: str, route: AnsweredRoute) -> None:
        """Note how a NameServer names the brokers."""
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
        found: dict[tuple[str, str], list[_Difference]] = {}
        for topic, servers in sorted(self.topics.items()):
            if len({answer.said for answers in servers.values() for answer in answers}) < 2:
                continue
            for one, other in combinations(sorted(servers), 2):
                mine, theirs = (
                    sorted(servers[name], key=lambda answer: (answer.time, sorted(answer.said)))
                    for name in (one, other)
                )
                pairs = _all_the_time(mine, theirs)
                certain = bool(pairs)
                pairs = pairs or _side_by_side(mine, theirs)
                if pairs and not self._of_two_clusters(one, other, context):
                    found.setdefault((one, other), []).append(_Difference(topic, pairs, certain))
        for (one, other), differences in sorted(found.items()):
            yield _case(one, other, differences)

    def _of_two_clusters(self, one: str, other: str, context: Context) -> bool:
        """Return whether two NameServers have live masters of the same names, and none in common.

        A cluster has one master of a name. One that moved to another address does not answer at its
        former one.
        """
        mine, theirs = (self.named.get(server, {}) for server in (one, other))
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
        return bool(live[0] & live[1])


class _Difference(NamedTuple):
    topic: str
    pairs: Sequence[tuple[_Answer, _Answer]]
    certain: bool


def _case(one: str, other: str, differences: Sequence[_Difference]) -> Case:
    tally = Tally()
    pairs = [pair for difference in differences for pair in difference.pairs]
    for proof in {answer.evidence for pair in pairs for answer in pair}:
        tally.add(proof)
    only_first = frozenset(said for mine, theirs in pairs for said in mine.said - theirs.said)
    only_second = frozenset(said for mine, theirs in pairs for said in theirs.said - mine.said)
    brokers = listed(name for name, _ in only_first | only_second)
    topics = [difference.topic for difference in differences]
    case = tally.case(
        f"NameServers {one} and {other} give different routes of {called('topic', topics)}: they"
        f" differ about {brokers}",
        Subject(topic=only(topics)),
    )
    case.details = [
        f"only at {one}: {_text(only_first)}",
        f"only at {other}: {_text(only_second)}",
    ]
    if not any(difference.certain for difference in differences):
        case.confidence = Confidence.LIKELY
        case.reason = "the answers are too few to tell it from a route that was just changing"
    return case


def _text(said: Said) -> str:
    return ", ".join(f"{name} ({what})" for name, what in sorted(said)[:_MOST_TOLD]) or "nothing"


@lru_cache(REMEMBERED)
def _said_in(route: AnsweredRoute) -> tuple[Said, str]:
    """Return what a route says of its brokers, empty where there is none, and their names."""
    numbers = (
        (
            one.name,
            f"permission {one.perm}, queues {one.read_queues} to read {one.write_queues} to write",
        )
        for one in route.brokers
    )
    said = frozenset((*numbers, *route.named))
    return said, ", ".join(sorted({name for name, _ in said})) or "no broker"


def _lasting(answers: list[_Answer]) -> list[_Lasting]:
    found: list[_Lasting] = []
    for answer in answers:
        if found and found[-1].last.said == answer.said:
            found[-1] = _Lasting(found[-1].first, answer)
        else:
            found.append(_Lasting(answer, answer))
    return found


def _all_the_time(mine: list[_Answer], theirs: list[_Answer]) -> list[tuple[_Answer, _Answer]]:
    """Return answers that differ, where both sides kept to theirs for longer than changes take."""
    return [
        pair
        for one in _lasting(mine)
        for other in _lasting(theirs)
        if one.first.said != other.first.said
        and min(one.last.time, other.last.time) - max(one.first.time, other.first.time) >= SETTLED
        for pair in ((one.first, other.first), (one.last, other.last))
    ]


def _side_by_side(mine: list[_Answer], theirs: list[_Answer]) -> list[tuple[_Answer, _Answer]]:
    """Return two answers about the same time that differ, where neither side ever changed.

    A topic that is missing first and there later was made between.
    """
    if len({one.said for one in mine}) != 1 or len({one.said for one in theirs}) != 1:
        return []
    if mine[0].said == theirs[0].said:
        return []
    return [
        (one, other)
        for one in mine
        for other in theirs
        if abs(one.time - other.time) <= TOGETHER
        and (one.said or other.time < one.time)
        and (other.said or one.time < other.time)
    ][:1]


def _key(row: ExchangeRecord) -> str | None:
    if row.responder in answered_route(row).addresses:
        return None  # a proxy names itself for every broker
    if row.missing_bytes or (row.response_code == _SUCCESS and not row.facts):
        return None  # what it says was not captured
    return None if is_own_topic(row.topic) else whole(row)


RULE = DiagnosisRule(
    id="inconsistent-route",
    severity=ProblemSeverity.WARNING,
    title="Two NameServers give different routes of one topic",
    searched=("route differs between name servers", "topic not found on some name servers"),
    proof=(
        "Two NameServers answer requests for the route of one topic (105) differently at the same"
        " time."
    ),
    explanation=(
        "NameServers do not know of each other: each broker registers with all of its own"
        " namesrvAddr. One that has another list, or cannot reach one of the NameServers, is"
        " missing in the routes of that NameServer. A client asks only one of them, so what it"
        " sees depends on which one it got."
    ),
    advice=(
        "Give all brokers and clients the same namesrvAddr, with all NameServers. Check that every"
        " broker reaches every NameServer. mqadmin topicRoute -n ONE_NAMESRV shows what each says."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key,
            requests=frozenset((_ROUTE_REQUEST,)),
            responses=frozenset((_SUCCESS, _MISSING)),
        ),
        Exchanges(
            key=whole,
            requests=frozenset((_HEARTBEAT,)),
            responses=frozenset((_SUCCESS,)),
            of_flow=True,
        ),
    ),
    references=(
        "apache/rocketmq-operator#227",
        "apache/rocketmq#2042",
        "apache/rocketmq#2090",
    ),
    limits=(
        "Clients with a zone of their own (__ZONE_MODE) may get other routes from a NameServer that"
        " filters by zones. Routes that a proxy answers are left out, and so are NameServers that"
        " each have a live master of one name: those are of two clusters."
    ),
    needs=frozenset((Need.ROUTES,)),
    lasts=None,
)
