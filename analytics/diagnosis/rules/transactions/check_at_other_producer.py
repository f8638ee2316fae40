"""The broker checks a half message with a client that did not send it, and rolls it back."""

from __future__ import annotations

from collections.abc import Iterable

from ...context import Context, Need
from ...names import listed, was
from ...problem import Case, Impact, ProblemSeverity, Tally
from ...rule import COVERED, DiagnosisRule
from .halves import (
    OF_HALVES,
    ROLLBACK,
    HalfEnd,
    HalvesFold,
    ObservedHalf,
    by_group_and_topic,
    keys_text,
    named_halves,
    subject_of,
)


class _Fold(HalvesFold):
    def cases(self, context: Context) -> Iterable[Case]:
        rolled_back = [
            (half, end)
            for half in self.halves.ordered()
            if (end := _rolled_back_elsewhere(half, context)) is not None
        ]
        ends = {half.key: end for half, end in rolled_back}
        for group, topic, several in by_group_and_topic(half for half, _ in rolled_back):
            yield _case(group, topic, several, ends, context)


def _rolled_back_elsewhere(half: ObservedHalf, context: Context) -> HalfEnd | None:
    """Return the rollback in response to a check at a client that did not send the message."""
    end = half.ends.get(ROLLBACK)
    # A rollback that answers no check is the sender's own decision.
    if end is None or not end.by_check or half.stored is None or half.client is None:
        return None
    sender, other = context.clients.get(half.client), context.clients.get(end.client)
    # Without both ids it may be the sender on a new connection.
    return end if sender is not None and other is not None and sender != other else None


def _case(
    group: str,
    topic: str,
    halves: list[ObservedHalf],
    ends: dict[str, HalfEnd],
    context: Context,
) -> Case:
    tally = Tally.of(ends[half.key].evidence for half in halves)
    tally.count = len(halves)
    senders = sorted({context.client(half.client) for half in halves if half.client is not None})
    others = {context.client(ends[half.key].client) for half in halves}
    case = tally.case(
        f"{named_halves(halves)} of {group} to {topic} {was(len(halves))} sent by"
        f" {listed(senders)} and rolled back by {listed(others)}, which the broker asked instead",
        subject_of(halves, context),
    )
    case.doubt("the other client may run the same program and know the transaction")
    case.details.append(keys_text(halves))
    return case


RULE = DiagnosisRule(
    id="check-at-other-producer",
    severity=ProblemSeverity.WARNING,
    title="A client rolls back half messages that another client sent",
    searched=("check back wrong producer", "two applications in one producer group"),
    proof=(
        "One client sends a half message. Another client of the group gets the"
        " CHECK_TRANSACTION_STATE (39) for it, and responds with an END_TRANSACTION (37) that rolls"
        " it back."
    ),
    explanation=(
        "The broker checks an undecided half message with any connected producer of the group, not"
        " with the one that sent it. If two programs share a producer group, the other program does"
        " not know the transaction. If it responds with rollback, the message is not delivered"
        " unless its sender commits it later."
    ),
    advice=(
        "Give each program its own producer group. If the clients are instances of one program, let"
        " checkLocalTransaction read the state from a store that all instances share. For a"
        " transaction that it does not find, return UNKNOW until it can be sure."
    ),
    grpc=COVERED,
    impact=Impact.ROLLED_BACK,
    fold=_Fold,
    exchanges=OF_HALVES,
    references=("apache/rocketmq#9791",),
    limits="Clients are distinguished by the client ids of their heartbeats.",
    needs={Need.TRANSACTIONS, Need.HEARTBEATS},
    lasts=None,
)
