"""A message of POP is acknowledged after its time has run out: it is delivered again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts import DEADLINE_MS, fact_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, asked
from ...refusals import MAX_NAMED, counted_names, only
from ...rule import DiagnosisRule, Exchanges, Fold

ACKS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
CLOCKS_NS: Final = 1_000_000_000
"""what the clocks of the broker and of the capture may be apart"""
_MS: Final = 1_000_000


class _Fold(Fold):
    """Acknowledgements of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.acks = 0
        self.latest_ns = 0
        self.topics: Counter[str] = Counter()
        self.brokers: set[str] = set()
        self.clients: set[str] = set()
        self.refused = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        late = _late(row)
        if late is None:
            return
        self.acks += 1
        if late <= CLOCKS_NS:
            return
        self.tally.add(asked(row, f"{row.request_name} {late / 1e9:.1f} s after the time was over"))
        self.latest_ns = max(self.latest_ns, late)
        self.refused += bool(row.response_code)
        topic = row.topic
        if topic and (topic in self.topics or len(self.topics) < MAX_NAMED):
            self.topics[topic] += 1
        if len(self.brokers) < MAX_NAMED:
            self.brokers.add(row.responder)
        if len(self.clients) < MAX_NAMED:
            self.clients.add(row.requester)

    def cases(self, context: Context) -> Iterable[Case]:
        count = self.tally.count
        if not count:
            return
        what = "1 message" if count == 1 else f"{count:,} messages"
        topic = only(self.topics)
        case = self.tally.case(
            f"{self.key} acknowledged {what} of {topic or 'several topics'} too late, by up to"
            f" {self.latest_ns / 1e9:.1f} s: the broker delivers such messages again",
            Subject(
                broker=only(context.broker(one) for one in self.brokers),
                topic=topic,
                group=self.key,
                client=only(context.client(one) for one in self.clients),
            ),
        )
        case.confidence = Confidence.LIKELY
        case.reason = "the broker's clock is compared with that of the capture"
        case.details.append(f"{count:,} of {self.acks:,} acknowledgements were late")
        if not topic:
            case.details.append(f"topics: {counted_names(self.topics)}")
        if self.refused:
            case.details.append(f"the broker refused {self.refused} of them")
        yield case


def _late(row: ExchangeRecord) -> int | None:
    """Return the ns from the end of the invisible time to the request; None: it is not known."""
    deadline = fact_in(row.facts, DEADLINE_MS)
    if deadline is None or row.request_time is None or not deadline.isdecimal():
        return None
    return row.request_time - int(deadline) * _MS


def _group(row: ExchangeRecord) -> str | None:
    return row.group


RULE = DiagnosisRule(
    id="pop-ack-late",
    severity=ProblemSeverity.WARNING,
    title="Messages of POP are acknowledged after their invisible time is over",
    searched=("pop invisibleTime", "popInvisibleTime", "pop message consumed twice", "ack late"),
    proof=(
        "ACK_MESSAGE (200051) or CHANGE_MESSAGE_INVISIBLETIME (200053) more than a second after"
        " popTime + invisibleTime of its receipt."
    ),
    explanation=(
        "A popped message is invisible for others for invisibleTime. What is not acknowledged by"
        " then becomes visible again and is delivered to some member of the group once more. An"
        " acknowledgement after that comes too late: the message is consumed twice."
    ),
    advice=(
        "Give the consumer enough time: popInvisibleTime has the default 60 s and may be 5 s to"
        " 300 s; a client can prolong it for one message (changeInvisibleDuration). Fetch fewer"
        " messages at a time (popBatchNums, default 32): the time runs for all of them while the"
        " first is consumed."
    ),
    fold=_Fold,
    exchanges=(Exchanges(key=_group, requests=ACKS),),
    references=("apache/rocketmq#8332", "apache/rocketmq#4815"),
    limits=(
        "A batch acknowledgement (200151) is not looked into. A message that is never acknowledged"
        " is not told of."
    ),
    needs=frozenset((Need.PULLS,)),
)
