"""The outcome of half messages that were not simply committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.broker_store.half_messages import ABANDONED, ENDED
from dissectors.quantities import counted
from dissectors.remoting.topic_names import CHECKED_OUT_TOPIC
from dissectors.rows.message_record import COMMITTED, ROLLED_BACK

from ...context import Context, Need
from ...names import times
from ...problem import Case, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
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
    in_store,
    stored_half,
    subject_of,
    tally_of_stored,
)

MOST_LISTED: Final = 8
_BOTH: Final = "both"
_ENDED: Final = {COMMIT: "committed", ROLLBACK: "rolled back"}
_STORED: Final = {COMMITTED: COMMIT, ROLLED_BACK: ROLLBACK}
"""outcome in a store → decision of a producer"""


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        stored = [half for half in self.halves.ordered() if half.stored is not None]
        for group, topic, several in by_group_and_topic(stored):
            # If the producer decided all at once there is nothing to report; undecided
            # messages are for other rules, unless the capture ends soon.
            decided = sum(_outcome(half, context) is not None for half in several)
            unsure = any(half.unknown.count or half.checked for half in several)
            if (
                (decided and (decided < len(several) or unsure))
                or (unsure and all(_is_young(half, context) for half in several))
                or any(_differs(half, context) for half in several)
            ):
                yield _case(group, topic, several, context)


def _case(group: str, topic: str, halves: list[ObservedHalf], context: Context) -> Case:
    tally = tally_of_stored(halves)
    for message in halves:
        decided = [end.evidence for end in message.ordered_ends[:1]]
        for evidence in (*decided, *message.checks.evidence[:1]):
            tally.add(evidence)
    tally.count = len(halves)
    outcomes = Counter(_BOTH if half.contradicts else _outcome(half, context) for half in halves)
    checks = sum(half.checked for half in halves)
    parts = [
        f"{outcomes[decision]} {said}"
        for decision, said in (
            (COMMIT, "committed"),
            (ROLLBACK, "rolled back"),
            (_BOTH, "committed and rolled back"),
            (ABANDONED, f"moved to {CHECKED_OUT_TOPIC}"),
            (ENDED, "committed or rolled back"),
            (None, "not decided"),
        )
        if outcomes[decision]
    ]
    case = tally.case(
        f"{counted(len(halves), 'half message')} of {group} to {topic}: {', '.join(parts)};"
        f" the broker checked back {times(checks)}",
        subject_of(halves, context, with_message=False),
    )
    listed_halves = sorted(halves, key=lambda half: (half.decision is not None, not half.checked))
    # Undecided and checked ones first: they are what the reader looks for.
    case.details = [_described(half, context) for half in listed_halves[:MOST_LISTED]]
    if len(halves) > MOST_LISTED:
        case.details.append(f"and {len(halves) - MOST_LISTED} more")
    return case


def _is_young(half: ObservedHalf, context: Context) -> bool:
    """Return whether no other rule covers a half message yet."""
    return age_of(half, context.last_time) < TIMEOUT_NS and half.checked < MANY_CHECKS


def _outcome(message: ObservedHalf, context: Context) -> str | None:
    """Return how a half message ended, from the broker's store if it is not captured."""
    if message.decision is not None:
        return message.decision
    half = stored_half(message, context)
    return None if half is None or half.outcome is None else _STORED.get(half.outcome, half.outcome)


def _differs(message: ObservedHalf, context: Context) -> bool:
    """Return whether the broker's store contradicts the producer's decision."""
    half = stored_half(message, context)
    if half is None or message.decision is None or half.outcome == ENDED:
        return False
    return _STORED.get(half.outcome or "") != message.decision


def _described(message: ObservedHalf, context: Context) -> str:
    if message.decision is None:
        end = "not decided in the capture"
    elif message.contradicts:
        first, then = message.ordered_ends
        end = f"{_ENDED[first.decision]} first and {_ENDED[then.decision]} later"
    else:
        (decided,) = message.ordered_ends
        end = _ENDED[decided.decision]
        end += " in response to a check" if decided.by_check else " by the producer itself"
    checked = f"; checked {times(message.checked)}" if message.checked else ""
    unknown = f"; unknown {times(message.unknown.count)}" if message.unknown.count else ""
    return f"{message.key}: {end}{checked}{unknown}{in_store(message, context)}"


RULE = DiagnosisRule(
    id="transaction-outcome",
    severity=ProblemSeverity.INFO,
    title="Outcomes of half messages",
    searched=("transaction message commit rollback", "TransactionMQProducer"),
    proof=(
        "Sends that the broker stored as half messages, with their END_TRANSACTION (37) and"
        " CHECK_TRANSACTION_STATE (39). Reported if a message was checked, unknown, or undecided."
    ),
    explanation=(
        "A half message is stored where consumers do not see it. The producer either commits it"
        " (the broker then delivers it) or rolls it back. If the producer sends unknown or nothing,"
        " the broker checks back once the message is older than 6 s, in rounds every 30 s (before"
        " 5.1.1: 60 s). A check of a message that"
        " was decided a moment ago is normal: the broker reads the decisions with a delay."
    ),
    advice=(
        "Compare the outcomes with the intended ones. Many checks mean that local transactions take"
        " longer than transactionTimeOut (default 6 s) or end as unknown. (Intended outcomes need"
        " no action.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=OF_HALVES,
    limits=(
        "Clients send END_TRANSACTION (37) oneway. Only a copy of the broker's store shows whether"
        " the broker accepted it (--store DIR). Half messages sent before the capture are not"
        " counted."
    ),
    needs={Need.SENDS},
    lasts=None,
    consequence_of={"transaction-ends-contradict", "check-at-other-producer"},
)
