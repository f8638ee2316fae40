"""A POP message is acknowledged after its invisible time: it is delivered again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import DEADLINE_MS, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import SUCCESS, has_room, keep_least, named_group
from ...names import MAX_NAMED, counted_names, only
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


class _Fold(Fold):
    """Acknowledgements of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.acks: dict[str, _Ack] = {}
        """by receipt; hops of a relay and repetitions count once"""
        self.refused: set[str] = set()
        """acknowledgements that a proxy refused"""
        self.popped = Tally()
        self.brokers: set[str] = set()
        self.topics: set[str] = set()
        self.acknowledged = False

    def add_exchange(self, row: ExchangeRecord) -> None:
        # Of gRPC, only acknowledgements that a proxy refused get here.
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

    def _add_call(self, row: ExchangeRecord) -> None:
        """Add an acknowledgement refused by a proxy, which extends receipts that it accepts."""
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
        if self.refused:
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


RULE = DiagnosisRule(
    id="pop-ack-late",
    severity=ProblemSeverity.WARNING,
    title="POP messages are acknowledged after their invisible time has expired",
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
        " pops 20 messages or more over 30 s or longer and acknowledges none."
    ),
    explanation=(
        "A popped message is invisible to other members for invisibleTime. If it is not"
        " acknowledged by then, it becomes visible again and is delivered to some member of the"
        " group once more. A later acknowledgement has no effect: the message is consumed twice."
        " Java's consumer sends none for a message that took too long."
    ),
    advice=(
        "Give the consumer enough time: popInvisibleTime defaults to 60 s and may be 5 s to 300 s;"
        " a SimpleConsumer of gRPC sets it in each receive(). A client can prolong it for one"
        " message (changeInvisibleDuration). Fetch fewer messages at a time (popBatchNums, default"
        " 32): the time runs for all of them while the first one is consumed."
    ),
    grpc=COVERED,
    impact=Impact.REDELIVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests=ACKS),
        Exchanges(key=_late_call, responses={INVALID_RECEIPT}, with_facts=True),
        Exchanges(key=named_group, requests={POP}, responses={SUCCESS}),
    ),
    references=("apache/rocketmq#8332", "apache/rocketmq#4815", "apache/rocketmq#10278"),
    limits=(
        "Batch acknowledgements (200151) are not examined. A message that is never acknowledged is"
        " not reported if the group acknowledges others. Acknowledgements of an offset that the"
        " queue does not have (208) are not reported, either."
    ),
)
