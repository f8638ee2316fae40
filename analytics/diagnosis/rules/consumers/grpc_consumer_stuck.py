"""A push consumer by gRPC registers its settings, and then asks for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.grpc.names import OK
from dissectors.remoting.row_facts.names import CLIENT, CLIENT_TYPE, fact_in
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    place_of,
    seconds,
    shown,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

QUIET: Final = 15_000_000_000
"""ns without a call: clients send a Heartbeat every 10 s"""
MAX_CLIENTS: Final = 10_000
PUSH: Final = "PUSH_CONSUMER"
TELEMETRY: Final = "Telemetry"
_ASKS: Final = frozenset(
    ("Heartbeat", "QueryAssignment", "ReceiveMessage", "NotifyClientTermination")
)


class _Client:
    """One client as it registered first, and whether it went on."""

    __slots__ = ("asked", "evidence", "group", "place", "program", "topic")

    def __init__(self) -> None:
        self.evidence: Evidence | None = None
        self.place = ("", -1)
        """capture and connection"""
        self.group: str | None = None
        self.topic: str | None = None
        self.program = ""
        self.asked = False

    def register(self, row: ExchangeRecord) -> None:
        """Take settings that were answered."""
        one = shown(row, "Telemetry: settings of a push consumer answered")
        if self.evidence is None or place_of(one) < place_of(self.evidence):
            self.evidence, self.place = one, (row.capture, row.conversation)
            self.group, self.topic = row.group, row.topic
            self.program = " ".join(filter(None, (row.language, row.version_name)))


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._clients: dict[str, _Client] = {}
        self._connections: dict[tuple[str, int], ConversationRecord] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        client = fact_in(row.facts, CLIENT)
        if client is None:
            return
        found = self._clients.get(client)
        if found is None:
            if len(self._clients) >= MAX_CLIENTS:
                return
            found = self._clients[client] = _Client()
        if row.request_name in _ASKS:
            found.asked = True
        elif fact_in(row.facts, CLIENT_TYPE) == PUSH and row.response_code == OK:
            found.register(row)

    def add_connection(self, row: ConversationRecord) -> None:
        if len(self._connections) < MAX_CLIENTS:
            self._connections[row.capture, row.conversation] = row

    def cases(self, context: Context) -> Iterable[Case]:
        now = {(row.capture, row.conversation): row for row in self.unended}
        waiting = {fact_in(row.facts, CLIENT) for row in self.pending if row.request_name in _ASKS}
        for client, one in sorted(self._clients.items()):
            if one.asked or one.evidence is None or client in waiting:
                continue
            connection = now.get(one.place) or self._connections.get(one.place)
            until = self._known_until(connection, context)
            if until - one.evidence.time >= QUIET:
                yield _case(client, one, one.evidence, until, connection, context)

    def _known_until(self, connection: ConversationRecord | None, context: Context) -> int:
        """Return up to when the client would have asked: to the end of its connection."""
        last = context.last_time or 0
        if connection is None:
            return 0
        if connection.end == tcp.OPEN:
            return max(last, connection.end_time)
        return left_at(connection)


def _case(
    client: str,
    one: _Client,
    evidence: Evidence,
    until: int,
    connection: ConversationRecord | None,
    context: Context,
) -> Case:
    tally = Tally()
    tally.add(evidence, last=until)
    group = one.group or "a group"
    case = tally.case(
        f"push consumer {client} of group {group} registered its settings at"
        f" {clock(evidence.time)} UTC and sent no Heartbeat, QueryAssignment, or ReceiveMessage"
        f" since ({seconds(until - evidence.time)}): it is stuck in its start",
        Subject(group=one.group, topic=one.topic, client=client),
    )
    if one.program:
        case.details.append(f"its client library: {one.program}")
    if connection is None or connection.end == tcp.OPEN or context.goes_on:
        case.state = ProblemState.GOING_ON
    return case


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name in _ASKS or row.request_name == TELEMETRY else None


RULE = DiagnosisRule(
    id="grpc-consumer-stuck",
    severity=ProblemSeverity.ERROR,
    title="A push consumer registers at a proxy and then asks for nothing",
    searched=(
        "PushConsumer startup hangs",
        "gRPC push consumer receives no messages",
        "python PushConsumer no messages",
    ),
    proof=(
        "Telemetry of a PUSH_CONSUMER is answered with its settings; the client then sends no"
        " Heartbeat, QueryAssignment or ReceiveMessage for 15 s on a connection that stays open."
    ),
    explanation=(
        "A push consumer by gRPC sends its settings, waits for those of the proxy, and then asks"
        " for its queues (QueryAssignment) and for messages (ReceiveMessage), with a Heartbeat"
        " every 10 s. One that sends nothing more waits inside its own start, for example for a"
        " reply that it does not recognize: no message is delivered and no error is shown."
    ),
    advice=(
        "Look at a stack dump of that program, and use another release of its client library"
        " or its SimpleConsumer: the Python client 5.1.0 is known to hang in"
        " PushConsumer.startup()."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, with_facts=True),),
    connections=lambda row: WHOLE if row.protocol == "gRPC" else None,
    takes_pending=True,
    references=("apache/rocketmq-clients#1191", "apache/rocketmq-clients#1168"),
    limits=(
        "Calls of the client on connections that were not captured are not seen. Long polls of"
        " which neither end is in the capture do not count as asked."
    ),
    rests_on_absence=True,
    lasts=None,
)
