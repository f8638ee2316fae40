"""The broker checks a half message with a client that did not send it, and rolls it back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...context import Context
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Tally
from ...refusals import listed
from ...rule import TELEMETRY, DiagnosisRule
from .halves import (
    OF_HALVES,
    ROLLBACK,
    HalfEnd,
    HalvesFold,
    ObservedHalf,
    by_group_and_topic,
    subject_of,
)

MOST_NAMED: Final = 5


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        found = [
            (one, end)
            for one in self.halves.ordered()
            if (end := _rolled_back_elsewhere(one, context)) is not None
        ]
        ends = {one.key: end for one, end in found}
        for (group, topic), several in sorted(by_group_and_topic(one for one, _ in found).items()):
            yield _case(group, topic, several, ends, context)


def _rolled_back_elsewhere(one: ObservedHalf, context: Context) -> HalfEnd | None:
    """Return the rollback in answer to a check by a client that did not send the message."""
    end = one.ends.get(ROLLBACK)
    if end is None or not end.by_check or one.stored is None or one.client is None:
        return None
    sender, other = context.clients.get(one.client), context.clients.get(end.client)
    # Without both ids it may be the sender on a new connection.
    return end if sender is not None and other is not None and sender != other else None


def _case(
    group: str,
    topic: str,
    several: list[ObservedHalf],
    ends: dict[str, HalfEnd],
    context: Context,
) -> Case:
    tally = Tally.of(ends[one.key].evidence for one in several)
    tally.count = count = len(several)
    senders = sorted({context.client(one.client) for one in several if one.client is not None})
    others = {context.client(ends[one.key].client) for one in several}
    what = f"half message {several[0].key}" if count == 1 else f"{count:,} half messages"
    were = "was" if count == 1 else "were"
    case = tally.case(
        f"{what} of {group} to {topic} {were} sent by {listed(senders)} and rolled back by"
        f" {listed(others)}, which the broker asked instead",
        subject_of(several, context, several[0].key if count == 1 else None),
    )
    case.confidence = Confidence.LIKELY
    case.reason = "another instance of the same program could know the transaction"
    case.details.append(f"messages: {', '.join(one.key for one in several[:MOST_NAMED])}")
    return case


RULE = DiagnosisRule(
    id="check-at-other-producer",
    severity=ProblemSeverity.WARNING,
    title="A client rolls back half messages that another client sent",
    searched=("check back wrong producer", "two applications in one producer group"),
    proof=(
        "A half message sent by one client, a CHECK_TRANSACTION_STATE (39) for it to another client"
        " of the group, and that client's END_TRANSACTION (37) with rollback in answer to it."
    ),
    explanation=(
        "The broker checks an undecided half message with any connected producer of the group, not"
        " with the one that sent it. If two programs share a producer group, the other program does"
        " not know the transaction. If it answers rollback, the message is never delivered, even"
        " though the local transaction may commit."
    ),
    advice=(
        "Give each program its own producer group. If the clients are instances of one program, let"
        " checkLocalTransaction read the state from a store that all instances share. For a"
        " transaction that it does not find, return UNKNOW until it can be sure."
    ),
    grpc=TELEMETRY,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9791",),
    limits="Clients are told apart by the client ids of their heartbeats.",
    needs=frozenset((Need.TRANSACTIONS, Need.HEARTBEATS)),
    lasts=None,
)
