"""A topic's route: its writable queues and the addresses of their brokers.

A route comes from a NameServer (TopicRouteData); a `PublishTable` is the producer's view of it,
with the round-robin index. Invalid data from a NameServer never raises: unusable entries are left
out, and a body that is not a route gives None.
RocketMQ: TopicRouteData, MQClientInstance.topicRouteData2TopicPublishInfo, TopicPublishInfo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissectors.endpoint import split_endpoint
from dissectors.foreign import natural_of
from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.codes import RequestCode

from ..fault import QueueIndex
from ..message import MessageQueue

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
        perm, writes = _number(row, "perm"), _number(row, "writeQueueNums")
        if most_queues is not None:
            # as Java: a topic that a send creates gets as many queues as the template has to read
            writes = min(most_queues, _number(row, "readQueueNums"))
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
        epoch, total = _number(info, "epoch"), _number(info, "totalQueues")
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
        name, perm = _member(row, "brokerName"), _number(row, "perm")
        if not isinstance(name, str):
            continue
        reads = min(max(_number(row, "readQueueNums"), 0), left) if perm & READ else 0
        left -= reads
        route.queues[name] = reads
        route.write_queues[name] = max(_number(row, "writeQueueNums"), 0) if perm & WRITE else 0
        route.permissions[name] = perm
    return route._replace(is_static=bool(value.get("topicQueueMappingByBroker")))


def _member(row: object, name: str) -> object:
    return row.get(name) if isinstance(row, dict) else None


def _number(row: object, name: str) -> int:
    value = _member(row, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
