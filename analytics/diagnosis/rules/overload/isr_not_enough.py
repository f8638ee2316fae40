"""A broker refuses sends because too few replicas follow it."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Context
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import counted, refused_with
from ...rule import COVERED, DiagnosisRule
from .refusing_broker import RefusingBroker

MARKS: Final = ("in-sync replicas not enough", "IN_SYNC_REPLICAS_NOT_ENOUGH")
"""SendMessageProcessor.handlePutMessageResult; the name where a message is sent back."""


class _Fold(RefusingBroker):
    because = "too few replicas are in sync with it"

    def details(self, context: Context) -> list[str]:
        said = super().details(context)
        messages, most = self.sent_again()
        if messages:
            said.append(f"{counted(messages, 'message')} tried up to {most} times, always refused")
        return said


RULE = DiagnosisRule(
    id="isr-not-enough",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses sends because too few replicas are in sync",
    searched=("in-sync replicas not enough",),
    proof="A send is answered with code 1 and the remark `in-sync replicas not enough`.",
    explanation=(
        "The broker must have each message on a number of replicas, itself included, before it"
        " answers. Fewer than that follow it closely, so it refuses the message without storing it."
        " A producer retries after code 1, but another attempt at this broker is refused too."
    ),
    advice=(
        "Start the missing slaves, or find out why they are behind. inSyncReplicas and"
        " minInSyncReplicas (both default 1) say how many are needed; enableAutoInSyncReplicas"
        " (default false) lets the broker go down to minInSyncReplicas by itself. With a"
        " controller, check the sync state set (mqadmin getSyncStateSet)."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_ERROR,)),
    needs=frozenset((Need.SENDS,)),
)
