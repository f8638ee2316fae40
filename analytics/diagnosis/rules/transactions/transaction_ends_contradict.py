"""A half message is both committed and rolled back."""

from __future__ import annotations

from collections.abc import Iterable

from ...context import Context, Need
from ...names import was
from ...problem import Case, ProblemSeverity, Tally
from ...rule import COVERED, DiagnosisRule
from .halves import (
    MOST_NAMED,
    OF_HALVES,
    HalvesFold,
    ObservedHalf,
    by_group_and_topic,
    in_store,
    named_halves,
    of_and_to,
    subject_of,
)


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        both = [half for half in self.halves.ordered() if half.contradicts]
        for group, topic, several in by_group_and_topic(both):
            yield _case(group, topic, several, context)


def _case(group: str, topic: str, halves: list[ObservedHalf], context: Context) -> Case:
    tally = Tally.of(end.evidence for half in halves for end in half.ends.values())
    tally.count = len(halves)
    case = tally.case(
        f"{named_halves(halves)}{of_and_to(group, topic)} {was(len(halves))} both committed and"
        " rolled back; a commit delivers the message even after a rollback",
        subject_of(halves, context),
    )
    for message in halves[:MOST_NAMED]:
        ends = (f"{end.decision} by {context.client(end.client)}" for end in message.ordered_ends)
        text = ", then ".join(ends)
        case.details.append(f"{message.key}: {text}{in_store(message, context)}")
    return case


RULE = DiagnosisRule(
    id="transaction-ends-contradict",
    severity=ProblemSeverity.WARNING,
    title="A half message is both committed and rolled back",
    searched=("committed and rolled back", "checkLocalTransaction returns wrong state"),
    proof=(
        "One END_TRANSACTION (37) with commit and another one with rollback for the same half"
        " message."
    ),
    explanation=(
        "A producer ends its transaction, or responds to the broker's check, more than once, with"
        " different states. The broker carries out each: a commit delivers the message even after a"
        " rollback, and a rollback after a commit comes too late. So the message may be delivered"
        " although its local transaction was rolled back."
    ),
    advice=(
        "Make checkLocalTransaction read the state that the local transaction committed, from a"
        " store that all producers of the group share. Return UNKNOW while the transaction is still"
        " running. Give each program its own producer group: the broker may check with any producer"
        " of the group."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9791",),
    needs={Need.TRANSACTIONS},
    lasts=None,
    consequence_of={"check-at-other-producer"},
)
