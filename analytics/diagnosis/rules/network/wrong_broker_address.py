"""The route has a broker address that clients cannot reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, ip_address, ip_network
from itertools import groupby
from typing import Final

from dissectors.endpoint import host_of
from dissectors.ports import NAMESRV, PROXY
from dissectors.quantities import counted
from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import BROKER, Context, Need
from ...keys import WHOLE, Add, Flow, keep, state_in, whole
from ...names import first_of
from ...outages import failed_connects, never_opened
from ...problem import (
    Case,
    ProblemSeverity,
    Subject,
    Tally,
    end_of,
    shown,
)
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_ADDRESSES: Final = 4096
MAX_FAILED: Final = 64
"""maximum failed connects kept per address"""
DOCKER: Final = ip_network("172.17.0.0/16")
"""Docker's default bridge: the same addresses on every host, reachable only on that host"""
_ADVICE: Final = (
    "Set brokerIP1 in broker.conf to an address that clients can reach (default: one of the host's"
    " addresses), and publish listenPort (10911) and the port two below it under the same"
    " numbers. In Kubernetes, use host networking, or a proxy (5.x) for clients outside."
)
_PROXY_ADVICE: Final = (
    "Set remotingAccessAddr in rmq-proxy.json (cluster mode) to an address that clients can reach"
    " (default: one of its host's addresses), and publish remotingListenPort (default 8080) under"
    " the same number: a proxy sent the route, and names itself in place of the brokers. In local"
    " mode, the route names brokerIP1."
)
LEAST_SYNS: Final = 2
"""a single SYN may be the last packet of the capture"""


@dataclass(slots=True)
class _Address:
    names: set[str] = field(default_factory=set)
    """names of the brokers at the address: a proxy gives its own address for all"""
    clients: set[str] = field(default_factory=set)
    routes: Tally = field(default_factory=Tally)
    servers: set[str] = field(default_factory=set)
    """servers whose response contains it"""

    @property
    def name(self) -> str:
        """The name of the broker; of several the first one."""
        return min(self.names)

    def of_proxy(self, address: str) -> bool:
        """Return whether a proxy responded with its own address."""
        port = f":{PROXY}"
        return (
            len(self.names) > 1
            or address.endswith(port)
            or any(address.endswith(port) for address in self.servers)
        )

    def perhaps_of_proxy(self, address: str) -> bool:
        """Return whether the responding server is on the same host, not on a NameServer port."""
        return all(
            host_of(endpoint) == host_of(address) and not endpoint.endswith(f":{NAMESRV}")
            for endpoint in self.servers
        )


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._named: dict[str, _Address] = {}
        self._failed: dict[str, list[ConversationRecord]] = {}
        self._reached: set[str] = set()
        self._routed: dict[tuple[AnsweredRoute, str, str], list[tuple[str, str, _Address]]] = {}
        """route, requesting host, and server -> names and addresses in it"""

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds routes of one topic to one client."""
        client = host_of(flow.client_address)

        def add(rows: Sequence[ExchangeRecord]) -> None:
            # Clients get equal routes all the time: one look per run of them.
            for route, same in groupby(rows, answered_route):
                entries = self._routed.get((route, client, flow.server_address))
                if entries is None:
                    entries = self._add_route(route, client, flow.server_address)
                several = list(same)
                ends = list(map(end_of, several))
                first, last = min(ends), max(ends)
                for name, address, found in entries:
                    if not found.routes.add_all_late(first, last, len(ends)):
                        _add_routes(found.routes, several, f"{name}{SEPARATOR}{address}")

        return add

    def _add_route(
        self, route: AnsweredRoute, client: str, server: str
    ) -> list[tuple[str, str, _Address]]:
        """Record a route that a host received; return the state of the addresses in it."""
        if len(self._routed) >= REMEMBERED:
            # Only a shortcut: `_named` keeps the state.
            self._routed.clear()
        entries = self._routed[route, client, server] = []
        for name, address in route.named:
            entry = state_in(self._named, address, _Address, MAX_ADDRESSES)
            if entry is None:
                continue
            keep(entry.clients, client, MAX_ADDRESSES)
            keep(entry.servers, server, MAX_ADDRESSES)
            keep(entry.names, name, MAX_ADDRESSES)
            entries.append((name, address, entry))
        return entries

    def add_connection(self, row: ConversationRecord) -> None:
        if never_opened(row):
            failed = state_in(self._failed, row.server_address, list, MAX_ADDRESSES)
            if failed is not None and len(failed) < MAX_FAILED:
                failed.append(row)
        elif row.server_bytes:
            keep(self._reached, row.server_address, MAX_ADDRESSES)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per address that cannot be right."""
        translated = self._translated(context)
        reached = self._reached | {
            row.server_address for row in self.unended if not never_opened(row)
        }
        for address, entry in sorted(self._named.items()):
            if address in reached:
                continue
            now = [row for row in self.unended if row.server_address == address]
            failed = [*self._failed.get(address, []), *now]
            host = host_of(address)
            if not is_ip(host):
                # A client that resolved the name connects to an IP: only the port can show it.
                if not translated and not _has_port(address, (*reached, *self._failed)):
                    yield _unresolved(address, entry)
                continue
            strange = _strange(host, entry.clients)
            syns = sum(row.syns for row in failed)
            # A strange address is wrong even if nobody tried it.
            if not strange and syns < LEAST_SYNS:
                continue
            # Behind NAT, or in captures with anonymized packet headers, every address in a route
            # differs from the one that clients use.
            if not failed and translated:
                continue
            # Others may be kept away by a firewall: they never got this route.
            if not strange and not _tried_by(failed, entry.clients):
                continue
            tally = failed_connects(failed)
            tally.merge(_counted_as_none(entry.routes) if failed else entry.routes)
            attempts = counted(len(failed), "connection attempt")
            how = (
                f"{attempts} to it failed, none succeeded"
                if failed
                else "no connection attempt was captured"
            )
            case = tally.case(
                f"the route names {entry.name} at {address}"
                + (f", {strange}" if strange else "")
                + f": {how}",
                Subject(broker=entry.name),
            )
            case.details = [f"clients that got the route: {first_of(entry.clients)}"]
            if entry.of_proxy(address):
                case.advice = _PROXY_ADVICE
            elif entry.perhaps_of_proxy(address):
                case.advice = f"{_ADVICE} If a proxy gave the route: {_PROXY_ADVICE}"
            if not failed:
                case.doubt("a client on the broker's own host could use that address")
            elif not strange:
                case.doubt("the broker may have been down all the time")
            yield case

    def _translated(self, context: Context) -> bool:
        """Return whether a broker is used at an address that is in no route.

        Then addresses are translated, or were anonymized in packet headers: those in routes differ.
        """
        return any(
            role == BROKER and context.own_address(address) not in self._named
            for address, role in context.servers.items()
        )


def is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _has_port(address: str, others: Iterable[str]) -> bool:
    """Return whether clients use or try the port of an address: its name may resolve to them."""
    port = address.rpartition(":")[2]
    return any(other.rpartition(":")[2] == port for other in others)


def _unresolved(address: str, entry: _Address) -> Case:
    """Return the case of a host name to which no client connected."""
    host = host_of(address)
    case = entry.routes.case(
        f"the route names {entry.name} by a host name, {address}, and no client that"
        " received this route connected to a broker; the clients may be unable to resolve the name",
        Subject(broker=entry.name),
    )
    case.severity = ProblemSeverity.WARNING
    case.doubt("a client may have had no reason to connect, or connected outside the capture")
    case.advice = (
        f"Check that each client resolves {host} (DNS, /etc/hosts), or set brokerIP1 in broker.conf"
        " to an IP address that clients can reach, and restart the broker."
    )
    case.details = [f"clients that got the route: {first_of(entry.clients)}"]
    return case


def _add_routes(routes: Tally, rows: Sequence[ExchangeRecord], named: str) -> None:
    """Count routes with an address."""
    for row in rows:
        if not routes.add_late(end_of(row)):
            routes.add(shown(row, f"the route of {row.topic} names {named}"))


def _counted_as_none(tally: Tally) -> Tally:
    """Return a tally with the same evidence and a count of zero."""
    other = Tally()
    for one in tally.evidence:
        other.add(one, count=0)
    other.count = 0
    return other


def _tried_by(failed: list[ConversationRecord], clients: set[str]) -> bool:
    return any(host_of(row.client_address) in clients for row in failed)


def _strange(host: str, clients: set[str]) -> str | None:
    """Return what is unusual about an address for the clients that received it, or None."""
    try:
        address = ip_address(host)
        others = [ip_address(host) for host in clients]
    except ValueError:
        return None
    if address.is_unspecified:
        return "which is not an address that clients can connect to"
    if address.is_loopback and not any(host.is_loopback for host in others):
        return "which is the loopback of each client's own host"
    if address.is_link_local and not any(host.is_link_local for host in others):
        return "which is valid only on one link"
    bridge: IPv4Network = DOCKER  # type: ignore[assignment]
    if address in bridge and not any(host in bridge for host in others):
        return "which is an address inside Docker on the broker's host"
    return None


def _key(row: ConversationRecord) -> str | None:
    return WHOLE if never_opened(row) or row.server_bytes else None


RULE = DiagnosisRule(
    id="wrong-broker-address",
    severity=ProblemSeverity.ERROR,
    title="The route names an address of a broker that clients cannot reach",
    searched=(
        "brokerIP1",
        "connect to 172.17.0.x:10911 failed",
        "docker rocketmq sendDefaultImpl call timeout",
        "kubernetes rocketmq connect to broker failed",
        "UnknownHostException broker",
    ),
    proof=(
        "A NameServer's response names a loopback, Docker, or link-local address to clients on"
        " other hosts, or an address to which all their connection attempts fail. Or it names a"
        " host, and no client that got the name connects to that port on any host."
    ),
    explanation=(
        "Clients connect to the address that a broker has registered, not to the one in their"
        " configuration. Without brokerIP1, a broker picks one of its host's addresses: in a"
        " container or behind NAT, no other host can reach it."
    ),
    advice=_ADVICE,
    grpc="`wrong-proxy-address` is this rule for proxies.",
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=whole,
            requests={RequestCode.GET_ROUTEINFO_BY_TOPIC},
            responses={ResponseCode.SUCCESS},
            of_flow=True,
        ),
    ),
    connections=_key,
    takes_pending=True,
    references=(
        "apache/rocketmq#3440",
        "apache/rocketmq-dashboard#395",
        "alibaba/rocketmq#287",
        "alibaba/rocketmq#513",
        "apache/rocketmq-operator#202",
        "apache/rocketmq-operator#203",
        "apache/rocketmq-operator#105",
        "apache/rocketmq-operator#159",
        "alibaba/canal#4009",
        "apache/rocketmq#8195",
    ),
    limits=(
        "A connection attempt to a loopback address never reaches the network, so it is not"
        " captured. If clients use broker addresses that no route names (behind NAT, or in"
        " anonymized captures), an address without a captured connection attempt is not reported."
    ),
    needs={Need.ROUTES, Need.CONNECTIONS},
    lasts=None,
)
