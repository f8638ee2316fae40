"""A gRPC client connects to a port of a NameServer or broker, which does not speak gRPC."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dissectors.endpoint import host_of
from dissectors.ports import BROKER as BROKER_PORT
from dissectors.ports import NAMESRV as NAMESRV_PORT
from dissectors.ports import VIP
from dissectors.quantities import counted
from dissectors.rows import conversation_facts as facts_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import conversation_fact_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import BROKER, NAMESRV, Context, Need
from ...names import Names, counted_names
from ...outages import named, subject_at
from ...problem import Case, ProblemSeverity, connected
from ...rule import COVERED, DiagnosisRule, TallyFold

H2: Final = "h2"
PLAIN: Final = "HTTP/2"
TLS: Final = "TLS"
PORTS: Final = frozenset(map(str, (NAMESRV_PORT, BROKER_PORT, VIP)))


class _Fold(TallyFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.hosts = Names()
        self.hows: Counter[str] = Counter()

    def add_connection(self, row: ConversationRecord) -> None:
        how = f"{PLAIN} in TLS (ALPN)" if row.protocol == TLS else PLAIN
        self.tally.add(connected(row, f"{row.client_address} offers {how} to {row.server_address}"))
        self.hows[how] += 1
        self.hosts.note(host_of(row.client_address))

    def case(self, context: Context) -> Case | None:
        role = context.servers.get(self.key)
        name = context.broker(self.key)
        by_port = self.key.rpartition(":")[2] in PORTS
        if role is None and name != self.key:
            role = BROKER
        if role not in (NAMESRV, BROKER) and (role is not None or not by_port):
            return None
        server_kind = "a NameServer" if role == NAMESRV else "a broker"
        if role is None:
            server_kind = "a NameServer or broker"
        case = self.tally.case(
            f"gRPC clients connect to {named(context, self.key)}, {server_kind}, which does not"
            f" speak"
            f" gRPC: {counted(self.tally.count, 'connection')} from {counted_names(self.hosts)}",
            subject_at(context, self.key),
        )
        case.details = [f"protocols: {counted_names(self.hows)}"]
        if role is None:
            case.doubt("only the port shows what listens there")
        return case


def _key(row: ConversationRecord) -> str | None:
    # A gRPC server responds to the preface with its settings.
    if row.protocol == PLAIN and row.start != tcp.MIDSTREAM and not row.server_bytes:
        return row.server_address
    offered = conversation_fact_in(row.facts, facts_of.TLS_PROTOCOLS) or ""
    chosen = conversation_fact_in(row.facts, facts_of.TLS_PROTOCOL)
    # A gRPC server always chooses h2: without that choice, the client gives up.
    is_offered = row.protocol == TLS and H2 in offered.split(",") and chosen is None
    return row.server_address if is_offered else None


RULE = DiagnosisRule(
    id="grpc-on-remoting-port",
    severity=ProblemSeverity.ERROR,
    title="A gRPC client connects to a NameServer or broker",
    searched=(
        "UNAVAILABLE: Network closed for unknown reason",
        "INTERNAL: http2 exception First received frame was not SETTINGS",
        "rocketmq-clients endpoints 9876",
        "TooLongFrameException 1347569956",
    ),
    proof=(
        "A connection to a NameServer or broker starts with the HTTP/2 preface and gets no"
        " response, or its TLS handshake offers h2 (ALPN) and the server chooses no protocol."
    ),
    explanation=(
        "gRPC clients of 5.x (rocketmq-client-java, and those for Go, Python, C++, C#, Rust,"
        " Node.js in rocketmq-clients) connect only to a proxy. NameServers and brokers use the"
        " remoting protocol: they read the preface as a frame that is too long, and close the"
        " connection. Inside TLS, the handshake succeeds, but no protocol (h2) is chosen, and the"
        " client gives up."
    ),
    advice=(
        "Set the client's endpoints (setEndpoints) to a proxy, port 8081 (grpcServerPort), and"
        " start one if there is none (mqproxy, or mqbroker --enable-proxy). Or use the remoting"
        " client (rocketmq-client) with NameServers."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    references=("apache/rocketmq-clients#281", "apache/rocketmq#6015"),
    limits="Browsers and health checks that use HTTP/2 look the same.",
    needs={Need.CONNECTIONS},
    lasts=None,
)
