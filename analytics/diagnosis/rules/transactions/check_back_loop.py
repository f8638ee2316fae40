"""The broker repeatedly checks the outcome of a half message."""

from __future__ import annotations

from collections.abc import Iterable

from ...context import Context, Need
from ...names import listed
from ...problem import Case, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
from ...spells import joined, span_of, spells
from .halves import (
    MANY_CHECKS,
    OF_HALVES,
    HalvesFold,
    ObservedHalf,
    by_group_and_topic,
    keys_text,
    named_halves,
    of_and_to,
    subject_of,
)


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        looping = [half for half in self.halves.ordered() if half.checked >= MANY_CHECKS]
        asked = [half for half in looping if half.decision is None]
        for group, topic, several in by_group_and_topic(asked):
            for spell in spells(several, _span, self.lasts):
                yield _case(group, topic, spell, context)


def _span(half: ObservedHalf) -> tuple[int, int]:
    return span_of(half.checks)


def _case(group: str, topic: str, halves: list[ObservedHalf], context: Context) -> Case:
    tally = joined(half.checks for half in halves)
    checks = [half.checked for half in halves]
    tally.count = sum(checks)
    count = len(halves)
    silent = sum(not half.unknown.count for half in halves)
    often = f"{min(checks)} to {max(checks)}" if min(checks) != max(checks) else f"{checks[0]}"
    each = " each" if count > 1 else ""
    producers = {context.client(end) for half in halves for end in half.proxied or half.responders}
    turns = f", at {len(producers)} producers in turn" if len(producers) > 1 else ""
    outcome = (
        "no producer responded"
        if silent == count
        else "the response was always unknown"
        if not silent
        else "no response decided one"
    )
    case = tally.case(
        f"the broker checked back {often} times{each} for {named_halves(halves)}"
        f"{of_and_to(group, topic)}{turns}: {outcome}",
        subject_of(halves, context),
    )
    if len(producers) > 1:
        case.details.append(f"producers: {listed(producers)}")
    unknown = sum(half.unknown.count for half in halves)
    case.details.append(f"responses with the state unknown: {unknown}")
    case.details.append(keys_text(halves))
    return case


RULE = DiagnosisRule(
    id="check-back-loop",
    severity=ProblemSeverity.WARNING,
    title="The broker checks back repeatedly for a half message",
    searched=("CHECK_TRANSACTION_STATE", "checkLocalTransaction called repeatedly"),
    proof=(
        "Three or more CHECK_TRANSACTION_STATE (39) for one transaction, and no END_TRANSACTION"
        " (37) that commits it or rolls it back."
    ),
    explanation=(
        "The broker asks a producer of the group for the state of an undecided half message. The"
        " producer responds with unknown, or not at all: its check listener throws, returns UNKNOW,"
        " or the asked producer did not start the transaction. After transactionCheckMax checks,"
        " the message goes to TRANS_CHECK_MAX_TIME_TOPIC and is never delivered."
    ),
    advice=(
        "Let checkLocalTransaction look up the state in the store that the local transaction writes"
        " to, and return ROLLBACK_MESSAGE for a transaction that it does not find after some time."
        " transactionCheckInterval defaults to 30 s (before 5.1.1: 60 s), transactionCheckMax to"
        " 15, transactionTimeOut to 6 s. The message property CHECK_IMMUNITY_TIME_IN_SECONDS sets"
        " the time before its first check."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9500", "apache/rocketmq#8311", "apache/rocketmq#6655"),
    limits="Checks before the capture are not counted.",
    needs={Need.TRANSACTIONS},
    rests_on_absence=True,
    consequence_of={"end-transaction-refused"},
)
