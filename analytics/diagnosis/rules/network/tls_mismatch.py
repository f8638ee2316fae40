"""One end speaks TLS and the other one does not, or they cannot agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.rows import conversation_facts as facts_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import conversation_fact_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import by_server
from ...names import Names, counted_names
from ...outages import is_remoting_server, named, subject_at
from ...problem import Case, Confidence, Evidence, ProblemSeverity, Tally, connected
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

TLS: Final = "TLS"
ROCKETMQ: Final = "ROCKETMQ"
PROTOCOL_VERSION: Final = "protocol_version"
HANDSHAKE_FAILURE: Final = "handshake_failure"
CERTIFICATE_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
"""format of certificate times in facts: the text order is the time order"""
MAX_CONNECTIONS: Final = 1024
AT_ONCE: Final = 1_000_000_000
"""ns within which a server that requires TLS closes a plaintext connection"""
MUTE_BYTES: Final = 16
"""a server that responds to a ClientHello with TLS sends more"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._not_taken = Tally()
        self._alerts = Tally()
        self._alert_names: Counter[str] = Counter()
        self._reasons = Names()
        self._hosts = Names()
        self._clear: list[ConversationRecord] = []
        self._unanswered: set[tuple[str, int]] = set()
        self._encrypted = 0
        self._served_clear = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.end in ("reset", "closed") and len(self._unanswered) < MAX_CONNECTIONS:
            self._unanswered.add((row.capture, row.conversation))

    def add_connection(self, row: ConversationRecord) -> None:
        if row.protocol == TLS:
            self._take_tls(row)
        elif conversation_fact_in(row.facts, facts_of.TLS_CHOSEN) is not None:
            self._encrypted += 1  # and decrypted by rmqtool
        elif row.commands == 1 and row.server_bytes == 0 and row.ended_by == tcp.SERVER:
            if len(self._clear) < MAX_CONNECTIONS and _lasted(row) < AT_ONCE:
                self._clear.append(row)
        elif row.server_bytes:
            self._served_clear += 1

    def _take_tls(self, row: ConversationRecord) -> None:
        facts = row.facts
        alert = conversation_fact_in(facts, facts_of.TLS_ALERT)
        offered = conversation_fact_in(facts, facts_of.TLS_OFFERED)
        # A client whose hello gets no response may close with an alert of its own.
        if alert is not None and alert != "close_notify" and row.server_bytes:
            self._alerts.add(
                connected(row, f"{row.client_address} to {row.server_address}: TLS alert {alert}")
            )
            self._alert_names[alert] += 1
            self._reasons.note(_reason_of(row, alert))
        elif conversation_fact_in(facts, facts_of.TLS_CHOSEN) is not None:
            self._encrypted += 1
            return
        elif (
            offered is not None
            and row.start == tcp.HANDSHAKE
            and row.ended_by == tcp.SERVER
            and row.server_bytes < MUTE_BYTES
        ):
            what = (
                f"{row.client_address} offers TLS {offered}; {row.server_address} closes without a"
                " response"
            )
            self._not_taken.add(connected(row, what))
        else:
            return
        self._hosts.note(host_of(row.client_address))

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case per server and kind of mismatch."""
        if not is_remoting_server(self.key, context):
            return
        server = named(context, self.key)
        subject = subject_at(context, self.key)
        clients = [f"clients: {counted_names(self._hosts)}"] if self._hosts else []
        if self._not_taken.count:
            case = self._not_taken.case(
                f"{server} closed {counted(self._not_taken.count, 'TLS connection')} at the first"
                " packet: it does not accept TLS there",
                subject,
            )
            case.details = clients
            yield case
        elif self._alerts.count:
            case = self._alerts.case(
                f"{counted(self._alerts.count, 'TLS handshake')} with {server} failed:"
                f" {counted_names(self._alert_names)}",
                subject,
            )
            case.details = [*clients, *sorted(self._reasons)]
            yield case
        # Responses may be among the missing packets.
        refused = Tally() if context.quality.with_gaps else self._refused_in_the_clear()
        in_clear = any(row.server_bytes and row.commands for row in self.unended)
        # One response in the clear, on any connection, shows that the server does not enforce TLS.
        if refused.count and not self._served_clear and not in_clear:
            takes = "accepts TLS: it seems to enforce it" if self._encrypted else "responds to none"
            case = refused.case(
                f"{server} closed {counted(refused.count, 'plaintext connection')} at the first"
                f" request, and {takes}",
                subject,
            )
            case.doubt(
                "the server does not say why it closes",
                Confidence.LIKELY if self._encrypted else Confidence.POSSIBLE,
            )
            if not self._encrypted:
                case.details = ["a server with tls.server.mode=enforcing does so"]
            yield case

    def _refused_in_the_clear(self) -> Tally:
        tally = Tally()
        for row in self._clear:
            if (row.capture, row.conversation) in self._unanswered:
                what = (
                    f"{row.server_address} closed the connection from {row.client_address} at its"
                    " first request"
                )
                tally.add(Evidence(row.capture, None, row.end_time, row.conversation, what))
        return tally


def _reason_of(row: ConversationRecord, alert: str) -> str:
    """Return the reason of an alert, from the hellos and the certificates; empty if unknown."""
    facts = row.facts
    if conversation_fact_in(facts, facts_of.TLS_CHOSEN) is None:
        offered = conversation_fact_in(facts, facts_of.TLS_OFFERED)
        protocol_alert = alert in (PROTOCOL_VERSION, HANDSHAKE_FAILURE) and offered
        return f"the client offers TLS {offered}" if protocol_alert else ""
    at = datetime.fromtimestamp(row.start_time // 1_000_000_000, UTC).strftime(CERTIFICATE_TIME)
    subjects = _all_of(facts, facts_of.TLS_SUBJECT)
    for subject, end in zip(subjects, _all_of(facts, facts_of.TLS_NOT_AFTER), strict=False):
        if end < at:
            return f"the certificate of {subject} was valid until {end}"
    for subject, begin in zip(subjects, _all_of(facts, facts_of.TLS_NOT_BEFORE), strict=False):
        if begin > at:
            return f"the certificate of {subject} is not valid before {begin}"
    if not subjects:
        return ""
    issuer = conversation_fact_in(facts, facts_of.TLS_ISSUER)
    names = conversation_fact_in(facts, facts_of.TLS_NAMES)
    wanted = conversation_fact_in(facts, facts_of.TLS_NAME)
    asked = f"; the client asks for {wanted}" if wanted else ""
    return f"the certificate of {subjects[0]} for {names or 'no name'} is signed by {issuer}{asked}"


def _all_of(facts: Sequence[str], name: str) -> list[str]:
    """Return the values of all facts of a name: one per certificate of a chain."""
    start = f"{name}="
    return [fact.removeprefix(start) for fact in facts if fact.startswith(start)]


def _lasted(row: ConversationRecord) -> int:
    return row.end_time - row.start_time


def _key(row: ConversationRecord) -> str | None:
    if row.start == tcp.MIDSTREAM:
        return None
    return row.server_address if row.protocol in (TLS, ROCKETMQ) else None


RULE = DiagnosisRule(
    id="tls-mismatch",
    severity=ProblemSeverity.ERROR,
    title="Only one end uses TLS, or the ends cannot agree on a version or certificate",
    searched=(
        "TLS handshake failed",
        "tls.enable",
        "useTLS",
        "tls.server.mode",
        "SSLHandshakeException",
        "NotSslRecordException",
    ),
    proof=(
        "A server closes a connection after a ClientHello without a response. Or either end sends a"
        " TLS alert during the handshake. Or a server closes plaintext connections at their first"
        " request, and never responds to one."
    ),
    explanation=(
        "tls.server.mode is disabled, permissive (accepts both), or enforcing. With disabled, a"
        " server closes TLS connections; with enforcing, it closes plaintext ones. The client only"
        " sees that the connection ends, and tries the next address. An alert means that both ends"
        " use TLS, but do not agree on certificate or version; a readable certificate is shown in"
        " the evidence."
    ),
    advice=(
        "Configure both ends the same way: client producer.setUseTLS(true) or -Dtls.enable=true;"
        " server -Dtls.server.mode=permissive (default). For alerts, check"
        " tls.client.trustCertPath, tls.server.certPath, tls.server.need.client.auth (default"
        " none), and the versions."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, statuses={UNANSWERED}),),
    connections=_key,
    takes_pending=True,
    references=(
        "apache/rocketmq#10110",
        "apache/rocketmq#3326",
        "apache/rocketmq#4527",
        "apache/rocketmq#7179",
    ),
    limits=(
        "TLS 1.3 encrypts alerts and certificates after the ServerHello: they are visible only with"
        " --tls-keylog."
    ),
    needs={Need.CONNECTIONS, Need.HANDSHAKES},
    lasts=None,
)
