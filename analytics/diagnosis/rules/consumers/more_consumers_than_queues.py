"""A group has more consumers than a topic has queues, so some of them get nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dissectors.foreign import natural_of
from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.heartbeats import consumers_in, subscriptions_in
from dissectors.remoting.row_facts.names import MEMBER, MEMBERS, fact_in, facts_in
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import READ
from ...context import Context, Need
from ...keys import HEARTBEAT, SUCCESS, has_room, is_own_topic, keep, keep_most, state_in, whole
from ...problem import Case, ProblemSeverity, Subject, Tally, end_of, shown, time_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import joined

_LIST: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
_PULL: Final = int(RequestCode.PULL_MESSAGE)
_SHARING: Final = frozenset((int(RequestCode.POP_MESSAGE), int(RequestCode.QUERY_ASSIGNMENT)))
"""requests of consumers that share queues, by themselves or through the broker"""
_EACH_TO_ONE: Final = ("CONSUME_PASSIVELY", "CLUSTERING")
"""type and model of a group that assigns each queue to one consumer"""
LASTING: Final = 150_000_000_000
"""ns after which a dead member is removed: 120 s (ClientManager, ConsumerManager), checked every 10
s, and the time until the others query again"""
PULLS_AGAIN: Final = 18_000_000_000
"""ns after which a consumer with a queue has pulled again: a pull waits for up to 15 s
(brokerSuspendMaxTimeMillis)"""
MAX_GROUPS: Final = 1000
MAX_TOPICS: Final = 256
"""maximum topics of one group"""
MAX_SIZES: Final = 256
"""maximum different member counts of one group"""
MAX_CLIENTS: Final = 1000
MOST_NAMED: Final = 5


class _Size:
    """Responses with the same number of group members."""

    __slots__ = ("last", "tally")

    def __init__(self) -> None:
        self.tally = Tally()
        self.last: tuple[int, tuple[str, ...]] = (-1, ())
        """time of the last one in ns, and its members"""


class _Group:
    """The state of one consumer group."""

    __slots__ = ("kinds", "pulling", "sizes", "topics")

    def __init__(self) -> None:
        self.kinds: set[tuple[str, str]] = set()
        """types and models announced by its clients"""
        self.topics: set[str] = set()
        self.sizes: dict[int, _Size] = {}
        """number of members -> the responses with this number"""
        self.pulling: dict[str, dict[str, int]] = {}
        """topic -> client `address:port` -> its last pull, ns"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.groups: dict[str, _Group] = {}
        self.sharing: set[str] = set()
        """groups whose consumers share queues"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == HEARTBEAT:
            self._add_heartbeat(row)
            return
        group = self._group(row.group)
        if group is None or row.group is None:
            return
        if row.request_code == _PULL:
            topic = row.topic or ""
            if has_room(group.pulling, topic, MAX_TOPICS):
                clients = group.pulling.setdefault(topic, {})
                keep_most(clients, row.client_address, time_of(row), MAX_CLIENTS)
        elif row.request_code == _LIST:
            _add_list(group.sizes, row)
        else:
            self.sharing.add(row.group)

    def _add_heartbeat(self, row: ExchangeRecord) -> None:
        for announced in consumers_in(row.facts):
            group = self._group(announced.name)
            if group is not None:
                group.kinds.add((announced.type, announced.model))
        for subscription in subscriptions_in(row.facts):
            group = self._group(subscription.group)
            if group is not None:
                keep(group.topics, subscription.topic, MAX_TOPICS)

    def _group(self, name: str | None) -> _Group | None:
        """Return the state of a group, or None if it has no name or the limit is reached."""
        return state_in(self.groups, name, _Group, MAX_GROUPS) if name else None

    def cases(self, context: Context) -> Iterable[Case]:
        for name, group in sorted(self.groups.items()):
            # Members of another kind share queues, get every message, or choose queues themselves.
            if name in self.sharing or group.kinds != {_EACH_TO_ONE} or not group.sizes:
                continue
            for topic in sorted(group.topics):
                queues = _queues_of(topic, context)
                if queues and not is_own_topic(topic):
                    yield from _cases(name, group, topic, queues, context)


def _add_list(sizes: dict[int, _Size], row: ExchangeRecord) -> None:
    """Add a response with the members of a group."""
    number = natural_of(fact_in(row.facts, MEMBERS) or "")
    if number is None or (number not in sizes and len(sizes) >= MAX_SIZES):
        return
    size = sizes.setdefault(number, _Size())
    size.last = max(size.last, (end_of(row), tuple(sorted(facts_in(row.facts, MEMBER)))))
    what = counted(number, "consumer")
    size.tally.add(shown(row, f"{row.server_address} says that group {row.group} has {what}"))


def _queues_of(topic: str, context: Context) -> int:
    """Return the number of queues of a topic that consumers share; 0: no route."""
    brokers = context.brokers_of(topic)
    return sum(
        broker.read_queues for broker in brokers if broker.perm is not None and broker.perm & READ
    )


def _cases(name: str, group: _Group, topic: str, queues: int, context: Context) -> Iterable[Case]:
    """Return the case of a topic that had fewer queues than the group had members in the end."""
    # The last list counts: a restart lists old and new members together for a while.
    latest = max(group.sizes, key=lambda number: group.sizes[number].last)
    if latest <= queues:
        return
    tally = joined(size.tally for number, size in group.sizes.items() if number > queues)
    idle = latest - queues
    case = tally.case(
        f"group {name} has {latest:,} consumers for the {counted(queues, 'queue')} of topic"
        f" {topic}: {counted(idle, 'consumer')} {'gets' if idle == 1 else 'get'} no messages from"
        " it",
        Subject(topic=topic, group=name),
    )
    case.details = [_placed(topic, queues, context)]
    pulls = group.pulling.get(topic, {})
    case.details += _idle(group.sizes[latest].last, pulls, topic, context)
    fewer = max(
        (size.last[0] for number, size in group.sizes.items() if number <= queues), default=0
    )
    since = tally.first if fewer < tally.first else fewer
    if tally.last - since < LASTING:
        case.doubt("it lasted only a short time, as during a restart of consumers")
    yield case


def _placed(topic: str, queues: int, context: Context) -> str:
    """Return the brokers of the topic's queues."""
    brokers = sorted(context.brokers_of(topic), key=lambda broker: broker.name)
    by_broker = ", ".join(f"{broker.read_queues} at {broker.name}" for broker in brokers)
    return f"queues of {topic}: {queues:,} ({by_broker})"


def _idle(
    last: tuple[int, tuple[str, ...]], pulls: Mapping[str, int], topic: str, context: Context
) -> Iterable[str]:
    """Return the members without recent pulls, if others pull."""
    time, members = last
    pulled: dict[str, int] = {}
    for endpoint, at in pulls.items():
        client = context.client(endpoint)
        pulled[client] = max(at, pulled.get(client, 0))
    known = set(context.clients.values())
    idle = [
        member
        for member in members
        # A member without captured heartbeats may pull outside the capture.
        if member in known and pulled.get(member, 0) < time - PULLS_AGAIN
    ]
    # If none pulls, the pulls were not captured.
    if 0 < len(idle) < len(members):
        names = ", ".join(idle[:MOST_NAMED])
        more = f" and {len(idle) - MOST_NAMED} more" if len(idle) > MOST_NAMED else ""
        yield f"consumers that are alive and do not pull {topic}: {names}{more}"


RULE = DiagnosisRule(
    id="more-consumers-than-queues",
    severity=ProblemSeverity.INFO,
    title="A group has more consumers than a topic has queues",
    searched=(
        "consumer does not receive messages",
        "consumer idle",
        "more consumers than queues",
        "scale out consumers",
    ),
    proof=(
        "A group's heartbeats say CLUSTERING and CONSUME_PASSIVELY. Its last list of members (38)"
        " has more consumers than the route of a subscribed topic has read queues. Pulls show which"
        " of them get nothing."
    ),
    explanation=(
        "Consumers of one group divide the queues of a topic: each queue goes to one consumer, and"
        " the remaining consumers get none. They are on standby and take over when another one"
        " leaves; until then, they add no speed."
    ),
    advice=(
        "Give the topic more queues: mqadmin updateTopic -r N -w N. (A topic that its first message"
        " creates has 4 by default: the producer's defaultTopicQueueNums, at most the broker's 8.)"
        " Otherwise, start fewer consumers, or give each more threads (consumeThreadMin,"
        " consumeThreadMax, default 20). With POP, several consumers share a queue (5.x, not for"
        " orderly consumers: mqadmin setConsumeMode -m POP, and setClientRebalance(false) in each"
        " consumer)."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={HEARTBEAT, _LIST}, responses={SUCCESS}, of_flow=True),
        Exchanges(key=whole, requests={_PULL} | _SHARING, of_flow=True),
    ),
    limits=(
        "Pull consumers (CONSUME_ACTIVELY) and groups without a captured heartbeat are ignored."
        " Intended standby consumers are reported, too."
    ),
    needs={Need.ROUTES, Need.HEARTBEATS, Need.GROUPS},
    lasts=None,
)
