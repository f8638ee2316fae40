"""What became of half messages that were not simply committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ...context import Context
from ...need import Need
from ...problem import Case, ProblemSeverity, Tally, place_of
from ...refusals import times
from ...rule import TELEMETRY, DiagnosisRule
from .halves import (
    COMMIT,
    MANY_CHECKS,
    OF_HALVES,
    ROLLBACK,
    TIMEOUT_NS,
    HalvesFold,
    ObservedHalf,
    age_of,
    by_group_and_topic,
    subject_of,
)

MOST_SAID: Final = 8
_BOTH: Final = "both"
_ENDED: Final = {COMMIT: "committed", ROLLBACK: "rolled back"}


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        stored = [one for one in self.halves.ordered() if one.stored is not None]
        for (group, topic), several in sorted(by_group_and_topic(stored).items()):
            # Where the producer decided all at once there is nothing to tell, and where it decided
            # none, other rules tell it, unless the capture ends soon.
            decided = sum(one.decision is not None for one in several)
            unsure = any(one.unknown.count or one.checked for one in several)
            if (decided and (decided < len(several) or unsure)) or (
                unsure and all(_is_young(one, context) for one in several)
            ):
                yield _case(group, topic, several, context)


def _case(group: str, topic: str, several: list[ObservedHalf], context: Context) -> Case:
    tally = Tally()
    for one in several:
        if one.stored is not None:
            tally.add(one.stored)
    for one in several:
        for evidence in (one.decided, *one.checks.evidence[:1]):
            if evidence is not None:
                tally.add(evidence)
    tally.count = len(several)
    outcomes = Counter(_BOTH if one.contradicts else one.decision for one in several)
    checks = sum(one.checked for one in several)
    parts = [
        f"{outcomes[decision]} {said}"
        for decision, said in (
            (COMMIT, "committed"),
            (ROLLBACK, "rolled back"),
            (_BOTH, "committed and rolled back"),
            (None, "not decided"),
        )
        if outcomes[decision]
    ]
    what = "1 half message" if len(several) == 1 else f"{len(several):,} half messages"
    case = tally.case(
        f"{what} of {group} to {topic}: {', '.join(parts)};"
        f" the broker checked back {times(checks)}",
        subject_of(several, context),
    )
    told = sorted(several, key=lambda one: (one.decision is not None, not one.checked))
    case.details = [_told(one) for one in told[:MOST_SAID]]
    if len(several) > MOST_SAID:
        case.details.append(f"and {len(several) - MOST_SAID} more")
    return case


def _is_young(one: ObservedHalf, context: Context) -> bool:
    """Return whether no other rule speaks of a half message yet."""
    return age_of(one, context.last_time) < TIMEOUT_NS and one.checked < MANY_CHECKS


def _told(one: ObservedHalf) -> str:
    if one.decision is None:
        end = "not decided in the capture"
    elif one.contradicts:
        first, then = sorted(one.ends.values(), key=lambda end: place_of(end.evidence))
        end = f"{_ENDED[first.decision]} first and {_ENDED[then.decision]} later"
    else:
        end = _ENDED[one.decision]
        end += " in answer to a check" if one.by_check else " by the producer itself"
    checked = f"; checked {times(one.checked)}" if one.checked else ""
    unknown = f"; unknown {times(one.unknown.count)}" if one.unknown.count else ""
    return f"{one.key}: {end}{checked}{unknown}"


RULE = DiagnosisRule(
    id="transaction-outcome",
    severity=ProblemSeverity.INFO,
    title="Outcomes of half messages",
    searched=("transaction message commit rollback", "TransactionMQProducer"),
    proof=(
        "Sends that the broker stored as half messages, the END_TRANSACTION (37) of each, and the"
        " CHECK_TRANSACTION_STATE (39) for it. It is told where one was checked, unknown or not"
        " decided."
    ),
    explanation=(
        "A half message is stored where consumers do not see it. The producer commits it, and the"
        " broker delivers it, or rolls it back. Where it says unknown or nothing, the broker checks"
        " back after 6 s and every 30 s. A check of a message that was decided a moment ago is"
        " normal: the broker reads the decisions with a delay."
    ),
    advice=(
        "Compare the outcomes with what the producer wants. Many checks mean that local"
        " transactions take longer than transactionTimeOut (default 6 s) or end as unknown."
        " (Outcomes as wanted need no action.)"
    ),
    grpc=TELEMETRY,
    fold=_Fold,
    exchanges=OF_HALVES,
    limits=(
        "Clients send 37 one-way: that the broker took it is not seen. Half messages that were sent"
        " before the capture are not counted."
    ),
    needs=frozenset((Need.SENDS,)),
    lasts=None,
    consequence_of=frozenset(("transaction-ends-contradict",)),
)
