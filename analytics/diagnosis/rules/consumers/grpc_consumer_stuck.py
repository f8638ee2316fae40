"""A gRPC push consumer does not start, no longer requests messages, or finishes none."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from dissectors.grpc.names import OK, TELEMETRY
from dissectors.quantities import counted
from dissectors.remoting.row_facts.names import CLIENT_TYPE, FIFO, fact_in, facts_in
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import RECEIVE_CALLS
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context
from ...keys import WHOLE, state_in
from ...problem import (
    Case,
    Confidence,
    Evidence,
    Impact,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    clock_after,
    duration,
    end_of,
    shown,
    time_of,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

QUIET: Final = 15_000_000_000
"""ns without a call: clients send a Heartbeat every 10 s"""
MAX_CLIENTS: Final = 10_000
MOST_NAMED: Final = 5
PUSH: Final = "PUSH_CONSUMER"
UNSERVED: Final = 1_000_000_000
"""ns without a response to settings: a proxy responds in ms"""
UNSERVED_SURE: Final = 5_000_000_000
BLOCKED: Final = 45_000_000_000
"""ns from the end of the last ReceiveMessage to a heartbeat: a long poll takes 30 s at most"""
HELD: Final = 60_000_000_000
"""ns for which received messages are not acknowledged: more than most of them take"""
MAX_BATCHES: Final = 32
"""maximum latest responses with messages of one client that are kept"""
_DONE: Final = frozenset(
    ("AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue")
)
_TAKEN: Final = frozenset(
    (TELEMETRY, "Heartbeat", "QueryAssignment", "NotifyClientTermination", *RECEIVE_CALLS, *_DONE)
)


class _Batch(NamedTuple):
    """Messages of one response."""

    end: int
    key: str
    messages: int
    evidence: Evidence


class _Client:
    """One client as first registered, and its progress."""

    __slots__ = (
        *("asked", "batches", "beat", "done_at", "evidence", "fifo", "given", "group", "open"),
        *("place", "program", "pushes", "received", "received_end", "topic", "unserved"),
    )

    def __init__(self) -> None:
        self.evidence: Evidence | None = None
        """its first settings with a response"""
        self.unserved: Evidence | None = None
        """its first settings without a response"""
        self.place = ("", -1)
        """capture and connection of its settings"""
        self.group: str | None = None
        self.topic: str | None = None
        self.program = ""
        self.pushes = False
        self.fifo = False
        """the proxy delivers to its group in order"""
        self.asked = False
        self.beat: Evidence | None = None
        """its last Heartbeat or QueryAssignment"""
        self.received: Evidence | None = None
        """its last ReceiveMessage"""
        self.received_end = 0
        self.batches: list[_Batch] = []
        """heap of the latest responses with messages"""
        self.done_at = 0
        """when it last acknowledged, returned, or gave up a message; 0: never"""
        self.open = False
        """a ReceiveMessage has no response"""
        self.given = 0
        """messages received and neither acknowledged nor returned"""

    def take(self, row: ExchangeRecord) -> None:
        """Add a call."""
        # The largest of several, whatever the order of rows.
        self.group = max(self.group or "", row.group or "") or None
        self.topic = max(self.topic or "", row.topic or "") or None
        pushes = fact_in(row.facts, CLIENT_TYPE) == PUSH
        self.pushes = self.pushes or pushes
        if row.request_name != TELEMETRY:
            self._ask(row)
        elif pushes and row.response_code in (OK, None):
            self._register(row)

    def _register(self, row: ExchangeRecord) -> None:
        self.fifo = self.fifo or facts_in(row.facts, FIFO)[-1:] == ["true"]
        answered = row.response_code == OK
        what = "answered" if answered else "never answered"
        evidence = shown(row, f"Telemetry: settings of a push consumer {what}")
        before = self.evidence if answered else self.unserved
        if before is not None and not evidence < before:
            return
        if answered:
            self.evidence = evidence
        else:
            self.unserved = evidence
        self.place = (row.capture, row.conversation)
        self.program = " ".join(filter(None, (row.language, row.version_name)))

    def _ask(self, row: ExchangeRecord) -> None:
        if row.request_name in _DONE:
            # A balance: rows come by flow, so an acknowledgement may be read before its delivery.
            self.given -= row.message_count or 1
            self.done_at = max(self.done_at, end_of(row))
            return
        self.asked = True
        if row.request_name in RECEIVE_CALLS:
            self.open = self.open or row.status == UNANSWERED
            self.given += row.message_count or 0
            end = end_of(row)
            if row.message_count:
                self._keep(_Batch(end, row.unique_key or "", row.message_count, shown(row)))
            if self.received is None or end > self.received_end:
                self.received, self.received_end = shown(row), end
        elif self.beat is None or time_of(row) > self.beat.time:
            self.beat = shown(row)

    def _keep(self, batch: _Batch) -> None:
        if len(self.batches) < MAX_BATCHES:
            heappush(self.batches, batch)
        else:
            heappushpop(self.batches, batch)

    def held_since(self) -> int:
        """Return the time since which it certainly holds a message; 0: it holds none."""
        later = [batch for batch in self.batches if batch.end > self.done_at]
        if self.given > sum(batch.messages for batch in later) and self.done_at:
            return self.done_at  # one that it received earlier
        return min(later).end if later and self.given > 0 else 0


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._clients: dict[str, _Client] = {}
        self._connections: dict[tuple[str, int], ConversationRecord] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        client = row.client_id
        if client is None:
            return
        state = self._clients.get(client) or state_in(self._clients, client, _Client, MAX_CLIENTS)
        if state is not None:
            state.take(row)

    def add_connection(self, row: ConversationRecord) -> None:
        if len(self._connections) < MAX_CLIENTS:
            self._connections[row.capture, row.conversation] = row

    def cases(self, context: Context) -> Iterable[Case]:
        now = {(row.capture, row.conversation): row for row in self.unended}
        querying: set[str | None] = set()
        receiving: set[str | None] = set()
        for row in self.pending:
            kept = receiving if row.request_name in RECEIVE_CALLS else querying
            kept.add(row.client_id)
        for client, state in sorted(self._clients.items()):
            if state.asked:
                # A long poll that waits now is no row yet.
                case = _blocked(client, state, context) if client not in receiving else None
                if case is None:
                    case = _holding(client, state, context)
                if case is not None:
                    yield case
                continue
            if client in querying | receiving or (state.evidence or state.unserved) is None:
                continue
            connection = now.get(state.place) or self._connections.get(state.place)
            until = self._known_until(connection, context)
            yield from _stuck(client, state, until, connection, context)

    def _known_until(self, connection: ConversationRecord | None, context: Context) -> int:
        """Return until when requests would have been captured: the end of its connection."""
        last = context.last_time or 0
        if connection is None:
            return 0
        if connection.end == tcp.OPEN:
            return max(last, connection.end_time)
        return left_at(connection)


def _stuck(
    client: str,
    state: _Client,
    until: int,
    connection: ConversationRecord | None,
    context: Context,
) -> Iterable[Case]:
    """Return the case of a client that requests nothing after its settings."""
    group = state.group or "a group"
    # A proxy responds to settings before the client calls anything else, so this is a later stage.
    if state.evidence is not None:
        evidence, least = state.evidence, QUIET
        text = (
            f"registered its settings at {clock(evidence.time)} UTC and sent no Heartbeat,"
            " QueryAssignment, or ReceiveMessage since"
        )
        why = "it is stuck at startup"
    elif state.unserved is not None:
        evidence, least = state.unserved, UNSERVED
        text = f"sent its settings at {clock(evidence.time)} UTC and got no settings from the proxy"
        why = "it cannot start"
    else:
        return
    if until - evidence.time < least:
        return
    tally = Tally()
    tally.add(evidence, last=until)
    case = tally.case(
        f"push consumer {client} of group {group} {text}"
        f" ({duration(until - evidence.time)}): {why}",
        Subject(group=state.group, topic=state.topic, client=client),
    )
    if state.evidence is None:
        case.advice = _UNSERVED_ADVICE
        if until - evidence.time < UNSERVED_SURE:
            case.doubt("the proxy may have been slow: the client left before the response")
    if state.program:
        case.details.append(f"its client library: {state.program}")
    if connection is None or connection.end == tcp.OPEN or context.goes_on:
        case.state = ProblemState.GOING_ON
    yield case


def _blocked(client: str, state: _Client, context: Context) -> Case | None:
    """Return the case of a live client that no longer requests messages."""
    # A simple consumer asks when it wants, and a poll without a response may still wait.
    if not state.pushes or state.open or state.received is None or state.beat is None:
        return None
    spent = state.beat.time - state.received_end
    if spent < BLOCKED:
        return None
    given = max(state.given, 0)
    held = (
        f" and holds {given:,} received {'message' if given == 1 else 'messages'}" if given else ""
    )
    case = Tally.of((state.received, state.beat)).case(
        f"push consumer {client} of group {state.group or 'a group'} has not asked for messages"
        f" since {clock(state.received_end)} UTC{held}, although it sent heartbeats until"
        f" {clock_after(state.received_end, state.beat.time)} ({duration(spent)})",
        Subject(group=state.group, topic=state.topic, client=client),
    )
    case.count = 1
    case.first_time = state.received_end
    key = max(state.batches).key if state.batches else ""
    if key:
        case.details.append(f"the last message that it received: {key}")
    case.advice = _BLOCKED_ADVICE
    _settle_state(case, state.beat, context)
    return case


def _holding(client: str, state: _Client, context: Context) -> Case | None:
    """Return the case of a live client that asks for messages and finishes none."""
    since = state.held_since()
    if not state.pushes or not since or state.beat is None or state.beat.time - since < HELD:
        return None
    held, one = state.given, state.given == 1
    case = Tally.of((*(batch.evidence for batch in sorted(state.batches)), state.beat)).case(
        f"push consumer {client} of group {state.group or 'a group'} has held"
        f" {counted(held, 'message')} since {clock(since)} UTC"
        f" ({duration(state.beat.time - since)}) without acknowledging {'it' if one else 'any'},"
        " although it still asks for messages",
        Subject(group=state.group, topic=state.topic, client=client),
    )
    case.count = 1
    case.first_time = since
    case.impact = {Impact.NOT_CONSUMED: held}
    case.severity = ProblemSeverity.WARNING
    case.advice = _HELD_ADVICE
    keys = [batch.key for batch in sorted(state.batches) if batch.key and batch.end >= since]
    if keys:
        case.details.append(f"received last: {', '.join(keys[-MOST_NAMED:])}")
    if state.fifo:
        case.details.append("the group is FIFO: the messages behind it in its queue wait")
    case.doubt(
        "its messages may simply take that long",
        Confidence.LIKELY if state.fifo else Confidence.POSSIBLE,
    )
    _settle_state(case, state.beat, context)
    return case


def _settle_state(case: Case, beat: Evidence, context: Context) -> None:
    """Set the state of a case that goes on while its client sends heartbeats."""
    if context.last_time is not None and context.last_time - beat.time < QUIET:
        case.state = ProblemState.GOING_ON


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name in _TAKEN else None


_UNSERVED_ADVICE: Final = (
    "Look in the proxy's log (proxy.log) at that time. Check that the proxy reaches the brokers of"
    " the group, and that they have it (mqadmin updateSubGroup -c CLUSTER -g GROUP creates it)."
)
_BLOCKED_ADVICE: Final = (
    "Look at the listener threads of that program in a thread dump (jstack). A push consumer"
    " receives nothing more while its cache is full (maxCacheMessageCount, default 1024, and"
    " maxCacheMessageSizeInBytes, default 64 MiB). Give slow calls in the listener a timeout."
)
_HELD_ADVICE: Final = (
    "Check in the log of that program what it does with these messages: its listener hangs, or"
    " fails again and again. Take a thread dump (jstack) to find a listener that hangs. A FIFO"
    " consumer retries a failed message itself, with delays from 1 s to 2 h, and gets none of the"
    " messages behind it."
)

RULE = DiagnosisRule(
    id="grpc-consumer-stuck",
    severity=ProblemSeverity.ERROR,
    title="A gRPC push consumer does not ask for messages, or finishes none",
    searched=(
        "PushConsumer startup hangs",
        "gRPC push consumer receives no messages",
        "python PushConsumer no messages",
        "Expected the service PushConsumerImpl-0 [FAILED] to be RUNNING",
        "Failed to telemeter settings",
        "Process queue cache is full, would receive message later",
        "FIFO consumer stuck",
    ),
    proof=(
        "Telemetry of a PUSH_CONSUMER gets a response with its settings. The client then sends no"
        " Heartbeat, QueryAssignment, or ReceiveMessage for 15 s on a connection that stays open."
        " Or it gets no settings for 1 s. Or it sends a Heartbeat or QueryAssignment 45 s"
        " or longer after its last ReceiveMessage ended. Or it holds messages and has not"
        " acknowledged, returned, or given up any for 60 s before its last heartbeat."
    ),
    explanation=(
        "A gRPC push consumer sends its settings, waits for those of the proxy, and then requests"
        " its queues (QueryAssignment) and messages (ReceiveMessage), with a Heartbeat every 10 s."
        " A consumer that sends nothing after its settings is blocked during its start, for example"
        " because it does not recognize a response: no message is delivered and no error is shown."
        " A consumer can also get stuck after its start: if its listeners are blocked, it receives"
        " messages until its cache is full, and then sends only heartbeats. The proxy prolongs the"
        " invisible time of messages that a push consumer holds, so no other member gets them."
    ),
    advice=(
        "Take a thread dump of that program, and use another release of its client library or its"
        " SimpleConsumer: the Python client 5.1.0 is known to hang in PushConsumer.startup()."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, with_facts=True),),
    connections=lambda row: WHOLE if row.protocol == "gRPC" else None,
    takes_pending=True,
    references=("apache/rocketmq-clients#1191", "apache/rocketmq-clients#1168"),
    limits=(
        "Calls on connections that were not captured are not visible. Long polls without a captured"
        " start or end are not counted. A period in which a consumer finished no message is not"
        " reported if it finished all of them later."
    ),
    rests_on_absence=True,
    consequence_of={"group-missing"},
    lasts=None,
)
