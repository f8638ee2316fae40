"""The route of a proxy has an address that its clients cannot reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.grpc.names import OK, TELEMETRY
from dissectors.quantities import counted
from dissectors.remoting.row_facts.names import ENDPOINT, REQUESTED_ENDPOINT, fact_in, facts_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import RECEIVE_CALLS, SEND_CALLS
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import WHOLE, keep, state_in
from ...names import listed
from ...outages import failed_connects, never_opened, surely_unanswered
from ...problem import Case, ProblemSeverity, Subject, Tally, shown
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from .wrong_broker_address import is_ip

MAX_ADDRESSES: Final = 4_096
MAX_FAILED: Final = 64
"""maximum failed connects kept per address"""
QUERY: Final = "QueryRoute"
_NEXT: Final = frozenset((TELEMETRY, "Heartbeat", "QueryAssignment", *SEND_CALLS, *RECEIVE_CALLS))
"""calls that a client makes to the addresses of a route"""


class _Address:
    """An address in routes."""

    def __init__(self) -> None:
        self.routes = Tally()
        self.asked: set[str] = set()
        """addresses at which clients reached the proxies that returned it"""
        self.known: set[str] = set()
        """addresses that clients report as known"""
        self.clients: set[str] = set()
        """hosts of these clients"""

    def add(self, row: ExchangeRecord, address: str) -> None:
        """Add a route with this address."""
        self.routes.add(shown(row, f"{row.server_address} names {address} for {row.topic}"))
        for kept, one in (
            (self.asked, row.server_address),
            (self.known, fact_in(row.facts, REQUESTED_ENDPOINT)),
            (self.clients, host_of(row.client_address)),
        ):
            if one:
                keep(kept, one, MAX_ADDRESSES)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._named: dict[str, _Address] = {}
        self._failed: dict[str, list[ConversationRecord]] = {}
        self._reached: set[str] = set()
        self._going_on: set[str] = set()
        """hosts of clients that made other calls"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_name in _NEXT:
            keep(self._going_on, host_of(row.client_address), MAX_ADDRESSES)
            return
        for address in facts_in(row.facts, ENDPOINT):
            entry = state_in(self._named, address, _Address, MAX_ADDRESSES)
            if entry is None:
                return
            entry.add(row, address)

    def add_connection(self, row: ConversationRecord) -> None:
        if never_opened(row):
            failed = state_in(self._failed, row.server_address, list, MAX_ADDRESSES)
            if failed is None:
                return
            failed.append(row)
            if len(failed) > MAX_FAILED:
                # The earliest stay, whatever the order of rows.
                failed.sort(key=lambda item: (item.start_time, item.capture, item.conversation))
                failed.pop()
        else:
            keep(self._reached, row.server_address, MAX_ADDRESSES)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per address at which every connect failed."""
        reached = self._reached | {
            row.server_address for row in self.unended if not never_opened(row)
        }
        for address, entry in sorted(self._named.items()):
            # The client asked there for the route, so it is right at least for that client.
            if address in reached or address in entry.asked:
                continue
            failed = [
                row
                for row in self._failed.get(address, ())
                if host_of(row.client_address) in entry.clients and surely_unanswered(row, context)
            ]
            if failed:
                yield _case(address, entry, failed)
            # A name by which a client itself knows the proxy can be resolved.
            elif address not in entry.known and not is_ip(host_of(address)):
                waiting = {host_of(row.client_address) for row in self.pending}
                if entry.clients.isdisjoint(self._going_on | waiting):
                    yield _unresolved(address, entry)


def _case(address: str, entry: _Address, failed: list[ConversationRecord]) -> Case:
    tally = failed_connects(failed)
    for evidence in entry.routes.evidence:
        tally.add(evidence, count=0)
    tries = f"{counted(len(failed), 'connection attempt')} to it failed, none succeeded"
    case = tally.case(
        f"the proxy's route names {address}, but clients reach the proxy at {listed(entry.asked)}:"
        f" {tries}",
        Subject(server=address),
    )
    case.details = [f"clients that got the route: {listed(entry.clients)}"]
    if entry.known:
        case.details.append(f"the clients know the proxy as {listed(entry.known)}")
    if all(host_of(address) != host_of(other) for other in entry.asked):
        case.advice = _HOST_ADVICE
    return case


def _unresolved(address: str, entry: _Address) -> Case:
    """Return the case of a host name to which no client connects, as it cannot be resolved."""
    case = entry.routes.case(
        f"the proxy's route names {address} by a host name, and no client that received this route"
        " made another call; the clients may be unable to resolve the name",
        Subject(server=address),
    )
    case.details = [f"clients that got the route: {listed(entry.clients)}"]
    case.advice = (
        f"Check that each client resolves {host_of(address)} (DNS, /etc/hosts), or, in local mode,"
        " set brokerIP1 in broker.conf to an address that clients can reach."
    )
    case.doubt("a client may have needed only the route, or continued outside the capture")
    return case


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name == QUERY else None


def _next_key(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name in _NEXT else None


_HOST_ADVICE: Final = (
    "Set brokerIP1 in broker.conf (local mode) to an address that clients can reach, and restart."
    " Publish grpcServerPort (default 8081) there under the same number. In cluster mode, a route"
    " names the hosts that clients ask for: check their endpoints."
)

RULE = DiagnosisRule(
    id="wrong-proxy-address",
    severity=ProblemSeverity.ERROR,
    title="The route of a proxy names an address that clients cannot reach",
    searched=(
        "Stream is already completed, no further calls are allowed",
        "kubernetes NodePort rocketmq proxy 8081",
        "UNAVAILABLE: io exception Connection refused 8081",
        "useEndpointPortFromRequest",
    ),
    proof=(
        "A response to QueryRoute names an address other than the one the client connected to, and"
        " every connection attempt of these clients to it fails. Or it names a host name by which"
        " these clients do not know the proxy, and they make no other call."
    ),
    explanation=(
        "A client asks its configured proxy for a route, and then connects to the addresses in it."
        " In cluster mode, a proxy returns the host from the client's request with the proxy's own"
        " grpcServerPort; in local mode, it returns its broker's brokerIP1 with that port. Behind a"
        " mapped port, a NodePort, or a load balancer with another port, no server listens there."
    ),
    advice=(
        "Publish the proxy's gRPC port under the same number, set grpcServerPort (default 8081) to"
        " the published one, or, in cluster mode, set useEndpointPortFromRequest=true (default"
        " false) in rmq-proxy.json."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, responses={OK}, with_facts=True),
        Exchanges(key=_next_key, with_facts=True),
    ),
    connections=lambda row: WHOLE if never_opened(row) or row.server_bytes else None,
    takes_pending=True,
    references=(
        "apache/rocketmq-clients#1078",
        "apache/rocketmq-clients#742",
        "apache/rocketmq#6268",
        "itboon/rocketmq-helm#31",
    ),
    limits=(
        "A connection attempt to a loopback address never reaches the network, so it is not"
        " captured."
    ),
    needs={Need.CONNECTIONS},
    lasts=None,
)
