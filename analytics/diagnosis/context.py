"""What all rows together say: names, clients, routes, and how whole the capture is.

Folds are given it when they are asked for their cases. Rules: everything is bounded; two contexts
of parts of the rows can be merged, so that it may be made on several machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.endpoint import host_of
from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.heartbeats import consumers_in, starts_in
from dissectors.remoting.row_facts.names import CLIENT, fact_in
from dissectors.remoting.row_facts.routes import MASTER_ID, RoutedBroker
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows import conversation_record as tcp
from dissectors.rows.broker_names import NAMING_CODES, BrokerNames
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ORPHAN, UNANSWERED, ExchangeRecord

from .answered_routes import answered_route, latest_routes
from .keys import Add, Flow
from .need import CALLS_OF_CLIENTS, GROUPS, NEEDS_OF_CALLS, TRANSACTIONS, Need

MAX_NAMES: Final = 20_000
"""addresses, clients, topics that are named"""
BROADCASTING: Final = "BROADCASTING"
"""MessageModel of groups of which each member gets every message"""
CLUSTERING: Final = "CLUSTERING"
"""MessageModel of groups whose members share out the queues"""
MAX_SEATS: Final = 64
"""addresses of one broker name"""
ACTIVELY: Final = "CONSUME_ACTIVELY"
"""ConsumeType of pull consumers"""
BROKER: Final = "broker"
NAMESRV: Final = "namesrv"
PROXY: Final = "proxy"
ROLES: Final = (PROXY, NAMESRV, BROKER)
"""of two that an address shows the last one counts"""
ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
HEARTBEAT: Final = int(RequestCode.HEART_BEAT)
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_NO_TOPIC: Final = int(ResponseCode.TOPIC_NOT_EXIST)
_TO_NAMESRV: Final = frozenset(
    (int(RequestCode.REGISTER_BROKER), int(RequestCode.GET_BROKER_CLUSTER_INFO))
)
_UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)
_BATCH_ACK: Final = int(RequestCode.BATCH_ACK_MESSAGE)


@dataclass(slots=True)
class Quality:
    """What the capture could not show."""

    connections: int = 0
    midstream: int = 0
    """connections whose beginning was not captured"""
    one_sided: set[str] = field(default_factory=set)
    """connections of which packets of one side only were seen, as `capture:conversation`"""
    unpaired: set[str] = field(default_factory=set)
    """those with requests that have no answer, or answers without a request"""
    with_gaps: int = 0
    """connections with bytes that were not captured"""
    truncated: int = 0
    """capture files that end inside a packet"""
    damaged: int = 0
    """findings of packets cut by the snap length, damaged files, limits"""

    @property
    def one_direction(self) -> int:
        """Connections of which one side was not captured; a one-way request needs no answer."""
        return len(self.one_sided & self.unpaired)

    def reasons(self) -> list[str]:
        """Return why the capture is not whole; empty where it is."""
        said = []
        if self.with_gaps:
            said.append(f"bytes are missing in {_counted(self.with_gaps)}")
        if self.one_direction:
            said.append(f"one direction of {_counted(self.one_direction)} was not captured")
        if self.damaged:
            said.append("packets were cut or lost")
        return said


_DAMAGE: Final = frozenset(
    (
        ExpertKind.CAPTURE_DAMAGED,
        ExpertKind.PACKET_TRUNCATED,
        ExpertKind.FRAGMENT_LOST,
        ExpertKind.PAIRING_LIMIT,
        ExpertKind.CONVERSATION_LIMIT,
        ExpertKind.REASSEMBLY_LIMIT,
        ExpertKind.BAD_FRAME,
    )
)


def _counted(connections: int) -> str:
    return f"{connections:,} connection{'' if connections == 1 else 's'}"


_UNPAIRED: Final = frozenset((UNANSWERED, ORPHAN))


def _remember(places: set[str], row: ExchangeRecord | ConversationRecord) -> None:
    if len(places) < MAX_NAMES:
        places.add(f"{row.capture}:{row.conversation}")


@dataclass(slots=True)
class Context:
    """What is known besides the rows of one fold."""

    broker_names: BrokerNames = field(default_factory=BrokerNames)
    """names of brokers by address"""
    clients: dict[str, str] = field(default_factory=dict)
    """`address:port` of a client -> its client id"""
    routes: dict[str, list[RoutedBroker]] = field(default_factory=dict)
    """topic -> brokers of its last route"""
    route_times: dict[str, int] = field(default_factory=dict)
    """topic -> time of that route, ns"""
    servers: dict[str, str] = field(default_factory=dict)
    """`address:port` that answered as a server -> `namesrv`, `broker`, or of gRPC `proxy`"""
    ranks: dict[str, tuple[int, str]] = field(default_factory=dict)
    """address of a broker -> time of the last route that names it, and the broker's id there"""
    seats: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """name of a broker -> its addresses -> when a NameServer said so first and last, ns"""
    sent: set[str] = field(default_factory=set)
    """topics that messages were sent to"""
    pulling: set[str] = field(default_factory=set)
    """groups of pull consumers, whose program says itself at which offset it goes on"""
    clustering: set[str] = field(default_factory=set)
    """groups whose members share out the queues, by their heartbeats"""
    broadcasting: set[str] = field(default_factory=set)
    """groups of which each member gets every message, by their heartbeats"""
    starts: dict[str, str] = field(default_factory=dict)
    """group -> where it starts without an offset, by its heartbeats"""
    new_groups: set[str] = field(default_factory=set)
    """groups whose retry topic had no route: they did not run before"""
    left: dict[str, set[int]] = field(default_factory=dict)
    """name of a broker -> times at which it took itself out of the routes, as one that is shut down
    does; ns"""
    batch_acks: bool = False
    """messages of POP were acknowledged together, which names no group"""
    needs: set[Need] = field(default_factory=set)
    """what the capture has"""
    called: set[Need] = field(default_factory=set)
    """what it has by gRPC, for rules that cover it"""
    quality: Quality = field(default_factory=Quality)
    watched: bool = False
    """what was not settled was given while the capture went on"""
    goes_on: bool = False
    """the capture goes on"""
    exchanges: int = 0
    first_time: int | None = None
    """ns; None: nothing was seen"""
    last_time: int | None = None

    @property
    def names(self) -> Mapping[str, str]:
        """Address of a broker -> its name."""
        return self.broker_names.names()

    def broker(self, address: str) -> str:
        """Return the name of the broker at an address, else the address."""
        return self.broker_names.of(address)

    def is_proxy(self, address: str) -> bool:
        """Return whether what answers at an address speaks gRPC and is no broker."""
        return self.servers.get(address) == PROXY

    def refuser(self, address: str) -> str:
        """Return who refused a request: the broker, or one behind the proxy that says so."""
        proxied = self.is_proxy(address)
        return f"a broker behind proxy {address}" if proxied else self.broker(address)

    def own_address(self, address: str) -> str:
        """Return the address that a broker is known by, where this is its VIP channel."""
        return self.broker_names.own_address(address)

    def names_of_ports(self) -> dict[str, str]:
        """Return address -> name of the broker, VIP channels included."""
        return self.broker_names.names_with_vip()

    def client(self, endpoint: str) -> str:
        """Return the id of the client at `address:port`, else its address without port."""
        return self.clients.get(endpoint) or host_of(endpoint)

    def slave_id(self, address: str) -> str | None:
        """Return the id of the slave at an address; None for a master and where none is known."""
        rank = self.ranks.get(address, (0, MASTER_ID))[1]
        return rank if rank != MASTER_ID else None

    def moved(self, address: str, since: int) -> tuple[str, int] | None:
        """Return where the broker that was at an address appeared after a time, and when.

        None where no NameServer says so, as of a broker that is gone or whose slave took over.
        """
        own = self.own_address(address)
        seats = self.seats.get(self.names.get(own, ""), {})
        until = seats.get(own, (0, 0))[1]
        rank = self.slave_id(own)
        return min(
            (
                (other, first)
                for other, (first, last) in seats.items()
                if other != own and first > since and last > until and self.slave_id(other) == rank
            ),
            key=lambda one: (one[1], one[0]),
            default=None,
        )

    def brokers_of(self, topic: str | None) -> list[RoutedBroker]:
        """Return the brokers of a topic by its last route; empty where none was seen."""
        return self.routes.get(topic, []) if topic is not None else []

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take what one exchange says."""
        self.learn(row)
        if row.status in _UNPAIRED:
            _remember(self.quality.unpaired, row)

    def learn(self, row: ExchangeRecord) -> None:
        """Take the names in an exchange, which may not be settled."""
        code = row.request_code
        if code in NAMING_CODES and row.broker_name:
            served = row.response_code == _SUCCESS
            self.broker_names.add_asked(row.responder, row.broker_name, served=served)
        if code == ROUTE:
            self.needs.add(Need.ROUTES)
            self._server(row.responder, NAMESRV)
            if row.response_code == _SUCCESS:
                self._take_route(row)
            elif row.response_code == _NO_TOPIC and len(self.new_groups) < MAX_NAMES:
                topic = row.topic or ""
                if topic.startswith(RETRY_PREFIX):
                    self.new_groups.add(topic.removeprefix(RETRY_PREFIX))
        elif code == HEARTBEAT:
            self.needs.add(Need.HEARTBEATS)
            client = fact_in(row.facts, CLIENT)
            if client:
                self._client(row.requester, client)
            for group in consumers_in(row.facts):
                if group.type == ACTIVELY and len(self.pulling) < MAX_NAMES:
                    self.pulling.add(group.name)
                if group.model == CLUSTERING and len(self.clustering) < MAX_NAMES:
                    self.clustering.add(group.name)
                if group.model == BROADCASTING and len(self.broadcasting) < MAX_NAMES:
                    self.broadcasting.add(group.name)
            for name, where in starts_in(row.facts).items():
                self._start(name, where)
            self._server(row.responder, BROKER)
        elif code in SENDS:
            self.needs.add(Need.SENDS)
            if row.topic is not None and len(self.sent) < MAX_NAMES:
                self.sent.add(row.topic)
            self._server(row.responder, BROKER)
        elif code in FETCHES:
            self.needs.add(Need.PULLS)
            self._server(row.responder, BROKER)
        elif code == _BATCH_ACK:
            self.batch_acks = True
        elif code in GROUPS:
            self.needs.add(Need.GROUPS)
        elif code in TRANSACTIONS:
            self.needs.add(Need.TRANSACTIONS)
        elif code in _TO_NAMESRV:
            self._server(row.responder, NAMESRV)
        elif code == _UNREGISTER and row.broker_name and row.request_time is not None:
            self._left(row.broker_name, row.request_time)
        elif code is None and row.request_name in CALLS_OF_CLIENTS:
            self._server(row.responder, PROXY)
            self.called.update(NEEDS_OF_CALLS.get(row.request_name, ()))
            if client := fact_in(row.facts, CLIENT):
                self._client(row.requester, client)
        if row.brokers:
            self.broker_names.add_routed(row.brokers)
            time = row.response_time if row.response_time is not None else row.request_time or 0
            for name, address in answered_route(row).named:
                self._seat(name, address, time, time)

    def adder_of(self, flow: Flow) -> Add | None:
        """Return what takes further exchanges of a flow; None: they say what the first one did."""
        if not flow.plain or flow.status in _UNPAIRED:
            return self._add_exchanges
        return self._name_by_uses if flow.request_code in NAMING_CODES else None

    def _add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in latest_routes(rows):
            self.add_exchange(row)

    def _name_by_uses(self, rows: Sequence[ExchangeRecord]) -> None:
        """Count the names that exchanges of one flow carry."""
        served = rows[0].response_code == _SUCCESS
        for name, count in Counter([row.broker_name for row in rows]).items():
            if name:
                self.broker_names.add_asked(rows[0].responder, name, count, served)

    def add_span(self, rows: Sequence[ExchangeRecord]) -> None:
        """Note from when to when these exchanges were seen."""
        times = [row.request_time for row in rows if row.request_time is not None]
        times += [row.response_time for row in rows if row.response_time is not None]
        if times:
            self.add_times(min(times), max(times), len(rows))

    def add_times(self, first: int, last: int, count: int) -> None:
        """Note from when to when exchanges were seen, in ns."""
        self.exchanges += count
        if self.first_time is None or first < self.first_time:
            self.first_time = first
        if self.last_time is None or last > self.last_time:
            self.last_time = last

    def add_connection(self, row: ConversationRecord) -> None:
        """Take what one connection says."""
        self.note_connection(row)
        quality = self.quality
        quality.connections += 1
        if row.start == tcp.MIDSTREAM:
            quality.midstream += 1
        if row.gaps and (row.commands or row.protocol == "unknown"):
            quality.with_gaps += 1
        if row.commands and row.directions != tcp.BOTH:
            _remember(quality.one_sided, row)

    def note_connection(self, row: ConversationRecord) -> None:
        """Note that there are rows of connections; this one may not have ended."""
        self.needs.add(Need.CONNECTIONS)
        if row.start != tcp.MIDSTREAM:
            self.needs.add(Need.HANDSHAKES)

    def add_finding(self, info: ExpertInfo) -> None:
        """Take a finding about the input."""
        if info.kind is ExpertKind.CAPTURE_TRUNCATED:
            self.quality.truncated += 1
        if info.kind in _DAMAGE:
            self.quality.damaged += 1

    def merge(self, other: Context) -> None:
        """Add what was seen of other rows."""
        self.broker_names.merge(other.broker_names)
        for endpoint, client in other.clients.items():
            self._client(endpoint, client)
        for endpoint, role in other.servers.items():
            self._server(endpoint, role)
        for address, rank in other.ranks.items():
            self._rank(address, rank)
        for name, seats in other.seats.items():
            for address, (first, last) in seats.items():
                self._seat(name, address, first, last)
        for topic, brokers in other.routes.items():
            self._route(topic, brokers, other.route_times[topic])
        for name, times in other.left.items():
            for time in times:
                self._left(name, time)
        self.needs |= other.needs
        self.called |= other.called
        self.batch_acks |= other.batch_acks
        self.sent |= other.sent
        self.pulling |= other.pulling
        self.clustering |= other.clustering
        self.broadcasting |= other.broadcasting
        self.new_groups |= other.new_groups
        for group, where in other.starts.items():
            self._start(group, where)
        for part in ("connections", "midstream", "with_gaps", "truncated", "damaged"):
            setattr(self.quality, part, getattr(self.quality, part) + getattr(other.quality, part))
        self.quality.one_sided |= other.quality.one_sided
        self.quality.unpaired |= other.quality.unpaired
        if other.first_time is not None and other.last_time is not None:
            self.add_times(other.first_time, other.last_time, other.exchanges)

    def _take_route(self, row: ExchangeRecord) -> None:
        topic, time, route = row.topic, row.response_time or 0, answered_route(row)
        if topic is not None and time >= self.route_times.get(topic, -1):
            self._route(topic, route.brokers, time)
        for address in route.addresses:
            self._rank(address, (time, route.slaves.get(address, MASTER_ID)))

    def _route(self, topic: str, brokers: list[RoutedBroker], time: int) -> None:
        """Keep the later route; of two of one time any, but always the same."""
        known = self.routes.get(topic)
        if known is None:
            if len(self.routes) >= MAX_NAMES:
                return
        else:
            before = self.route_times[topic]
            if time < before or (time == before and repr(brokers) <= repr(known)):
                return
        self.routes[topic] = brokers
        self.route_times[topic] = time

    def _start(self, group: str, where: str) -> None:
        """Keep where a group starts; of members that differ always the same one."""
        before = self.starts.get(group)
        if (where < before) if before is not None else len(self.starts) < MAX_NAMES:
            self.starts[group] = where

    def _left(self, name: str, time: int) -> None:
        if sum(map(len, self.left.values())) < MAX_NAMES:
            self.left.setdefault(name, set()).add(time)

    def _seat(self, name: str, address: str, first: int, last: int) -> None:
        seats = self.seats.get(name)
        if seats is None:
            if len(self.seats) >= MAX_NAMES:
                return
            seats = self.seats[name] = {}
        known = seats.get(address)
        if known is not None:
            seats[address] = min(first, known[0]), max(last, known[1])
        elif len(seats) < MAX_SEATS:
            seats[address] = first, last

    def _rank(self, address: str, rank: tuple[int, str]) -> None:
        before = self.ranks.get(address)
        if (rank > before) if before is not None else len(self.ranks) < MAX_NAMES:
            self.ranks[address] = rank

    def _client(self, endpoint: str, client: str) -> None:
        before = self.clients.get(endpoint)
        if (client < before) if before is not None else len(self.clients) < MAX_NAMES:
            self.clients[endpoint] = client

    def _server(self, endpoint: str, role: str) -> None:
        """Note what answered; what serves messages and routes, as a proxy does, is a broker."""
        if endpoint in self.servers:
            if ROLES.index(role) > ROLES.index(self.servers[endpoint]):
                self.servers[endpoint] = role
        elif len(self.servers) < MAX_NAMES:
            self.servers[endpoint] = role
