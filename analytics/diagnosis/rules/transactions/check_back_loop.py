"""The broker asks again and again what became of a half message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...context import Context
from ...need import Need
from ...problem import Case, ProblemSeverity, Tally
from ...refusals import listed
from ...rule import TELEMETRY, DiagnosisRule
from ...spells import span_of, spells
from .halves import (
    MANY_CHECKS,
    OF_HALVES,
    HalvesFold,
    ObservedHalf,
    by_group_and_topic,
    subject_of,
)

MOST_NAMED: Final = 5


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        looping = [one for one in self.halves.ordered() if one.checked >= MANY_CHECKS]
        asked = [one for one in looping if one.decision is None]
        for (group, topic), several in sorted(by_group_and_topic(asked).items()):
            for spell in spells(several, _span, self.lasts):
                yield _case(group, topic, spell, context)


def _span(one: ObservedHalf) -> tuple[int, int]:
    return span_of(one.checks)


def _case(group: str, topic: str, several: list[ObservedHalf], context: Context) -> Case:
    tally = Tally()
    for one in several:
        tally.merge(one.checks)
    checks = [one.checked for one in several]
    tally.count = sum(checks)
    count = len(several)
    silent = sum(not one.unknown.count for one in several)
    what = f"half message {several[0].key}" if count == 1 else f"{count:,} half messages"
    of = f" of {group}" if group else ""
    to = f" to {topic}" if topic else ""
    often = f"{min(checks)} to {max(checks)}" if min(checks) != max(checks) else f"{checks[0]}"
    each = " each" if count > 1 else ""
    producers = {context.client(end) for one in several for end in one.answerers}
    turns = f", at {len(producers)} producers in turn" if len(producers) > 1 else ""
    answer = (
        "nobody answered"
        if silent == count
        else "the answer was always unknown"
        if not silent
        else "no answer decided one"
    )
    case = tally.case(
        f"the broker checked back {often} times{each} for {what}{of}{to}{turns}: {answer}",
        subject_of(several, context, several[0].key if count == 1 else None),
    )
    if len(producers) > 1:
        case.details.append(f"producers: {listed(producers)}")
    case.details.append(f"answers that said unknown: {sum(one.unknown.count for one in several)}")
    case.details.append(f"messages: {', '.join(one.key for one in several[:MOST_NAMED])}")
    return case


RULE = DiagnosisRule(
    id="check-back-loop",
    severity=ProblemSeverity.WARNING,
    title="The broker checks back again and again for a half message",
    searched=("CHECK_TRANSACTION_STATE", "checkLocalTransaction called repeatedly"),
    proof=(
        "CHECK_TRANSACTION_STATE (39) for one transaction three times or more, and no"
        " END_TRANSACTION (37) that commits or rolls it back."
    ),
    explanation=(
        "The broker asks a producer of the group for the state of a half message that is not"
        " decided. The producer answers that it does not know, or not at all: its check listener"
        " throws, returns UNKNOW, or the group of the producer that was asked is not the one that"
        " began the transaction. After transactionCheckMax checks the message goes to"
        " TRANS_CHECK_MAX_TIME_TOPIC and is never delivered."
    ),
    advice=(
        "Let checkLocalTransaction look up the state in the same store that the local transaction"
        " writes, and return ROLLBACK_MESSAGE for a transaction that it does not find after some"
        " time. transactionCheckInterval has the default 30 s, transactionCheckMax 15,"
        " transactionTimeOut 6 s. A message may set CHECK_IMMUNITY_TIME_IN_SECONDS itself."
    ),
    grpc=TELEMETRY,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9500", "apache/rocketmq#8311", "apache/rocketmq#6655"),
    limits="Checks before the capture are not counted.",
    needs=frozenset((Need.TRANSACTIONS,)),
    rests_on_absence=True,
    consequence_of=frozenset(("end-transaction-refused",)),
)
