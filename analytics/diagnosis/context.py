"""Knowledge from all rows: names, clients, routes, and capture quality.

Folds receive the context when they build their cases. Rules: everything is bounded; contexts of
partial inputs can be merged, so they can be built on several machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dissectors.broker_store.evidence import StoreEvidence
from dissectors.endpoint import host_of
from dissectors.findings import Finding, FindingKind
from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.heartbeats import consumers_in, starts_in
from dissectors.remoting.row_facts.names import ENDPOINT, GROUP, facts_in
from dissectors.remoting.row_facts.routes import MASTER_ID, RoutedBroker
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows import conversation_record as tcp
from dissectors.rows.broker_names import NAMING_CODES, BrokerNames
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ORPHAN, UNANSWERED, ExchangeRecord
from dissectors.rows.relays import Relay

from .answered_routes import answered_route, latest_routes
from .keys import HEARTBEAT, ROUTE, SUCCESS, Add, Flow, keep, keep_least, keep_most, state_in

MAX_NAMES: Final = 20_000
"""maximum number of named addresses, clients, and topics"""
BROADCASTING: Final = "BROADCASTING"
"""MessageModel of groups whose members each get every message"""
CLUSTERING: Final = "CLUSTERING"
"""MessageModel of groups whose members share the queues"""
MAX_SEATS: Final = 64
"""maximum addresses of one broker name"""
ACTIVELY: Final = "CONSUME_ACTIVELY"
"""ConsumeType of pull consumers"""
BROKER: Final = "broker"
NAMESRV: Final = "namesrv"
PROXY: Final = "proxy"
ROLES: Final = (PROXY, NAMESRV, BROKER)
"""if an address shows two roles, the later one in this list counts"""
_NO_TOPIC: Final = int(ResponseCode.TOPIC_NOT_EXIST)
_TO_NAMESRV: Final = frozenset(
    (int(RequestCode.REGISTER_BROKER), int(RequestCode.GET_BROKER_CLUSTER_INFO))
)
_UNREGISTER: Final = int(RequestCode.UNREGISTER_BROKER)
_BATCH_ACK: Final = int(RequestCode.BATCH_ACK_MESSAGE)
_LOCK: Final = int(RequestCode.LOCK_BATCH_MQ)

GROUPS: Final = frozenset(
    (
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    )
)
"""requests that prove consumer groups"""
TRANSACTIONS: Final = frozenset(
    (int(RequestCode.END_TRANSACTION), int(RequestCode.CHECK_TRANSACTION_STATE))
)
"""requests that prove transactions"""
CALLS_OF_CLIENTS: Final = frozenset(
    (
        "QueryRoute",
        "QueryAssignment",
        "Heartbeat",
        "SendMessage",
        "ReceiveMessage",
        "AckMessage",
        "EndTransaction",
        "ForwardMessageToDeadLetterQueue",
    )
)
"""gRPC calls of clients; a proxy's own calls have other purposes"""


class Need(StrEnum):
    """A kind of traffic that a rule needs in a capture."""

    ROUTES = "NameServer responses"
    SENDS = "producer sends"
    PULLS = "consumer pulls or pops"
    HEARTBEATS = "client heartbeats"
    CONNECTIONS = "TCP connections"
    HANDSHAKES = "TCP handshakes"
    GROUPS = "consumer group requests"
    TRANSACTIONS = "transactional messages"


NEEDS_OF_CALLS: Final = {
    "SendMessage": (Need.SENDS,),
    "ReceiveMessage": (Need.PULLS, Need.GROUPS),
    "Heartbeat": (Need.HEARTBEATS,),
    "EndTransaction": (Need.TRANSACTIONS,),
}
"""kinds of traffic that gRPC calls show, for rules that cover them"""
BY_REMOTING: Final = frozenset(
    (Need.ROUTES, Need.SENDS, Need.PULLS, Need.HEARTBEATS, Need.GROUPS, Need.TRANSACTIONS)
)
"""kinds of traffic that gRPC calls do not show"""


@dataclass(slots=True)
class Quality:
    """Known gaps of the capture."""

    connections: int = 0
    midstream: int = 0
    """connections whose beginning was not captured"""
    one_sided: set[str] = field(default_factory=set)
    """connections with packets of one side only, as `capture:conversation`"""
    unpaired: set[str] = field(default_factory=set)
    """connections that have requests without a response, or responses without a request"""
    with_gaps: int = 0
    """connections with bytes that were not captured"""
    truncated: int = 0
    """capture files that end within a packet"""
    damaged: int = 0
    """findings of packets cut by the snap length, damaged files, limits"""

    @property
    def one_direction(self) -> int:
        """Connections with one side captured; a oneway request needs no response."""
        # One side alone is no loss: brokers of 4.x register oneway, without any response.
        return len(self.one_sided & self.unpaired)

    def reasons(self) -> list[str]:
        """Return why the capture is incomplete; empty if it is complete."""
        reasons = []
        if self.with_gaps:
            reasons.append(f"bytes are missing in {counted(self.with_gaps, 'connection')}")
        if self.one_direction:
            reasons.append(
                f"one direction of {counted(self.one_direction, 'connection')} was not captured"
            )
        if self.damaged:
            reasons.append("packets were cut or lost")
        return reasons


_DAMAGE: Final = frozenset(
    (
        FindingKind.CAPTURE_DAMAGED,
        FindingKind.PACKET_TRUNCATED,
        FindingKind.FRAGMENT_LOST,
        FindingKind.PAIRING_LIMIT,
        FindingKind.CONVERSATION_LIMIT,
        FindingKind.REASSEMBLY_LIMIT,
        FindingKind.BAD_FRAME,
    )
)


_UNPAIRED: Final = frozenset((UNANSWERED, ORPHAN))


def _remember(places: set[str], row: ExchangeRecord | ConversationRecord) -> None:
    keep(places, f"{row.capture}:{row.conversation}", MAX_NAMES)


_SETS: Final = (
    *("needs", "called", "relays", "sent", "pulling", "clustering", "broadcasting", "orderly"),
    *("endpoints", "new_groups", "routers"),
)
"""fields of `Context` that are sets"""


@dataclass(slots=True)
class Context:
    """Knowledge about the capture beyond the rows of one fold."""

    broker_names: BrokerNames = field(default_factory=BrokerNames)
    """broker names by address"""
    clients: dict[str, str] = field(default_factory=dict)
    """`address:port` of a client -> its client id"""
    routes: dict[str, list[RoutedBroker]] = field(default_factory=dict)
    """topic -> brokers of its latest route"""
    route_times: dict[str, int] = field(default_factory=dict)
    """topic -> time of that route in ns"""
    servers: dict[str, str] = field(default_factory=dict)
    """`address:port` of a server -> its role: `namesrv`, `broker`, or `proxy` (gRPC)"""
    routers: set[str] = field(default_factory=set)
    """`address:port` of the servers that answer route requests: NameServers and proxies"""
    ranks: dict[str, tuple[int, str]] = field(default_factory=dict)
    """broker address -> time of the latest route with it, and its broker id in that route"""
    seats: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """broker name -> its addresses -> first and last time in a NameServer's route, ns"""
    sent: set[str] = field(default_factory=set)
    """topics of sent messages"""
    pulling: set[str] = field(default_factory=set)
    """groups of pull consumers, whose application chooses its offsets"""
    clustering: set[str] = field(default_factory=set)
    """groups whose members share the queues, from their heartbeats"""
    broadcasting: set[str] = field(default_factory=set)
    """groups whose members each get every message, from their heartbeats"""
    endpoints: set[str] = field(default_factory=set)
    """addresses in routes of proxies"""
    orderly: set[str] = field(default_factory=set)
    """groups whose members lock their queues"""
    starts: dict[str, str] = field(default_factory=dict)
    """group -> its start position if it has no offset, from its heartbeats"""
    new_groups: set[str] = field(default_factory=set)
    """groups whose retry topic had no route: they did not run before"""
    left: dict[str, set[int]] = field(default_factory=dict)
    """broker name -> times at which it unregistered, as on an orderly shutdown; ns"""
    relays: set[Relay] = field(default_factory=set)
    """relays proved by sends captured on both sides"""
    batch_acks: bool = False
    """POP messages were acknowledged in batches, which name no group"""
    needs: set[Need] = field(default_factory=set)
    """kinds of traffic in the capture"""
    called: set[Need] = field(default_factory=set)
    """kinds of traffic in gRPC calls, for rules that cover them"""
    quality: Quality = field(default_factory=Quality)
    watched: bool = False
    """pending exchanges were reported during the capture"""
    store: StoreEvidence | None = None
    """copies of broker stores for message lookups; None: no copies"""
    exchanges: int = 0
    first_time: int | None = None
    """ns; None: no exchanges"""
    last_row_time: int | None = None
    """ns; None: no exchanges"""
    now: int = 0
    """ns, time of the last captured packet; 0: the capture has ended, so only rows count"""
    _hosts: set[str] = field(default_factory=set, compare=False)
    _hosts_of: int = field(default=0, compare=False)
    """number of servers from which `_hosts` was made"""

    @property
    def last_time(self) -> int | None:
        """Return the end of the observed period, in ns; None: no exchanges."""
        return None if self.last_row_time is None else max(self.last_row_time, self.now)

    @property
    def goes_on(self) -> bool:
        """Return whether the capture is still running."""
        return self.now > 0

    @property
    def names(self) -> Mapping[str, str]:
        """Broker names by address."""
        return self.broker_names.names()

    def broker(self, address: str) -> str:
        """Return the name of the broker at an address, or the address if unknown."""
        return self.broker_names.of(address)

    def is_proxy(self, address: str) -> bool:
        """Return whether the server at an address speaks gRPC and is not a broker."""
        return self.servers.get(address) == PROXY

    def server_hosts(self) -> set[str]:
        """Return the hosts of the servers."""
        # Asked for each of many producers. No server is ever removed.
        if len(self.servers) != self._hosts_of:
            self._hosts, self._hosts_of = set(map(host_of, self.servers)), len(self.servers)
        return self._hosts

    def server(self, address: str) -> str:
        """Return the name of the broker at an address; for other servers the address."""
        return f"proxy {address}" if self.is_proxy(address) else self.broker(address)

    def refuser(self, address: str) -> str:
        """Return the server that refused a request: a broker, or a broker behind the proxy."""
        proxied = self.is_proxy(address)
        return f"a broker behind proxy {address}" if proxied else self.broker(address)

    def own_address(self, address: str) -> str:
        """Return the broker's main address for the address of its VIP channel."""
        return self.broker_names.own_address(address)

    def names_of_ports(self) -> dict[str, str]:
        """Return broker names by address, including VIP channels."""
        return self.broker_names.names_with_vip()

    def client(self, endpoint: str) -> str:
        """Return the client id at `address:port`, or the address without port if unknown."""
        return self.clients.get(endpoint) or host_of(endpoint)

    def slave_id(self, address: str) -> str | None:
        """Return the broker id of the slave at an address; None for masters and unknown brokers."""
        rank = self.ranks.get(address, (0, MASTER_ID))[1]
        return rank if rank != MASTER_ID else None

    def is_broker(self, address: str) -> bool:
        """Return whether routes name an address, and it is no proxy, which names itself."""
        return address in self.ranks and address not in self.routers

    def is_master(self, address: str) -> bool:
        """Return whether an address is that of a broker, and of a master in its latest route."""
        return self.is_broker(address) and self.ranks[address][1] == MASTER_ID

    def moved(self, address: str, since: int) -> tuple[str, int] | None:
        """Return the new address of a broker that left `address` after `since`, and the time.

        None if no NameServer reports a move, as for a stopped broker or one whose slave took over.
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
            key=lambda item: (item[1], item[0]),
            default=None,
        )

    def brokers_of(self, topic: str | None) -> list[RoutedBroker]:
        """Return the brokers in the latest route of a topic; empty if no route was captured."""
        return self.routes.get(topic, []) if topic is not None else []

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add one exchange."""
        self.learn(row)
        if row.status in _UNPAIRED:
            _remember(self.quality.unpaired, row)

    def learn(self, row: ExchangeRecord) -> None:
        """Add the names in an exchange, which may be pending."""
        code = row.request_code
        self.broker_names.add_exchange(row)
        if code == ROUTE:
            self.needs.add(Need.ROUTES)
            keep(self.routers, row.server_address, MAX_NAMES)
            self._server(row.server_address, NAMESRV)
            if row.response_code == SUCCESS:
                self._take_route(row)
            elif row.response_code == _NO_TOPIC and (topic := row.topic or "").startswith(
                RETRY_PREFIX
            ):
                # The broker creates it at the first heartbeat of a group: 17 is normal until then.
                keep(self.new_groups, topic.removeprefix(RETRY_PREFIX), MAX_NAMES)
        elif code == HEARTBEAT:
            self.needs.add(Need.HEARTBEATS)
            if row.client_id:
                self._client(row.client_address, row.client_id)
            for group in consumers_in(row.facts):
                if group.type == ACTIVELY:
                    keep(self.pulling, group.name, MAX_NAMES)
                if group.model == CLUSTERING:
                    keep(self.clustering, group.name, MAX_NAMES)
                if group.model == BROADCASTING:
                    keep(self.broadcasting, group.name, MAX_NAMES)
            for name, where in starts_in(row.facts).items():
                self._start(name, where)
            self._server(row.server_address, BROKER)
        elif code in SENDS:
            self.needs.add(Need.SENDS)
            if row.topic is not None:
                keep(self.sent, row.topic, MAX_NAMES)
            self._server(row.server_address, BROKER)
        elif code in FETCHES:
            self.needs.add(Need.PULLS)
            self._server(row.server_address, BROKER)
        elif code == _BATCH_ACK:
            self.batch_acks = True
        elif code in GROUPS:
            self.needs.add(Need.GROUPS)
            if code == _LOCK and len(self.orderly) < MAX_NAMES:
                self.orderly.update(facts_in(row.facts, GROUP))
        elif code in TRANSACTIONS:
            self.needs.add(Need.TRANSACTIONS)
        elif code in _TO_NAMESRV:
            self._server(row.server_address, NAMESRV)
        elif code == _UNREGISTER and row.broker_name and row.request_time is not None:
            self._left(row.broker_name, row.request_time)
        elif code is None and row.request_name in CALLS_OF_CLIENTS:
            self._server(row.server_address, PROXY)
            if row.request_name == "QueryRoute" and len(self.endpoints) < MAX_NAMES:
                self.endpoints.update(facts_in(row.facts, ENDPOINT))
            self.called.update(NEEDS_OF_CALLS.get(row.request_name, ()))
            if row.client_id:
                self._client(row.client_address, row.client_id)
        if row.brokers:
            time = row.response_time if row.response_time is not None else row.request_time or 0
            for name, address in answered_route(row).named:
                self._seat(name, address, time, time)

    def adder_of(self, flow: Flow) -> Add | None:
        """Return the function for further exchanges of a flow; None if they add nothing new."""
        # Facts may name something new, and unpaired rows count for the quality of the capture.
        if not flow.plain or flow.status in _UNPAIRED:
            return self._add_exchanges
        return self._name_by_uses if flow.request_code in NAMING_CODES else None

    def _add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in latest_routes(rows):
            self.add_exchange(row)

    def _name_by_uses(self, rows: Sequence[ExchangeRecord]) -> None:
        """Count the broker names in exchanges of one flow."""
        # A refused request may name another broker, so a name from a served one takes precedence.
        served = rows[0].response_code == SUCCESS
        for name, count in Counter([row.broker_name for row in rows]).items():
            if name:
                self.broker_names.add_requested(rows[0].server_address, name, count, served)

    def add_span(self, rows: Sequence[ExchangeRecord]) -> None:
        """Extend the observed period by these exchanges."""
        times = [row.request_time for row in rows if row.request_time is not None]
        times += [row.response_time for row in rows if row.response_time is not None]
        if times:
            self.add_times(min(times), max(times), len(rows))

    def add_times(self, first: int, last: int, count: int) -> None:
        """Extend the observed period, in ns."""
        self.exchanges += count
        if self.first_time is None or first < self.first_time:
            self.first_time = first
        if self.last_row_time is None or last > self.last_row_time:
            self.last_row_time = last

    def add_connection(self, row: ConversationRecord) -> None:
        """Add one connection."""
        self.note_connection(row)
        quality = self.quality
        quality.connections += 1
        if row.start == tcp.MIDSTREAM:
            quality.midstream += 1
        # A gap in another protocol hides no RocketMQ traffic.
        if row.gaps and (row.commands or row.protocol == "unknown"):
            quality.with_gaps += 1
        if row.commands and row.directions != tcp.BOTH:
            _remember(quality.one_sided, row)

    def note_connection(self, row: ConversationRecord) -> None:
        """Record that connections are available; this one may still be open."""
        self.needs.add(Need.CONNECTIONS)
        if row.start != tcp.MIDSTREAM:
            self.needs.add(Need.HANDSHAKES)

    def add_finding(self, info: Finding) -> None:
        """Add a capture finding."""
        if info.kind is FindingKind.CAPTURE_TRUNCATED:
            self.quality.truncated += 1
        if info.kind in _DAMAGE:
            self.quality.damaged += 1

    def merge(self, other: Context) -> None:
        """Merge the context of other rows."""
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
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        self.batch_acks |= other.batch_acks
        for group, where in other.starts.items():
            self._start(group, where)
        for part in ("connections", "midstream", "with_gaps", "truncated", "damaged"):
            setattr(self.quality, part, getattr(self.quality, part) + getattr(other.quality, part))
        self.quality.one_sided |= other.quality.one_sided
        self.quality.unpaired |= other.quality.unpaired
        if other.first_time is not None and other.last_row_time is not None:
            self.add_times(other.first_time, other.last_row_time, other.exchanges)

    def _take_route(self, row: ExchangeRecord) -> None:
        topic, time, route = row.topic, row.response_time or 0, answered_route(row)
        if topic is not None and time >= self.route_times.get(topic, -1):
            self._route(topic, route.brokers, time)
        for address in route.addresses:
            self._rank(address, (time, route.slaves.get(address, MASTER_ID)))

    def _route(self, topic: str, brokers: list[RoutedBroker], time: int) -> None:
        """Keep the later route; resolve ties independently of the order."""
        known = self.routes.get(topic)
        if known is None:
            if len(self.routes) >= MAX_NAMES:
                return
        else:
            before = self.route_times[topic]
            # Any fixed order does for a tie; that of the rows would differ from run to run.
            if time < before or (time == before and repr(brokers) <= repr(known)):
                return
        self.routes[topic] = brokers
        self.route_times[topic] = time

    def _start(self, group: str, where: str) -> None:
        """Keep the start position of a group; resolve conflicts independently of the order."""
        keep_least(self.starts, group, where, MAX_NAMES)

    def _left(self, name: str, time: int) -> None:
        if sum(map(len, self.left.values())) < MAX_NAMES:
            self.left.setdefault(name, set()).add(time)

    def _seat(self, name: str, address: str, first: int, last: int) -> None:
        seats = state_in(self.seats, name, dict, MAX_NAMES)
        if seats is None:
            return
        known = seats.get(address)
        if known is not None:
            seats[address] = min(first, known[0]), max(last, known[1])
        elif len(seats) < MAX_SEATS:
            seats[address] = first, last

    def _rank(self, address: str, rank: tuple[int, str]) -> None:
        # The largest: the latest route counts, and the order of rows does not.
        keep_most(self.ranks, address, rank, MAX_NAMES)

    def _client(self, endpoint: str, client: str) -> None:
        # The smallest of several ids: the order of rows does not matter.
        keep_least(self.clients, endpoint, client, MAX_NAMES)

    def _server(self, endpoint: str, role: str) -> None:
        """Record a server's role; one that serves messages and routes, as a proxy, is a broker."""
        if endpoint in self.servers:
            if ROLES.index(role) > ROLES.index(self.servers[endpoint]):
                self.servers[endpoint] = role
        elif len(self.servers) < MAX_NAMES:
            self.servers[endpoint] = role
