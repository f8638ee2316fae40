"""The route of a proxy names an address that its clients cannot reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.grpc.names import OK
from dissectors.remoting.row_facts.names import ASKED_ENDPOINT, ENDPOINT, fact_in, facts_in
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE
from ...need import Need
from ...outages import how_it_failed, surely_unanswered
from ...problem import Case, ProblemSeverity, Subject, Tally, connected, shown
from ...refusals import counted, listed
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

MAX_ADDRESSES: Final = 4_096
MAX_FAILED: Final = 64
"""failed connects that are kept of one address"""
QUERY: Final = "QueryRoute"


class _Address:
    """An address that routes name."""

    def __init__(self) -> None:
        self.routes = Tally()
        self.asked: set[str] = set()
        """addresses at which clients reached the proxies that named it"""
        self.known: set[str] = set()
        """those that clients say that they know"""
        self.askers: set[str] = set()
        """hosts of these clients"""

    def add(self, row: ExchangeRecord, address: str) -> None:
        """Take a route that names it."""
        self.routes.add(shown(row, f"{row.responder} names {address} for {row.topic}"))
        for kept, one in (
            (self.asked, row.responder),
            (self.known, fact_in(row.facts, ASKED_ENDPOINT)),
            (self.askers, host_of(row.requester)),
        ):
            if one and len(kept) < MAX_ADDRESSES:
                kept.add(one)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._named: dict[str, _Address] = {}
        self._failed: dict[str, list[ConversationRecord]] = {}
        self._reached: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        for address in facts_in(row.facts, ENDPOINT):
            found = self._named.get(address)
            if found is None:
                if len(self._named) >= MAX_ADDRESSES:
                    return
                found = self._named[address] = _Address()
            found.add(row, address)

    def add_connection(self, row: ConversationRecord) -> None:
        if _failed(row):
            failed = self._failed.get(row.server)
            if failed is None:
                if len(self._failed) >= MAX_ADDRESSES:
                    return
                failed = self._failed[row.server] = []
            failed.append(row)
            if len(failed) > MAX_FAILED:
                failed.sort(key=lambda one: (one.start_time, one.capture, one.conversation))
                failed.pop()
        elif len(self._reached) < MAX_ADDRESSES:
            self._reached.add(row.server)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of each address to which every connect failed."""
        reached = self._reached | {row.server for row in self.unended if not _failed(row)}
        for address, one in sorted(self._named.items()):
            if address in reached or address in one.asked:
                continue
            failed = [
                row
                for row in self._failed.get(address, ())
                if host_of(row.client) in one.askers and surely_unanswered(row, context)
            ]
            if failed:
                yield _case(address, one, failed)


def _case(address: str, one: _Address, failed: list[ConversationRecord]) -> Case:
    tally = Tally()
    for row in failed:
        tally.add(connected(row, how_it_failed(row)), last=row.end_time)
    for evidence in one.routes.evidence:
        tally.add(evidence, count=0)
    tries = f"{counted(len(failed), 'connect')} to it failed, none succeeded"
    case = tally.case(
        f"the proxy's route names {address}, but clients reach the proxy at {listed(one.asked)}:"
        f" {tries}",
        Subject(server=address),
    )
    case.details = [f"clients that got the route: {listed(one.askers)}"]
    if one.known:
        case.details.append(f"the clients know the proxy as {listed(one.known)}")
    if all(host_of(address) != host_of(other) for other in one.asked):
        case.advice = _HOST_ADVICE
    return case


def _failed(row: ConversationRecord) -> bool:
    return row.end in tcp.NEVER_OPENED


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name == QUERY else None


_HOST_ADVICE: Final = (
    "Set localServeAddr (default: the first address of the proxy's host) in rmq-proxy.json to an"
    " address that clients reach, and publish grpcServerPort (default 8081) there under the same"
    " number. In cluster mode a route names the hosts that clients ask for: check their endpoints."
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
        "A response to QueryRoute names another address than the one that the client asked at, and"
        " every connect of these clients to it fails."
    ),
    explanation=(
        "A client asks the proxy that it is configured with for a route, and then connects to the"
        " addresses in it. A proxy in cluster mode names the host that the client asked for with"
        " its own grpcServerPort, in local mode its localServeAddr. Behind a mapped port, a"
        " NodePort, or a load balancer with another port nobody listens there."
    ),
    advice=(
        "Publish the proxy's gRPC port under the same number, set grpcServerPort (default 8081) to"
        " the published one, or set useEndpointPortFromRequest=true (default false) in"
        " rmq-proxy.json."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=frozenset((OK,)), with_facts=True),),
    connections=lambda row: WHOLE if _failed(row) or row.server_bytes else None,
    takes_pending=True,
    references=(
        "apache/rocketmq-clients#1078",
        "apache/rocketmq-clients#742",
        "apache/rocketmq#6268",
        "itboon/rocketmq-helm#31",
    ),
    limits="A connect to a loopback address never reaches the network, so it is not in a capture.",
    needs=frozenset((Need.CONNECTIONS,)),
    lasts=None,
)
