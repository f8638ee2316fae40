"""A NameServer has no route of a topic that clients ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.topic_names import DEFAULT_TOPIC
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...answered_routes import answered_route
from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import (
    Case,
    Confidence,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    clock_after,
    shown,
)
from ...refusals import counted, counted_names, listed
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges, Fold
from ...topics import is_own_topic

MAX_TOPICS: Final = 5000
"""topics that are kept"""
MAX_ASKED: Final = 500
"""answers without a route that are kept of one topic"""
MAX_SERVERS: Final = 16
"""servers of one topic"""
MAX_CLIENTS: Final = 5000
"""clients of which the answers for TBW102 are kept"""
BELONGS: Final = 3_000_000_000
"""ns between the requests for a topic and for TBW102 of one send: mqClientApiTimeout"""
POLL: Final = 30_000_000_000
"""ns between the route requests of a client: pollNameServerInterval"""
GOES_ON: Final = 10_000_000_000
"""ns after which a topic that is asked for again and again is missing for certain"""
_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_REGISTER: Final = int(RequestCode.REGISTER_BROKER)
_MISSING: Final = int(ResponseCode.TOPIC_NOT_EXIST)
_SUCCESS: Final = int(ResponseCode.SUCCESS)


class _Asked(NamedTuple):
    """An answer that there is no route."""

    time: int
    requester: str
    responder: str
    evidence: Evidence


_OVER_ADVICE: Final = (
    "Find out why no broker of the topic was registered at that time: it was down or starting, or"
    " did not reach this NameServer. A topic with queues on two brokers keeps its route when one is"
    " gone: mqadmin updateTopic -c CLUSTER. (A planned restart needs no action.)"
)


class _Topic:
    """What was answered for one topic."""

    __slots__ = ("brokers", "found", "missing", "servers")

    def __init__(self) -> None:
        self.missing: list[_Asked] = []
        self.found: tuple[int, int] | None = None
        """times of the first and the last route"""
        self.servers: set[str] = set()
        """servers that had a route"""
        self.brokers: set[str] = set()
        """names of the brokers in its routes"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.topics: dict[str, _Topic] = {}
        self.defaults: dict[str, list[tuple[int, bool]]] = {}
        """client -> times at which it asked for TBW102, and whether it got a route"""
        self.routing: set[str] = set()
        """servers that had a route of any topic of users"""
        self.registered: dict[tuple[str, str], set[int]] = {}
        """server and broker name -> times of registrations"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        time = row.request_time if row.request_time is not None else row.response_time or 0
        good = row.response_code == _SUCCESS
        if row.request_code == _REGISTER:
            for name, _ in answered_route(row).named if good else ():
                key = row.responder, name
                if key in self.registered or len(self.registered) < MAX_TOPICS:
                    times = self.registered.setdefault(key, set())
                    if len(times) < MAX_ASKED:
                        times.add(time)
            return
        if row.topic == DEFAULT_TOPIC:
            # One without an answer may have got a route that was not captured.
            good = good or row.response_code is None
            if row.requester in self.defaults or len(self.defaults) < MAX_CLIENTS:
                answers = self.defaults.setdefault(row.requester, [])
                if len(answers) < MAX_ASKED:
                    answers.append((time, good))
            return
        if is_own_topic(row.topic) or row.topic is None or row.response_code is None:
            return
        topic = self.topics.get(row.topic)
        if topic is None:
            if len(self.topics) >= MAX_TOPICS:
                return
            topic = self.topics[row.topic] = _Topic()
        if good:
            first, last = topic.found or (time, time)
            topic.found = min(first, time), max(last, time)
            if len(topic.servers) < MAX_SERVERS:
                topic.servers.add(row.responder)
            for name, _ in answered_route(row).named:
                if len(topic.brokers) < MAX_SERVERS:
                    topic.brokers.add(name)
            if len(self.routing) < MAX_CLIENTS:
                self.routing.add(row.responder)
        elif len(topic.missing) < MAX_ASKED:
            topic.missing.append(_Asked(time, row.requester, row.responder, shown(row)))

    def cases(self, context: Context) -> Iterable[Case]:
        for name, topic in sorted(self.topics.items()):
            case = self._case(name, topic, name in context.sent, context.last_time)
            if case is not None:
                case.details.append(self._who_else(topic, context))
                yield case

    def _who_else(self, topic: _Topic, context: Context) -> str:
        """Return whether the topic is missing, or its brokers."""
        asked = {one.responder for one in topic.missing}
        if elsewhere := topic.servers - asked:
            return f"{listed(elsewhere)} has a route of it: the NameServers differ"
        if asked & self.routing:
            return "the server has routes of other topics, or had one of this topic"
        if context.names:
            return f"there are brokers ({listed(context.names.values())}): the topic is missing"
        return "no route of any topic was seen: perhaps no broker is registered there at all"

    def _case(self, name: str, topic: _Topic, sent: bool, end: int | None) -> Case | None:
        """Return what is wrong with a topic.

        `sent`: something was sent to it. `end`: time of the last exchange, ns.
        """
        missing = sorted(topic.missing, key=lambda one: (one.time, one.requester))
        by_default: dict[bool | None, list[_Asked]] = {True: [], False: [], None: []}
        for one in missing:
            by_default[self._default_of(one)].append(one)
        asked = [*by_default[False], *by_default[None]]
        before = topic.found is not None and bool(asked) and topic.found[0] < asked[0].time
        had = before and not topic.servers.isdisjoint(one.responder for one in asked)
        if by_default[False] and not had:
            title = (
                f"topic {name} has no route, nor has {DEFAULT_TOPIC}, from which a producer would"
                f" make it: {counted(len(asked), 'request')} of {_clients(asked)} refused"
                + ("" if sent else ", nothing was sent")
            )
            return self._told(name, topic, asked, title)
        if not asked or by_default[True]:
            return None  # the producer goes on with the default route
        until = self._back(topic, asked)
        if before:
            begin, last = asked[0].time, asked[-1].time
            if until is not None:
                period = f"to {clock_after(begin, until)} UTC"
            elif end is None or end - last <= POLL:
                period = "UTC to the end of the capture"
            else:
                period = f"UTC at least to {clock_after(begin, last)}"
            title = (
                f"topic {name} had no route from {clock(begin)} {period}: no broker of it was"
                f" registered ({counted(len(asked), 'request')} of {_clients(asked)} refused)"
            )
            case = self._told(name, topic, asked, title)
            if until is not None:
                case.state = ProblemState.OVER
                case.advice = _OVER_ADVICE
            return case
        if sent or until is not None or max(Counter(one.requester for one in asked).values()) < 2:
            return None  # it was made in the meantime; or asked for once, as by a tool
        title = (
            f"topic {name} has no route: {counted(len(asked), 'request')} of {_clients(asked)}"
            " refused"
        )
        case = self._told(name, topic, asked, title)
        if asked[-1].time - asked[0].time < GOES_ON:
            case.confidence = Confidence.LIKELY
            case.reason = "the topic may have been made right after"
        return case

    def _told(self, name: str, topic: _Topic, asked: Sequence[_Asked], title: str) -> Case:
        tally = Tally.of(one.evidence for one in asked)
        case = tally.case(title, Subject(topic=name))
        servers = {one.responder for one in asked}
        case.details = [
            f"clients: {counted_names(Counter(host_of(one.requester) for one in asked))}",
            f"asked: {listed(servers)}",
        ]
        if (until := self._back(topic, asked)) is not None:
            case.details.append(f"it had a route at {clock(until)} UTC")
        return case

    def _back(self, topic: _Topic, asked: Sequence[_Asked]) -> int | None:
        """Return when a route was there again after the last refusal; None: nothing shows it.

        A client got a route, or a broker of the topic registered at the server that refused it.
        """
        last = asked[-1]
        back = [topic.found[1]] if topic.found is not None else []
        for name in topic.brokers:
            back += self.registered.get((last.responder, name), ())
        return min((time for time in back if time > last.time), default=None)

    def _default_of(self, asked: _Asked) -> bool | None:
        """Return whether the client got the route of TBW102 then; None: it did not ask."""
        near = [
            good
            for time, good in self.defaults.get(asked.requester, ())
            if abs(time - asked.time) <= BELONGS
        ]
        return any(near) if near else None


def _clients(asked: Iterable[_Asked]) -> str:
    return listed(host_of(one.requester) for one in asked)


RULE = DiagnosisRule(
    id="no-route",
    severity=ProblemSeverity.ERROR,
    title="A topic has no route at the NameServer",
    searched=(
        "No route info of this topic",
        "No topic route info in name server for the topic",
        "Can not find Message Queue for this topic",
    ),
    proof=(
        "Requests for the route of a topic (105) are answered with code 17 (TOPIC_NOT_EXIST), and"
        " so is the request for TBW102 after it. Or they are so again and again. Or a topic had a"
        " route and lost it."
    ),
    explanation=(
        "Brokers tell the NameServers which topics they have. A client asks a NameServer for the"
        " brokers of a topic. None was registered with it. A producer then asks for TBW102, the"
        " pattern of new topics, which is there only if a broker makes topics by itself. Without"
        " either it fails at once, and nothing reaches a broker."
    ),
    advice=(
        "Create the topic: mqadmin updateTopic -n NAMESRV -c CLUSTER -t TOPIC. Check the spelling,"
        " the namespace, and that client and brokers have the same NameServers (namesrvAddr). If"
        " the topic exists, look whether its broker runs and registers (mqadmin clusterList)."
        " autoCreateTopicEnable (broker, default true) lets producers make topics."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=whole,
            requests=frozenset((_ROUTE,)),
            responses=frozenset((_MISSING, _SUCCESS)),
        ),
        Exchanges(key=whole, requests=frozenset((_REGISTER,)), responses=frozenset((_SUCCESS,))),
        Exchanges(
            key=lambda row: whole(row) if row.topic == DEFAULT_TOPIC else None,
            requests=frozenset((_ROUTE,)),
            statuses=frozenset((UNANSWERED,)),
        ),
    ),
    references=(
        "apache/rocketmq#504",
        "apache/rocketmq#1502",
        "apache/rocketmq#3179",
        "apache/rocketmq#8801",
        "apache/rocketmq#5252",
        "apache/rocketmq#2228",
    ),
    limits=(
        "A topic that is asked for once and has no route is not told: it may be a question of a"
        " tool, or be made next. Topics of RocketMQ itself are left out."
    ),
    needs=frozenset((Need.ROUTES,)),
    rests_on_absence=True,
    consequence_of=frozenset(
        ("broker-gone", "namesrv-gone", "namesrv-hung", "inconsistent-route", "topic-deleted")
    ),
    lasts=None,
)
