"""A broker refuses sends because too few replicas are in sync."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import ResponseCode

from ...context import Context, Need
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARKS: Final = ("in-sync replicas not enough", "IN_SYNC_REPLICAS_NOT_ENOUGH")
"""SendMessageProcessor.handlePutMessageResult; the name if a message is returned"""


class _Fold(RefusingBroker):
    because = "too few replicas are in sync with it"

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        messages, most = self.sent_again(context)
        if messages:
            lines.append(f"{counted(messages, 'message')} tried up to {most} times, always refused")
        return lines


RULE = DiagnosisRule(
    id="isr-not-enough",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses sends because too few replicas are in sync",
    searched=("in-sync replicas not enough",),
    proof="Response code 1 to a send, with the remark `in-sync replicas not enough`.",
    explanation=(
        "Before it responds, the broker must have each message on a number of replicas, including"
        " itself. Too few replicas are in sync, so it refuses the message without storing it. A"
        " producer retries after code 1, but this broker refuses the next attempt, too."
    ),
    advice=(
        "Start the missing slaves, or find out why they are behind. inSyncReplicas and"
        " minInSyncReplicas (both default 1) set the number of replicas; enableAutoInSyncReplicas"
        " (default false) lets the broker continue with as few as minInSyncReplicas replicas. With"
        " a controller, check the sync state set (mqadmin getSyncStateSet)."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_ERROR,)),
    needs={Need.SENDS},
)
