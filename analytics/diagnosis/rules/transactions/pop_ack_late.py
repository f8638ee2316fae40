"""A POP message is not acknowledged within its invisible time: it is delivered again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.grpc.names import OK
from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import DEADLINE_MS, RECONSUMED, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.outcome import RECEIVE_CALLS
from dissectors.rows.record import UNANSWERED, ExchangeRecord, MessageIdentity, identity_of

from ...context import Context
from ...keys import SUCCESS, has_room, keep_least, named_group, state_in
from ...names import MAX_NAMED, counted_names, first_of, only, times
from ...problem import (
    MS,
    Case,
    Confidence,
    Evidence,
    Impact,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    duration,
    shown,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import spells

ACKS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
CALLS: Final = frozenset(("AckMessage", "ChangeInvisibleDuration"))
"""the same for gRPC"""
_RETURN: Final = "ChangeInvisibleDuration"
INVALID_RECEIPT: Final = 40013
"""INVALID_RECEIPT_HANDLE: a proxy refuses a late acknowledgement"""
CLOCKS_NS: Final = 1_000_000_000
"""maximum difference between the clocks of the broker and the capture"""
MAX_ACKS: Final = 20_000
POP: Final = int(RequestCode.POP_MESSAGE)
MANY_POPPED: Final = 20
"""popped messages of which none was acknowledged"""
LONG_POPPED: Final = 30_000_000_000
"""ns between the first and last of them: more than most messages take"""
FEWEST_DELIVERIES: Final = 3
"""of one message: a second one may follow from a restart"""
MAX_DELIVERIES: Final = 256
"""maximum deliveries of one message that are kept; retryMaxTimes is 16 by default"""


class _Ack(NamedTuple):
    evidence: Evidence
    late_ns: int
    """after the end of the invisible time; negative: before it"""
    taken: bool
    """the broker did not refuse it: it refuses messages that are not in the queue (208)"""
    topic: str
    server_address: str
    client_address: str

    def span(self) -> tuple[int, int]:
        return self.evidence.time, self.evidence.time


class _Redelivered(NamedTuple):
    """A message that a gRPC consumer received repeatedly."""

    key: str
    topic: str
    deliveries: int
    rows: list[_Delivery]
    """by delivery"""

    def span(self) -> tuple[int, int]:
        times = [row.evidence.time for row in self.rows]
        return min(times), max(times)


class _Delivery(NamedTuple):
    evidence: Evidence
    server_address: str
    client_address: str


class _Fold(Fold):
    """Acknowledgements of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.acks: dict[str, _Ack] = {}
        """by receipt; hops of a relay and repetitions count once"""
        self.refused: set[str] = set()
        """acknowledgements that a proxy refused"""
        self.received: dict[MessageIdentity, dict[int, _Delivery]] = {}
        """redeliveries by gRPC that begin with a message, by how often it was delivered before"""
        self.returned: set[MessageIdentity] = set()
        """messages that a gRPC client returned, or acknowledged too late"""
        self.popped = Tally()
        self.brokers: set[str] = set()
        self.topics: set[str] = set()
        self.acknowledged = False

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_name in RECEIVE_CALLS:
            self._add_received(row)
            return
        if row.request_name in CALLS:
            self._add_call(row)
            return
        if row.request_code == POP:
            if row.message_count:
                what = f"POP_MESSAGE -> {counted(row.message_count, 'message')}"
                self.popped.add(shown(row, what), count=row.message_count)
                if len(self.topics) < MAX_NAMED and len(self.brokers) < MAX_NAMED:
                    self.topics.add(row.topic or "")
                    self.brokers.add(row.server_address)
            return
        # Any acknowledgement, also one that the broker refused: the group does send them.
        self.acknowledged = True
        late = _late(row)
        if late is None:
            return
        key = f"{row.topic} {row.queue_id} {row.queue_offset} {fact_in(row.facts, DEADLINE_MS)}"
        evidence = asked(row, _expired(row, late))
        taken = row.response_code in (None, SUCCESS)
        keep_least(self.acks, key, _ack(row, evidence, late, taken), MAX_ACKS)

    def _add_received(self, row: ExchangeRecord) -> None:
        """Add a redelivery by gRPC."""
        key, again = identity_of(row), number_in(row.facts, RECONSUMED)
        if key is None or again is None:
            return
        what = f"{row.request_name} -> delivery {again + 1:,} of {key[0]}"
        delivery = _Delivery(shown(row, what), row.server_address, row.client_address)
        deliveries = state_in(self.received, key, dict[int, _Delivery], MAX_ACKS)
        if deliveries is not None:
            keep_least(deliveries, again, delivery, MAX_DELIVERIES)

    def _add_call(self, row: ExchangeRecord) -> None:
        """Add a return, or an acknowledgement refused by a proxy, which extends other receipts."""
        identity = identity_of(row)
        if identity is not None and has_room(self.returned, identity, MAX_ACKS):
            self.returned.add(identity)
        if row.response_code != INVALID_RECEIPT:
            return
        late = _late(row)
        key = f"{row.unique_key} {fact_in(row.facts, DEADLINE_MS)}"
        if late is not None and has_room(self.acks, key, MAX_ACKS):
            ack = _ack(row, shown(row, _expired(row, late)), late, taken=True)
            keep_least(self.acks, key, ack, MAX_ACKS)
            self.refused.add(key)

    def cases(self, context: Context) -> Iterable[Case]:
        # The invisible time runs on the broker's clock, the acknowledgement is seen on the
        # capture's.
        every = [ack for ack in self.acks.values() if ack.late_ns > CLOCKS_NS and ack.taken]
        for late in spells(every, _Ack.span, self.lasts):
            yield self._case(late, context)
        popped = self.popped
        long = popped.last - popped.first >= LONG_POPPED
        if (
            popped.count >= MANY_POPPED
            and long
            and not self.acknowledged
            # They name no group, so they may be of this one.
            and not context.batch_acks
        ):
            yield self._unacknowledged(context)
        if len(self.returned) < MAX_ACKS:  # otherwise other messages may have been returned, too
            for again in spells(self._redelivered(), _Redelivered.span, self.lasts):
                yield self._redelivered_case(again, context)

    def _redelivered(self) -> list[_Redelivered]:
        return [
            _Redelivered(key[0], key[1] or "", max(rows) + 1, [rows[at] for at in sorted(rows)])
            for key, rows in self.received.items()
            # A message that was returned is a problem of its own (`reconsume-growth`). What was
            # returned before the capture was delivered only once in it.
            if key not in self.returned and min(len(rows), max(rows)) + 1 >= FEWEST_DELIVERIES
        ]

    def _redelivered_case(self, again: list[_Redelivered], context: Context) -> Case:
        again.sort(key=lambda message: (-message.deliveries, message.rows[0].evidence))
        rows = [row for message in again for row in message.rows]
        topic, most = only(message.topic for message in again), again[0].deliveries
        clients = {context.client(row.client_address) for row in rows}
        one = len(again) == 1
        received = f"message {again[0].key}" if one else f"{len(again):,} messages"
        case = Tally.of(row.evidence for row in rows).case(
            f"{self.key} received {received} {'' if one else 'up to '}{times(most)} without"
            f" acknowledging {'it' if one else 'them'} in time",
            Subject(
                topic=topic,
                group=self.key,
                client=only(clients),
                message=again[0].key if one else None,
                server=only(row.server_address for row in rows),
            ),
        )
        case.count = len(again)
        case.grpc = True
        case.details.append(f"received by {first_of(clients)}")
        case.details.append(f"messages: {first_of(message.key for message in again)}")
        return case

    def _unacknowledged(self, context: Context) -> Case:
        topic, length = only(self.topics), duration(self.popped.last - self.popped.first)
        case = self.popped.case(
            f"{self.key} popped {self.popped.count:,} messages of {topic or 'several topics'} in"
            f" {length} and acknowledged none: the broker keeps redelivering them",
            Subject(
                broker=only(map(context.broker, self.brokers)),
                topic=topic,
                group=self.key,
            ),
        )
        case.doubt(
            "their invisible time is not known, and may be longer than the capture",
            Confidence.POSSIBLE,
        )
        return case

    def _case(self, late: list[_Ack], context: Context) -> Case:
        tally = Tally.of(ack.evidence for ack in late)
        count = len(late)
        latest = max(ack.late_ns for ack in late)
        topics = Counter(ack.topic for ack in late)
        topic = only(topics)
        case = tally.case(
            f"{self.key} acknowledged {counted(count, 'message')} of {topic or 'several topics'}"
            f" too late, by up to {duration(latest)}: the broker redelivers such messages",
            Subject(
                broker=only(context.broker(ack.server_address) for ack in late),
                topic=topic,
                group=self.key,
                client=only(context.client(ack.client_address) for ack in late),
            ),
        )
        case.settled = True  # by the receipts alone
        if self.refused:
            case.grpc = True
            case.details.append(
                f"the proxy refused them with INVALID_RECEIPT_HANDLE ({INVALID_RECEIPT})"
            )
        else:
            case.doubt("the broker's clock may differ from that of the capture")
            case.details.append(f"{count:,} of {len(self.acks):,} acknowledgements were late")
        if not topic:
            case.details.append(f"topics: {counted_names(topics)}")
        return case


def _expired(row: ExchangeRecord, late: int) -> str:
    return f"{row.request_name} {duration(late)} after the invisible time expired"


def _ack(row: ExchangeRecord, evidence: Evidence, late: int, taken: bool) -> _Ack:
    ends = row.server_address, row.client_address
    return _Ack(evidence, late, taken, row.topic or "", *ends)


def _late(row: ExchangeRecord) -> int | None:
    """Return the ns from the end of the invisible time to the request, or None if unknown."""
    deadline = number_in(row.facts, DEADLINE_MS)
    if deadline is None or row.request_time is None or deadline < 0:
        return None
    return row.request_time - deadline * MS


def _late_call(row: ExchangeRecord) -> str | None:
    """Return the group of a late call; None if it was refused for another reason."""
    if row.request_name not in CALLS:
        return None
    late = _late(row)
    return row.group if late is not None and late > CLOCKS_NS else None


def _received(row: ExchangeRecord) -> str | None:
    """Return the group of a call that received a message or returned one."""
    return row.group if row.request_name in _TAKEN else None


_TAKEN: Final = RECEIVE_CALLS | {_RETURN}
RULE = DiagnosisRule(
    id="pop-ack-late",
    severity=ProblemSeverity.WARNING,
    title="POP messages are not acknowledged before their invisible time expires",
    searched=(
        "pop invisibleTime",
        "popInvisibleTime",
        "pop message consumed twice",
        "ack late",
        "INVALID_RECEIPT_HANDLE",
        "receipt handle is expired",
        "Failed to change message invisible duration",
    ),
    proof=(
        "ACK_MESSAGE (200051) or CHANGE_MESSAGE_INVISIBLETIME (200053) comes more than a second"
        " after popTime + invisibleTime of its receipt; with gRPC, the proxy refuses AckMessage or"
        " ChangeInvisibleDuration with INVALID_RECEIPT_HANDLE (40013) after that time. Or a group"
        " pops 20 messages or more over 30 s or longer and acknowledges none. Or a gRPC consumer"
        " receives a message for the third time or more, and did not return it."
    ),
    explanation=(
        "A popped message is invisible to other members for invisibleTime. If it is not"
        " acknowledged by then, it becomes visible again and is delivered to some member of the"
        " group once more. A later acknowledgement has no effect: the message is consumed twice."
        " Java's consumer sends none for a message that took too long."
    ),
    advice=(
        "Give the consumer enough time: popInvisibleTime defaults to 60 s and may be 5 s to 300 s."
        " Fetch fewer messages at a time (popBatchNums, default 32): the time runs for all of them"
        " while the first one is consumed."
    ),
    grpc_explanation=(
        "A received message is invisible to other members for its invisible duration. If it is not"
        " acknowledged by then, it is delivered to some member of the group once more. A later"
        " acknowledgement has no effect: the message is consumed twice. For push consumers, the"
        " proxy prolongs the duration until the client is gone."
    ),
    grpc_advice=(
        "Check that the program acknowledges each message, also after an exception, before the"
        " invisible duration that it passes to receive() ends. changeInvisibleDuration prolongs it"
        " for one message. Receive fewer messages at a time: the time runs for all of them while"
        " the first one is consumed. In the case of a push consumer, look for crashes of its"
        " program."
    ),
    grpc=COVERED,
    impact=Impact.REDELIVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests=ACKS),
        Exchanges(key=_late_call, responses={INVALID_RECEIPT}, with_facts=True),
        Exchanges(key=named_group, requests={POP}, responses={SUCCESS}),
        Exchanges(key=_received, responses={OK}, with_facts=True),
        Exchanges(key=_received, statuses={UNANSWERED}, with_facts=True),
    ),
    references=("apache/rocketmq#8332", "apache/rocketmq#4815", "apache/rocketmq#10278"),
    limits=(
        "Batch acknowledgements (200151) are not examined. Without gRPC, a message that is never"
        " acknowledged is not reported if the group acknowledges others. With gRPC, only the first"
        " message of each response counts. Acknowledgements of an offset that the queue does not"
        " have (208) are not reported."
    ),
    rests_on_absence=True,
)
