"""Messages are sent one-way: nobody can tell whether they were stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.remoting.code_sets import SENDS
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, place_of
from ...refusals import counted_names, only
from ...rule import DiagnosisRule, Exchanges, Fold
from .traces import is_traced

MAX_MESSAGES: Final = 20_000


class _Send(NamedTuple):
    evidence: Evidence
    requester: str
    responder: str
    group: str


class _Fold(Fold):
    """One-way sends of one topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.messages: dict[str, _Send] = {}
        self.further = Tally()
        """over MAX_MESSAGES"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        # A relay sends the message again: it is one, and the first hop is its client's.
        key = row.unique_key or f"{row.capture} {row.conversation} {row.opaque}"
        before = self.messages.get(key)
        one = asked(row, f"{row.request_name} one-way to {row.responder}")
        if before is None and len(self.messages) >= MAX_MESSAGES:
            self.further.add(one)
        elif before is None or place_of(one) < place_of(before.evidence):
            self.messages[key] = _Send(one, row.requester, row.responder, row.group or "")

    def cases(self, context: Context) -> Iterable[Case]:
        tally = Tally.of(send.evidence for send in self.messages.values())
        tally.merge(self.further)
        count = tally.count
        if not count:
            return
        sends = self.messages.values()
        groups = Counter(send.group for send in sends)
        group = only(groups)
        by = group or f"{len(groups)} groups"
        was = "1 message was" if count == 1 else f"{count:,} messages were"
        case = tally.case(
            f"{was} sent one-way to {self.key} by {by}: nobody can tell whether the broker stored"
            f" {'it' if count == 1 else 'them'}",
            Subject(
                broker=only(context.broker(send.responder) for send in sends),
                topic=self.key,
                group=group,
                client=only(context.client(send.requester) for send in sends),
            ),
        )
        if group is None:
            case.details.append(f"groups: {counted_names(groups)}")
        yield case


def _topic(row: ExchangeRecord) -> str | None:
    return None if is_traced(row) else row.topic


RULE = DiagnosisRule(
    id="oneway-unconfirmed",
    severity=ProblemSeverity.INFO,
    title="Messages are sent oneway, without a confirmation",
    searched=("sendOneway", "oneway message lost"),
    proof="Sends with bit 1 of the flag set: the broker does not answer them.",
    explanation=(
        "sendOneway writes the request and does not wait. The broker answers nothing, also when it"
        " refuses the message, is busy, or may not store it. There is no retry. It is made for logs"
        " and the like, where single messages may be lost."
    ),
    advice=(
        "Use send() or send(…, SendCallback) for messages that must not be lost. Whether a one-way"
        " message arrived can only be seen at the consumers or with mqadmin queryMsgByUniqueKey."
    ),
    grpc="gRPC has no oneway sends.",
    fold=_Fold,
    exchanges=(Exchanges(key=_topic, requests=SENDS, statuses=frozenset((ONEWAY,))),),
    references=("alibaba/rocketmq#392",),
    limits="It says nothing of whether messages were lost.",
    needs=frozenset((Need.SENDS,)),
    lasts=None,
)
