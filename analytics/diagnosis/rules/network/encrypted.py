"""Connections are encrypted, so their contents are unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.rows import conversation_facts as facts_of
from dissectors.rows.conversation_facts import conversation_fact_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...keys import state_in
from ...names import MAX_NAMED, Names, counted_names
from ...outages import is_remoting_server
from ...problem import Case, ProblemSeverity, Subject, Tally, connected
from ...rule import COVERED, DiagnosisRule, Fold

TLS: Final = "TLS"


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._tallies: dict[str, Tally] = {}
        self.clients = Names()
        self.chosen = Names()
        self.names = Names()

    def add_connection(self, row: ConversationRecord) -> None:
        chosen = conversation_fact_in(row.facts, facts_of.TLS_CHOSEN)
        version = f"TLS {chosen}" if chosen else "a version that was not captured"
        tally = state_in(self._tallies, row.server_address, Tally, MAX_NAMED)
        if tally is None:
            return
        tally.add(connected(row, f"{row.client_address} to {row.server_address}: {version}"))
        self.clients.note(host_of(row.client_address))
        self.chosen.note(chosen)
        self.names.note(conversation_fact_in(row.facts, facts_of.TLS_NAME))

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case for all encrypted connections."""
        servers = Counter[str]()
        total = Tally()
        for server, tally in self._tallies.items():
            # Without any RocketMQ exchange, no server is known: then all TLS connections count.
            if not context.exchanges or is_remoting_server(server, context):
                servers[server] += tally.count
                total.merge(tally)
        count = total.count
        if not count:
            return
        versions = ", ".join(f"TLS {version}" for version in sorted(self.chosen, reverse=True))
        case = total.case(
            f"{counted(count, 'connection')} to {counted_names(servers)}"
            f" {'is' if count == 1 else 'are'} encrypted ({versions or 'TLS'}): their contents are"
            " not checked",
            Subject(),
        )
        case.details = [f"clients: {counted_names(self.clients)}"]
        if self.names:
            case.details.append(f"requested server names: {counted_names(self.names)}")
        else:
            case.details.append("no client says which server name it expects")
        yield case


def _key(row: ConversationRecord) -> str | None:
    encrypted = row.protocol == TLS and row.server_bytes > 0
    return "*" if encrypted and not _failed(row) else None


def _failed(row: ConversationRecord) -> bool:
    """Return whether the handshake failed, which the rule tls-mismatch reports."""
    return conversation_fact_in(row.facts, facts_of.TLS_ALERT) is not None


RULE = DiagnosisRule(
    id="encrypted",
    severity=ProblemSeverity.INFO,
    title="Connections are encrypted and cannot be read",
    searched=("rocketmq tls wireshark", "decrypt rocketmq traffic", "SSLKEYLOGFILE"),
    proof=(
        "The first bytes of a connection are TLS records, and the server responds with TLS records."
    ),
    explanation=(
        "RocketMQ runs over TLS if clients set useTLS. The capture then shows who connects to whom,"
        " when, and how many bytes are exchanged, but no requests."
    ),
    advice=(
        "Capture where traffic is not encrypted, behind a proxy that terminates TLS. Or let the"
        " client or server write its session keys, and use --tls-keylog FILE. A Java process writes"
        " them with an agent (-javaagent:extract-tls-secrets-4.0.0.jar=keys.log); clients based on"
        " OpenSSL do so with SSLKEYLOGFILE if they support it. See rmqtool help tls. The broker's"
        " setting is tls.server.mode (default permissive: accepts both)."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    references=(),
    limits=(
        "TLS of other programs is excluded by port, unless no RocketMQ traffic is readable."
        " Certificates of TLS 1.3 are encrypted, too;"
        " names are those that clients request (SNI)."
    ),
    needs={Need.CONNECTIONS},
    lasts=None,
)
