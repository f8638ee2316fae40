"""A NameServer has no route of a topic that clients request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.grpc.names import CODES, OK
from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.topic_names import DEFAULT_TOPIC
from dissectors.rows.outcome import RECEIVE_CALLS, SEND_CALLS, is_call
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...answered_routes import answered_route
from ...context import Context, Need
from ...keys import ROUTE, SUCCESS, has_room, is_own_topic, keep, state_in, whole
from ...names import counted_names, listed
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    clock_after,
    shown,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

MAX_TOPICS: Final = 5000
"""maximum topics"""
MAX_ASKED: Final = 500
"""maximum responses without a route kept per topic"""
MAX_SERVERS: Final = 16
"""maximum servers of one topic"""
MAX_CLIENTS: Final = 5000
"""maximum clients with recorded responses for TBW102"""
BELONGS: Final = 3_000_000_000
"""maximum ns between the requests for a topic and for TBW102 of one send: mqClientApiTimeout"""
POLL: Final = 30_000_000_000
"""ns between the route requests of a client: pollNameServerInterval"""
GOES_ON: Final = 10_000_000_000
"""ns after which a topic that is requested repeatedly is certainly missing"""
_REGISTER: Final = int(RequestCode.REGISTER_BROKER)
_MISSING: Final = int(ResponseCode.TOPIC_NOT_EXIST)


_ROUTE_CALLS: Final = frozenset(("QueryRoute", *SEND_CALLS, *RECEIVE_CALLS))
"""gRPC calls that succeed only if the topic has a route"""


class _Lookup(NamedTuple):
    """A response without a route."""

    time: int
    end: int
    call: bool
    """a gRPC call to a proxy"""
    client_address: str
    server_address: str
    evidence: Evidence


_LOST_ADVICE: Final = (
    "Start the brokers of the topic, or let them reach this NameServer again (mqadmin clusterList"
    " shows who is registered). A topic with queues on two brokers keeps its route when one is"
    " gone. To create the topic on all masters of a cluster, run mqadmin updateTopic -c CLUSTER -t"
    " TOPIC."
)
_OVER_ADVICE: Final = (
    "Find out why no broker of the topic was registered at that time: it was down or starting, or"
    " did not reach this NameServer. A topic with queues on two brokers keeps its route when one is"
    " gone. To create the topic on all masters of a cluster, run mqadmin updateTopic -c CLUSTER -t"
    " TOPIC. (A planned restart needs no action.)"
)


_PROXY_ADVICE: Final = (
    "Create the topic (mqadmin updateTopic -c CLUSTER -t TOPIC), or correct its name in the client."
    " A proxy creates no topics. The attribute +message.type (NORMAL, FIFO, DELAY, or TRANSACTION;"
    " option -a) must match the type of the messages."
)


class _Topic:
    """Responses for one topic."""

    __slots__ = ("brokers", "found", "missing", "servers")

    def __init__(self) -> None:
        self.missing: list[_Lookup] = []
        self.found: tuple[int, int] | None = None
        """times of the first and the last route"""
        self.servers: set[str] = set()
        """servers with a route"""
        self.brokers: set[str] = set()
        """broker names in its routes"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.topics: dict[str, _Topic] = {}
        self.defaults: dict[str, list[tuple[int, bool]]] = {}
        """client -> times of its requests for TBW102, and whether it got a route"""
        self.routing: set[str] = set()
        """servers with a route of any user topic"""
        self.registered: dict[tuple[str, str], set[int]] = {}
        """server and broker name -> times of registrations"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        time = row.request_time if row.request_time is not None else row.response_time or 0
        good = row.response_code in (SUCCESS, OK)
        if row.request_code == _REGISTER:
            for name, _ in answered_route(row).named if good else ():
                key = row.server_address, name
                if has_room(self.registered, key, MAX_TOPICS):
                    times = self.registered.setdefault(key, set())
                    keep(times, time, MAX_ASKED)
            return
        if row.topic == DEFAULT_TOPIC:
            # A request without a response may have got a route that was not captured.
            good = good or row.response_code is None
            if has_room(self.defaults, row.client_address, MAX_CLIENTS):
                responses = self.defaults.setdefault(row.client_address, [])
                if len(responses) < MAX_ASKED:
                    responses.append((time, good))
            return
        if is_own_topic(row.topic) or row.topic is None or row.response_code is None:
            return
        topic = state_in(self.topics, row.topic, _Topic, MAX_TOPICS)
        if topic is None:
            return
        if good:
            first, last = topic.found or (time, time)
            topic.found = min(first, time), max(last, time)
            keep(topic.servers, row.server_address, MAX_SERVERS)
            for name, _ in answered_route(row).named:
                keep(topic.brokers, name, MAX_SERVERS)
            keep(self.routing, row.server_address, MAX_CLIENTS)
        elif len(topic.missing) < MAX_ASKED:
            end = row.response_time or time
            ends = row.client_address, row.server_address
            topic.missing.append(_Lookup(time, end, is_call(row.request_name), *ends, shown(row)))

    def cases(self, context: Context) -> Iterable[Case]:
        for name, topic in sorted(self.topics.items()):
            case = self._case(name, topic, context)
            if case is not None:
                case.details.append(self._missing_scope(topic, context))
                yield case

    def _missing_scope(self, topic: _Topic, context: Context) -> str:
        """Return a sentence on what is missing: the topic or its brokers."""
        asked = {response.server_address for response in topic.missing}
        if elsewhere := topic.servers - asked:
            return f"{listed(elsewhere)} has a route of it: the NameServers differ"
        if asked & self.routing:
            return (
                "the server works: it returned routes for other topics, or for this one at another"
                " time"
            )
        if context.names:
            return f"there are brokers ({listed(context.names.values())}): the topic is missing"
        return "no route of any topic was seen: perhaps no broker is registered there at all"

    def _case(self, name: str, topic: _Topic, context: Context) -> Case | None:
        """Return the case of a topic."""
        sent, end = name in context.sent, context.last_time
        missing = sorted(
            _of_clients(topic.missing),
            key=lambda response: (response.time, response.client_address),
        )
        by_default: dict[bool | None, list[_Lookup]] = {True: [], False: [], None: []}
        for response in missing:
            by_default[self._default_of(response)].append(response)
        asked = [*by_default[False], *by_default[None]]
        # A topic that had a route exists: its brokers are gone, which no template would help.
        before = topic.found is not None and bool(asked) and topic.found[0] < asked[0].time
        had = before and not topic.servers.isdisjoint(response.server_address for response in asked)
        if by_default[False] and not had:
            title = (
                f"topic {name} has no route, and neither has {DEFAULT_TOPIC}, the template for new"
                f" topics: {counted(len(asked), 'request')} from {_clients(asked)} refused"
                + ("" if sent else ", nothing was sent")
            )
            return self._case_of(name, topic, asked, title)
        if not asked or by_default[True]:
            return None  # the producer continues with the default route
        until = self._back(topic, asked)
        if before:
            begin, last = asked[0].time, asked[-1].time
            verb, was, period = "had", "was", f"from {clock(begin)}"
            if until is not None:
                period += f" to {clock_after(begin, until)} UTC"
            elif end is not None and end - last > POLL:
                period += f" UTC until at least {clock_after(begin, last)}"
            elif context.goes_on:
                verb, was, period = "has", "is", f"since {clock(begin)} UTC"
            else:
                period += " UTC to the end of the capture"
            title = (
                f"topic {name} {verb} no route {period}: none of its brokers {was} registered"
                f" ({counted(len(asked), 'request')} from {_clients(asked)} refused)"
            )
            case = self._case_of(name, topic, asked, title)
            case.advice = _LOST_ADVICE
            if until is not None:
                case.state = ProblemState.OVER
                case.advice = _OVER_ADVICE
            return case
        if sent or until is not None or not _is_looked_up_again(asked):
            return None  # created in the meantime; or requested once, as by a tool
        title = (
            f"topic {name} has no route: {counted(len(asked), 'request')} from {_clients(asked)}"
            " refused"
        )
        case = self._case_of(name, topic, asked, title)
        if asked[-1].time - asked[0].time < GOES_ON:
            case.doubt("the topic may have been created right afterwards")
        return case

    def _case_of(self, name: str, topic: _Topic, asked: Sequence[_Lookup], title: str) -> Case:
        tally = Tally.of(response.evidence for response in asked)
        case = tally.case(title, Subject(topic=name))
        servers = {response.server_address for response in asked}
        hosts = Counter(host_of(response.client_address) for response in asked)
        case.details = [
            f"clients: {counted_names(hosts)}",
            f"queried: {listed(servers)}",
        ]
        if all(response.call for response in asked):
            case.advice = _PROXY_ADVICE
        if (until := self._back(topic, asked)) is not None:
            case.details.append(f"it had a route at {clock(until)} UTC")
        return case

    def _back(self, topic: _Topic, asked: Sequence[_Lookup]) -> int | None:
        """Return when a route was back after the last refusal, or None.

        A client got a route, or a broker of the topic registered at the refusing server.
        """
        last = asked[-1]
        back = [topic.found[1]] if topic.found is not None else []
        for name in topic.brokers:
            back += self.registered.get((last.server_address, name), ())
        return min((time for time in back if time > last.time), default=None)

    def _default_of(self, asked: _Lookup) -> bool | None:
        """Return whether the client got the route of TBW102 at that time; None: no request."""
        near = [
            good
            for time, good in self.defaults.get(asked.client_address, ())
            if abs(time - asked.time) <= BELONGS
        ]
        return any(near) if near else None


def _of_clients(every: Iterable[_Lookup]) -> list[_Lookup]:
    """Return requests without those of a proxy for a captured call."""
    responses = list(every)
    calls = [(response.time, response.end) for response in responses if response.call]
    return [
        response
        for response in responses
        if response.call
        or not any(begin <= response.time and response.end <= end for begin, end in calls)
    ]


def _is_looked_up_again(asked: Sequence[_Lookup]) -> bool:
    """Return whether a client asked twice, or by gRPC, as no tool does."""
    often = Counter(response.client_address for response in asked)
    return any(response.call for response in asked) or max(often.values()) > 1


def _clients(asked: Iterable[_Lookup]) -> str:
    return listed(host_of(response.client_address) for response in asked)


RULE = DiagnosisRule(
    id="no-route",
    severity=ProblemSeverity.ERROR,
    title="A topic has no route at the NameServer",
    searched=(
        "No route info of this topic",
        "No topic route info in name server for the topic",
        "Can not find Message Queue for this topic",
        "No route info for this topic",
        "CODE: 10005",
        "the topic=X route info not found, it may not exist",
        "Unknown why, Can not find Message Queue for this topic",
        "doRebalance, but the topic not exist",
        "Failed to fetch topics after 3 attempts",
        "Expected the service ProducerImpl-0 [FAILED] to be RUNNING",
    ),
    proof=(
        "Requests for the route of a topic (105) get code 17 (TOPIC_NOT_EXIST), and so does the"
        " following request for TBW102. Or they do so repeatedly. Or a topic had a route and lost"
        " it. With gRPC: a call gets TOPIC_NOT_FOUND (40402)."
    ),
    explanation=(
        "Brokers register their topics with the NameServers. A client asks a NameServer for the"
        " brokers of a topic; none had registered it. A producer then asks for TBW102, the template"
        " for new topics, which exists only if a broker creates topics automatically. Without"
        " either, the send fails immediately, and nothing reaches a broker."
    ),
    advice=(
        "Create the topic: mqadmin updateTopic -n NAMESRV -c CLUSTER -t TOPIC. Check the spelling,"
        " the namespace, and that client and brokers use the same NameServers (namesrvAddr). If the"
        " topic exists, check that its broker is running and registered (mqadmin clusterList)."
        " autoCreateTopicEnable (broker, default true) lets producers create topics."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={ROUTE}, responses={_MISSING, SUCCESS}),
        Exchanges(key=whole, requests={_REGISTER}, responses={SUCCESS}),
        Exchanges(
            key=lambda row: whole(row) if row.topic == DEFAULT_TOPIC else None,
            requests={ROUTE},
            statuses={UNANSWERED},
        ),
        Exchanges(
            key=lambda row: whole(row) if row.topic else None, responses={CODES["TOPIC_NOT_FOUND"]}
        ),
        Exchanges(
            key=lambda row: whole(row) if row.request_name in _ROUTE_CALLS else None, responses={OK}
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
        "A topic that is requested once without a route is not reported: a tool may have asked for"
        " it, or it may be created next. RocketMQ's own topics are ignored."
    ),
    needs={Need.ROUTES},
    rests_on_absence=True,
    consequence_of={
        "broker-gone",
        "namesrv-gone",
        "namesrv-hung",
        "inconsistent-route",
        "proxy-cannot-reach-broker",
        "topic-deleted",
    },
    lasts=None,
)
