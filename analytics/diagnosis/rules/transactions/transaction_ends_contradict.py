"""A half message is both committed and rolled back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...context import Context
from ...need import Need
from ...problem import Case, ProblemSeverity, Tally, place_of
from ...rule import TELEMETRY, DiagnosisRule
from .halves import OF_HALVES, HalvesFold, ObservedHalf, by_group_and_topic, subject_of

MOST_NAMED: Final = 5


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        both = [one for one in self.halves.ordered() if one.contradicts]
        for (group, topic), several in sorted(by_group_and_topic(both).items()):
            yield _case(group, topic, several, context)


def _case(group: str, topic: str, several: list[ObservedHalf], context: Context) -> Case:
    tally = Tally()
    for one in several:
        for end in one.ends.values():
            tally.add(end.evidence)
    tally.count = count = len(several)
    what = f"half message {several[0].key}" if count == 1 else f"{count:,} half messages"
    of = f" of {group}" if group else ""
    to = f" to {topic}" if topic else ""
    were = "was" if count == 1 else "were"
    case = tally.case(
        f"{what}{of}{to} {were} both committed and rolled back; the broker keeps the first"
        " decision",
        subject_of(several, context, several[0].key if count == 1 else None),
    )
    for one in several[:MOST_NAMED]:
        ends = sorted(one.ends.values(), key=lambda end: place_of(end.evidence))
        said = ", then ".join(f"{end.decision} by {context.client(end.client)}" for end in ends)
        case.details.append(f"{one.key}: {said}")
    return case


RULE = DiagnosisRule(
    id="transaction-ends-contradict",
    severity=ProblemSeverity.WARNING,
    title="A half message is both committed and rolled back",
    searched=("committed and rolled back", "checkLocalTransaction returns wrong state"),
    proof="END_TRANSACTION (37) with commit and another with rollback for one half message.",
    explanation=(
        "A producer ends its transaction, or answers the broker's check, more than once, and the"
        " responses differ. The broker acts on the first one that arrives and ignores the rest. So"
        " the message may be delivered although its local transaction was rolled back, or be lost"
        " although it was committed."
    ),
    advice=(
        "Make checkLocalTransaction read the state that the local transaction committed, from a"
        " store that all producers of the group share. Return UNKNOW while the transaction is still"
        " running. Give each program its own producer group: the broker may check with any producer"
        " of the group."
    ),
    grpc=TELEMETRY,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9791",),
    needs=frozenset((Need.TRANSACTIONS,)),
    lasts=None,
    consequence_of=frozenset(("check-at-other-producer",)),
)
