"""A broker accepts no messages before a configured time."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Need
from ...names import listed
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARK: Final = "broker unable to service, until"
"""SendMessageProcessor.preSend, ReplyMessageProcessor."""
_UNTIL: Final = "until"
_LONGEST: Final = 40


class _Fold(RefusingBroker):
    def take(self, row: ExchangeRecord) -> None:
        self.note_name(_UNTIL, (row.remark or "").partition(MARK)[2].strip()[:_LONGEST])

    def why(self) -> str:
        until = listed(self.named(_UNTIL))
        by = f" before {until} (the broker's local time)" if until else " yet"
        return f"it accepts none{by}"


RULE = DiagnosisRule(
    id="broker-before-start-time",
    severity=ProblemSeverity.WARNING,
    title="The broker accepts no messages before a configured start time",
    searched=("broker unable to service, until",),
    proof="Response code 1 to a send, with the remark `broker unable to service, until`.",
    explanation=(
        "Until the time in startAcceptSendRequestTimeStamp, the broker refuses all sends and stores"
        " nothing. Consumers are not affected."
    ),
    advice=(
        "Wait, or set startAcceptSendRequestTimeStamp (ms since 1970, default 0: immediately) to a"
        " time in the past."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(MARK, codes=(ResponseCode.SYSTEM_ERROR,)),
    needs={Need.SENDS},
)
