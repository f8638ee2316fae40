"""A message of POP is acknowledged after its time has run out: it is delivered again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import DEADLINE_MS, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import named_group
from ...problem import (
    Case,
    Confidence,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    place_of,
    seconds,
    shown,
)
from ...refusals import MAX_NAMED, counted_names, only
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import spells

ACKS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
CALLS: Final = frozenset(("AckMessage", "ChangeInvisibleDuration"))
"""the same by gRPC"""
INVALID_RECEIPT: Final = 40013
"""INVALID_RECEIPT_HANDLE: a proxy refuses what came too late"""
CLOCKS_NS: Final = 1_000_000_000
"""what the clocks of the broker and of the capture may be apart"""
MAX_ACKS: Final = 20_000
POP: Final = int(RequestCode.POP_MESSAGE)
MANY_POPPED: Final = 20
"""messages that were popped, none of them acknowledged"""
LONG_POPPED: Final = 30_000_000_000
"""ns over which they were popped: more than a message mostly takes"""
_MS: Final = 1_000_000
_SUCCESS: Final = int(ResponseCode.SUCCESS)


class _Ack(NamedTuple):
    evidence: Evidence
    late_ns: int
    """after the end of the invisible time; negative: before it"""
    taken: bool
    """the broker did not refuse it: it refuses what is not a message of the queue (208)"""
    topic: str
    responder: str
    requester: str

    def span(self) -> tuple[int, int]:
        return self.evidence.time, self.evidence.time


class _Fold(Fold):
    """Acknowledgements of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.acks: dict[str, _Ack] = {}
        """by receipt; the hops of a relay, and one that is repeated, are one"""
        self.refused: set[str] = set()
        """those that a proxy refused"""
        self.popped = Tally()
        self.brokers: set[str] = set()
        self.topics: set[str] = set()
        self.acknowledged = False

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_name in CALLS:
            self._add_call(row)
            return
        if row.request_code == POP:
            if row.message_count:
                what = f"POP_MESSAGE -> {row.message_count} messages"
                self.popped.add(shown(row, what), count=row.message_count)
                if len(self.topics) < MAX_NAMED and len(self.brokers) < MAX_NAMED:
                    self.topics.add(row.topic or "")
                    self.brokers.add(row.responder)
            return
        self.acknowledged = True
        late = _late(row)
        if late is None:
            return
        key = f"{row.topic} {row.queue_id} {row.queue_offset} {fact_in(row.facts, DEADLINE_MS)}"
        before = self.acks.get(key)
        if before is None and len(self.acks) >= MAX_ACKS:
            return
        one = asked(row, f"{row.request_name} {late / 1e9:.1f} s after the time was over")
        if before is None or place_of(one) < place_of(before.evidence):
            taken = row.response_code in (None, _SUCCESS)
            self.acks[key] = _Ack(one, late, taken, row.topic or "", row.responder, row.requester)

    def _add_call(self, row: ExchangeRecord) -> None:
        """Take an acknowledgement that a proxy refused: it prolongs receipts that it accepts."""
        late = _late(row)
        key = f"{row.unique_key} {fact_in(row.facts, DEADLINE_MS)}"
        if late is None or (key not in self.acks and len(self.acks) >= MAX_ACKS):
            return
        one = shown(row, f"{row.request_name} {late / 1e9:.1f} s after the time was over")
        before = self.acks.get(key)
        if before is None or place_of(one) < place_of(before.evidence):
            self.acks[key] = _Ack(one, late, True, row.topic or "", row.responder, row.requester)
            self.refused.add(key)

    def cases(self, context: Context) -> Iterable[Case]:
        every = [one for one in self.acks.values() if one.late_ns > CLOCKS_NS and one.taken]
        for late in spells(every, _Ack.span, self.lasts):
            yield self._case(late, context)
        popped = self.popped
        long = popped.last - popped.first >= LONG_POPPED
        if (
            popped.count >= MANY_POPPED
            and long
            and not self.acknowledged
            and not context.batch_acks
        ):
            yield self._unacknowledged(context)

    def _unacknowledged(self, context: Context) -> Case:
        topic, length = only(self.topics), seconds(self.popped.last - self.popped.first)
        case = self.popped.case(
            f"{self.key} popped {self.popped.count:,} messages of {topic or 'several topics'} in"
            f" {length} and acknowledged none: the broker delivers them again and again",
            Subject(
                broker=only(context.broker(one) for one in self.brokers),
                topic=topic,
                group=self.key,
            ),
        )
        case.confidence = Confidence.POSSIBLE
        case.reason = "their invisible time is not known, and may be longer than the capture"
        return case

    def _case(self, late: list[_Ack], context: Context) -> Case:
        tally = Tally.of(one.evidence for one in late)
        count = len(late)
        latest = max(one.late_ns for one in late)
        topics = Counter(one.topic for one in late)
        what = "1 message" if count == 1 else f"{count:,} messages"
        topic = only(topics)
        case = tally.case(
            f"{self.key} acknowledged {what} of {topic or 'several topics'} too late, by up to"
            f" {latest / 1e9:.1f} s: the broker delivers such messages again",
            Subject(
                broker=only(context.broker(one.responder) for one in late),
                topic=topic,
                group=self.key,
                client=only(context.client(one.requester) for one in late),
            ),
        )
        if self.refused:
            case.details.append(
                f"the proxy refused them with INVALID_RECEIPT_HANDLE ({INVALID_RECEIPT})"
            )
        else:
            case.confidence = Confidence.LIKELY
            case.reason = "the broker's clock is compared with that of the capture"
            case.details.append(f"{count:,} of {len(self.acks):,} acknowledgements were late")
        if not topic:
            case.details.append(f"topics: {counted_names(topics)}")
        return case


def _late(row: ExchangeRecord) -> int | None:
    """Return the ns from the end of the invisible time to the request; None: it is not known."""
    deadline = number_in(row.facts, DEADLINE_MS)
    if deadline is None or row.request_time is None or deadline < 0:
        return None
    return row.request_time - deadline * _MS


def _late_call(row: ExchangeRecord) -> str | None:
    """Return the group of a call that came too late; None: it was refused for another reason."""
    if row.request_name not in CALLS:
        return None
    late = _late(row)
    return row.group if late is not None and late > CLOCKS_NS else None


RULE = DiagnosisRule(
    id="pop-ack-late",
    severity=ProblemSeverity.WARNING,
    title="Messages of POP are acknowledged after their invisible time is over",
    searched=(
        "pop invisibleTime",
        "popInvisibleTime",
        "pop message consumed twice",
        "ack late",
        "INVALID_RECEIPT_HANDLE",
    ),
    proof=(
        "ACK_MESSAGE (200051) or CHANGE_MESSAGE_INVISIBLETIME (200053) more than a second after"
        " popTime + invisibleTime of its receipt; by gRPC AckMessage or ChangeInvisibleDuration"
        " that the proxy refuses with INVALID_RECEIPT_HANDLE (40013) after that time. Or a group"
        " pops 20 messages or more over 30 s or longer and acknowledges none."
    ),
    explanation=(
        "A popped message is invisible for others for invisibleTime. What is not acknowledged by"
        " then becomes visible again and is delivered to some member of the group once more. An"
        " acknowledgement after that comes too late: the message is consumed twice. Java's consumer"
        " sends none for a message that took too long."
    ),
    advice=(
        "Give the consumer enough time: popInvisibleTime has the default 60 s and may be 5 s to"
        " 300 s; a SimpleConsumer of gRPC names it in each receive(). A client can prolong it for"
        " one message (changeInvisibleDuration). Fetch fewer"
        " messages at a time (popBatchNums, default 32): the time runs for all of them while the"
        " first is consumed."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests=ACKS),
        Exchanges(key=_late_call, responses=frozenset((INVALID_RECEIPT,)), with_facts=True),
        Exchanges(key=named_group, requests=frozenset((POP,)), responses=frozenset((_SUCCESS,))),
    ),
    references=("apache/rocketmq#8332", "apache/rocketmq#4815", "apache/rocketmq#10278"),
    limits=(
        "A batch acknowledgement (200151) is not looked into. One message that is never"
        " acknowledged is not told of where others are, nor one of an offset that the queue does"
        " not have (208)."
    ),
)
