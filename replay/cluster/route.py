"""Routes of topics: decoded from NameServers, and cached with the masters of their brokers.

A `PublishTable` is a producer's view of a route, with the round-robin index. Invalid data never
raises: unusable entries are left out, and a body that is not a route gives None.
RocketMQ: TopicRouteData, TopicPublishInfo, MQClientInstance, DefaultMQProducerImpl,
NettyRemotingClient.getAndCreateNameserverChannel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from dissectors.endpoint import split_endpoint
from dissectors.foreign import natural_of
from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.codes import RequestCode, ResponseCode

from ..config import ProducerConfig
from ..errors import BrokerError, ClientError, NameServerError, RouteError, TransportError
from ..fault import QueueIndex
from ..message import MessageQueue
from ..wire.channel import ChannelPool
from ..wire.network import MS
from ..wire.request import plain_request
from ..wire.steps import Invoke, Join, Steps

GET_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
MASTER: Final = "0"
READ: Final = 4
WRITE: Final = 2
MOST_QUEUES: Final = 65536
"""maximum queues of one topic; the rest of a route is ignored"""
MOST_BROKERS: Final = 1000
"""brokers of one topic, each with a connection for heartbeats; of further ones nothing is known"""
QUEUES: Final = ("queues of a route", MOST_QUEUES, "left out")
BROKERS: Final = ("brokers of a route", MOST_BROKERS, "left out")
NO_BROKER: Final = "__syslo__none__"
"""placeholder for a static topic's queue without a broker"""
_LOGICAL: Final = "__syslo__"
_GLOBAL: Final = "__global__"


@dataclass(slots=True)
class Route:
    """The parts of a topic's route that a producer needs."""

    topic: str
    queues: tuple[MessageQueue, ...]
    """writable queues, in round-robin order"""
    addresses: dict[str, dict[str, str]]
    """broker name → its addresses by broker id"""
    write_counts: dict[str, int]
    """broker name → write queues that the route gives it"""
    logical: dict[MessageQueue, str]
    """queue of a static topic → its current broker"""
    left_out: int
    """queues that the NameServer names beyond `MOST_QUEUES`"""
    brokers_left_out: int = 0
    """brokers that it names beyond `MOST_BROKERS`"""


class PublishTable:
    """The writable queues of a topic, and the round-robin index."""

    __slots__ = ("index", "queues", "route")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.queues = list(route.queues)
        self.index = QueueIndex()

    def write_queue_nums(self, broker_name: str) -> int:
        """Return a broker's number of write queues in the route, or -1 if it has none."""
        return self.route.write_counts.get(broker_name, -1)

    def broker_of(self, queue: MessageQueue) -> str:
        """Return the broker of a queue: that of a static topic's queue has another name."""
        logical = self.route.logical  # nearly always empty, and this is called for each send
        return logical.get(queue, queue.broker_name) if logical else queue.broker_name


def decode_route(topic: str, body: bytes, most_queues: int | None = None) -> Route | None:
    """Decode the route of `topic` from a response body; None if it is not a route.

    `most_queues`: the body is the route of the template topic; `topic` gets at most this number of
    queues per broker.
    """
    value = decode_body(GET_ROUTE, True, 0, body, {}).value
    if not isinstance(value, dict):
        return None
    brokers = value.get("brokerDatas")
    route = _route_of(topic, value, _addresses_of(brokers), most_queues)
    route.brokers_left_out = max(len(brokers) - MOST_BROKERS, 0) if isinstance(brokers, list) else 0
    return route


def _route_of(
    topic: str,
    value: dict[str, object],
    addresses: dict[str, dict[str, str]],
    most_queues: int | None,
) -> Route:
    rows = list(_rows_of(value.get("queueDatas"), most_queues))
    counts = {name: min(writes, MOST_QUEUES) for name, _, writes in rows}
    order = value.get("orderTopicConf")
    mapping = value.get("topicQueueMappingByBroker")
    if isinstance(order, str) and order:
        ordered, left_out = _ordered(topic, order)
        return Route(topic, ordered, addresses, counts, {}, left_out)
    # as in Java, an empty orderTopicConf is not null: the mapping does not count
    if order is None and isinstance(mapping, dict) and mapping:
        logical, left_out = _logical(topic, mapping)
        sorted_queues = sorted(logical, key=lambda queue: queue.queue_id)
        return Route(topic, tuple(sorted_queues), addresses, counts, logical, left_out)
    queues: list[MessageQueue] = []
    left_out = 0
    for name, perm, writes in sorted(rows):  # Java sorts by broker name before the round robin
        if perm & WRITE and MASTER in addresses.get(name, {}):
            taken = min(writes, MOST_QUEUES - len(queues))
            left_out += writes - taken
            queues += [MessageQueue(topic, name, number) for number in range(taken)]
    return Route(topic, tuple(queues), addresses, counts, {}, left_out)


def _addresses_of(rows: object) -> dict[str, dict[str, str]]:
    """Return the valid addresses by broker name and broker id."""
    addresses: dict[str, dict[str, str]] = {}
    for row in rows[:MOST_BROKERS] if isinstance(rows, list) else ():
        name, table = _member(row, "brokerName"), _member(row, "brokerAddrs")
        if isinstance(name, str) and isinstance(table, dict):
            addresses[name] = {
                str(number): address
                for number, address in table.items()
                if isinstance(address, str) and split_endpoint(address) is not None
            }
    return addresses


def _rows_of(rows: object, most_queues: int | None) -> Iterator[tuple[str, int, int]]:
    """Yield broker name, permission, and number of write queues of each row."""
    for row in rows if isinstance(rows, list) else ():
        name = _member(row, "brokerName")
        perm, writes = whole_number(row, "perm"), whole_number(row, "writeQueueNums")
        if most_queues is not None:
            # as Java: a topic that a send creates gets as many queues as the template has to read
            writes = min(most_queues, whole_number(row, "readQueueNums"))
        if isinstance(name, str):
            yield name, perm, max(writes, 0)


def _ordered(topic: str, order: str) -> tuple[tuple[MessageQueue, ...], int]:
    """Return the queues of an ordered topic (`brokerA:4;brokerB:4`), and those left out."""
    queues: list[MessageQueue] = []
    left_out = 0
    for part in order.split(";"):
        name, _, count = part.partition(":")
        named = natural_of(count)
        if named is not None:
            taken = min(named, MOST_QUEUES - len(queues))
            left_out += named - taken
            queues += [MessageQueue(topic, name, number) for number in range(taken)]
    return tuple(queues), left_out


def _logical(topic: str, mapping: Mapping[object, object]) -> tuple[dict[MessageQueue, str], int]:
    """Map each queue of a static topic to its broker of the newest epoch.

    Also return the number of queues left out because they have no broker.
    """
    newest: dict[MessageQueue, tuple[int, str]] = {}
    totals: dict[str, tuple[int, int]] = {}
    for name, info in mapping.items():
        scope, current = _member(info, "scope"), _member(info, "currIdMap")
        scope = scope if isinstance(scope, str) and scope else _GLOBAL
        # as TopicQueueMappingUtils.getMockBrokerName: the global scope loses two underscores
        logical_name = "__syslo__global__" if scope == _GLOBAL else f"{_LOGICAL}{scope}"
        epoch, total = whole_number(info, "epoch"), whole_number(info, "totalQueues")
        totals[logical_name] = max(totals.get(logical_name, (-1, 0)), (epoch, total))
        for number in current if isinstance(current, dict) else ():
            queue_id = natural_of(str(number))
            if queue_id is None or queue_id >= 1_000_000_000:
                continue
            queue = MessageQueue(topic, logical_name, queue_id)
            newest[queue] = max(newest.get(queue, (-1, "")), (epoch, str(name)))
    left_out, room = 0, MOST_QUEUES
    for logical_name, (_, total) in totals.items():
        taken = min(max(total, 0), room)
        left_out += max(total, 0) - taken
        room -= taken
        for number in range(taken):  # queues without a broker have no address
            newest.setdefault(MessageQueue(topic, logical_name, number), (-1, NO_BROKER))
    return {queue: broker for queue, (_, broker) in newest.items()}, left_out


class ReadRoute(NamedTuple):
    """The parts of a topic's route that a reader needs."""

    queues: dict[str, int]
    """broker name → readable queues"""
    write_queues: dict[str, int]
    """broker name → writable queues"""
    permissions: dict[str, int]
    """broker name → permission bits: 4 read, 2 write"""
    addresses: dict[str, dict[str, str]]
    """broker name → its addresses by broker id"""
    is_static: bool
    """its queues are mapped to queues of brokers"""

    def address_of(self, broker: str) -> str | None:
        """Return the address of a broker's master, or of a slave if it has no master."""
        addresses = self.addresses.get(broker, {})
        return addresses.get(MASTER) or next(
            (addresses[broker_id] for broker_id in sorted(addresses)), None
        )


def decode_read_route(body: bytes) -> ReadRoute | None:
    """Decode the route for reading from a response body; None if it is not a route."""
    value = decode_body(GET_ROUTE, True, 0, body, {}).value
    if not isinstance(value, dict):
        return None
    route = ReadRoute({}, {}, {}, _addresses_of(value.get("brokerDatas")), False)
    rows = value.get("queueDatas")
    left = MOST_QUEUES
    for row in rows if isinstance(rows, list) else ():
        name, perm = _member(row, "brokerName"), whole_number(row, "perm")
        if not isinstance(name, str):
            continue
        reads = min(max(whole_number(row, "readQueueNums"), 0), left) if perm & READ else 0
        left -= reads
        route.queues[name] = reads
        route.write_queues[name] = (
            max(whole_number(row, "writeQueueNums"), 0) if perm & WRITE else 0
        )
        route.permissions[name] = perm
    return route._replace(is_static=bool(value.get("topicQueueMappingByBroker")))


def _member(row: object, name: str) -> object:
    return row.get(name) if isinstance(row, dict) else None


def whole_number(row: object, name: str) -> int:
    """Return a member of a row that is a number; 0 if it is none."""
    value = _member(row, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


TOPIC_NOT_EXIST: Final = int(ResponseCode.TOPIC_NOT_EXIST)

_log = logging.getLogger("rmqtool.replay")
_GRACE_NS: Final = 10 * MS
"""grace time, so that a query's own, more precise error comes first"""


class RouteCache:
    """The routes of one client."""

    def __init__(
        self,
        config: ProducerConfig,
        channels: ChannelPool,
        random: Random,
        on_route: Callable[[], None],
    ) -> None:
        """Raise NameServerError if none is configured."""
        self.namesrvs = config.namesrv_addresses()
        self.namesrv = random.choice(self.namesrvs)
        """the current NameServer"""
        self.on_route = on_route
        """called with each new route"""
        self._config = config
        self._channels = channels
        self._now = channels.network.now
        self._tables: dict[str, PublishTable] = {}
        self._brokers: dict[str, dict[str, str]] = {}

    def table_of(self, topic: str) -> PublishTable | None:
        """Return the queues of a topic, or None if they are unknown."""
        table = self._tables.get(topic)
        return table if table is not None and table.queues else None

    def find_table(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Yield the queues of a topic, querying them if unknown.

        Raises NameServerError, RouteError.
        """
        table = self.table_of(topic)
        while table is None:
            mine: list[bool] = []

            def look_up() -> Steps[PublishTable]:
                mine.append(True)  # noqa: B023 - called, if at all, before the next round
                return self._look_up(topic, deadline)

            # The query has the time of its first caller; a caller with more time starts another.
            try:
                result = yield Join(topic, look_up, deadline + _GRACE_NS, self._unanswered)
            except NameServerError:
                if mine or self._now() >= deadline:
                    raise
            else:
                assert isinstance(result, PublishTable)
                table = result
        return table

    def _unanswered(self) -> NameServerError:
        return NameServerError(f"no response from NameServer {self.namesrv} in time")

    def any_topic(self) -> str | None:
        """Return any topic with a known route, or None."""
        return next(iter(self._tables), None)

    def master_of(self, broker_name: str) -> str | None:
        """Return the address of a broker's master, or None if no route has it."""
        addresses = self._brokers.get(broker_name)
        return addresses.get(MASTER) if addresses is not None else None

    def _look_up(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Query a route, then that of the template topic for unknown topics."""
        route = yield from self._ask_route(topic, topic, deadline, None)
        if route is None:  # the first message to it creates the topic after this template
            key = self._config.create_topic_key
            most = self._config.default_topic_queue_nums
            route = yield from self._ask_route(key, topic, deadline, most)
            if route is None:
                hint = "create it, or let brokers create topics (autoCreateTopicEnable)"
                raise RouteError(f"no NameServer has a route for topic {topic}", hint)
        if not route.queues:
            hint = "none of its masters is up, or none allows writing (perm)"
            raise RouteError(f"topic {topic} has no writable queue", hint)
        return self._keep(route)

    def _ask_route(
        self, queried: str, topic: str, deadline: int, most_queues: int | None
    ) -> Steps[Route | None]:
        """Yield the route of `queried`, as one of `topic`, or None if there is none."""
        invoke = yield from self.ask(queried, deadline)
        assert invoke.command is not None
        if invoke.command.code == TOPIC_NOT_EXIST:
            return None
        route = decode_route(topic, invoke.body, most_queues)
        if route is None:
            raise NameServerError(f"{invoke.address} gave a route that cannot be read")
        place = f"of topic {queried} at {invoke.address}"
        bound = self._config.budget.bound
        for more, limit in ((route.left_out, QUEUES), (route.brokers_left_out, BROKERS)):
            if more:
                beyond = bound(*limit)
                is_first = not beyond.ended
                beyond.end(place, more)
                if is_first:
                    _log.warning("%s", beyond.said())
        return route

    def ask(self, topic: str, deadline: int) -> Steps[Invoke]:
        """Yield the response for a topic of the current NameServer, or of one after it.

        Raises NameServerError if none responds within the remaining time.
        """
        request = plain_request(self._config, GET_ROUTE, {"topic": topic})
        problems: list[str] = []
        hint = ""
        for left in range(len(self.namesrvs), 0, -1):
            now = self._now()
            # each NameServer gets an equal share of what is left, so that the last one is asked
            share = min((deadline - now) // left, self._config.api_timeout_ms * MS)
            if share <= 0:
                break
            try:
                invoke = yield from self._channels.ask(
                    Invoke(self.namesrv, request, now + share, True)
                )
            except TransportError as error:
                problems.append(error.reason)
                hint = error.hint
            else:
                assert invoke.command is not None
                code = invoke.command.code
                if code == 0 or code == TOPIC_NOT_EXIST:
                    return invoke
                rejection = BrokerError(code, invoke.command.remark)
                problems.append(f"{self.namesrv} responded {rejection.reason}")
            place = self.namesrvs.index(self.namesrv)
            self.namesrv = self.namesrvs[(place + 1) % len(self.namesrvs)]
        raise NameServerError(
            "; ".join(problems) or "the timeout passed before a NameServer was asked", hint
        )

    def _keep(self, route: Route) -> PublishTable:
        """Store a route; an unchanged one keeps the round-robin index."""
        # brokers that this route lost may be in another: drop_offline decides
        self._brokers.update(route.addresses)
        table = self._tables.get(route.topic)
        if table is None or table.route != route:
            # queues that the fault strategy renamed (up to 5.1.3) stay so until the route changes
            table = self._tables[route.topic] = PublishTable(route)
        self.on_route()
        return table

    def refresh(self) -> Steps[None]:
        """Query the routes of all topics in use; keep the old one if a query fails."""
        for topic in list(self._tables):
            deadline = self._now() + self._config.api_timeout_ms * MS
            try:
                route = yield from self._ask_route(topic, topic, deadline, None)
            except ClientError:
                continue
            if route is not None and topic in self._tables:
                self._keep(route)

    # -- masters --------------------------------------------------------------------------------

    def masters(self) -> list[str]:
        """Return the addresses of all masters."""
        return [table[MASTER] for table in self._brokers.values() if MASTER in table]

    def drop_offline(self) -> None:
        """Forget brokers that are no longer in any route."""
        named = {name for table in self._tables.values() for name in table.route.addresses}
        for name in [name for name in self._brokers if name not in named]:
            del self._brokers[name]

    def is_used(self, address: str) -> bool:
        """Return whether an address is a NameServer's or in a route, VIP ports included."""
        if address in self.namesrvs:
            return True
        every = (known for table in self._brokers.values() for known in table.values())
        return any(address in (known, vip_address(known)) for known in every)


def vip_address(address: str) -> str:
    """Return the VIP address of a broker: its port minus two."""
    parts = split_endpoint(address)
    if parts is None or parts[1] <= 2:
        return address
    return f"{address.rpartition(':')[0]}:{parts[1] - 2}"
