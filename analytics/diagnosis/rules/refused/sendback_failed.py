"""A broker rejects a message that a consumer returns for redelivery."""

from __future__ import annotations

import re
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import whole
from ...names import called, listed
from ...problem import Impact, ProblemSeverity, first_line
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges
from .acl_signature import reason_of

NO_MASTER: Final = "no master available along with"
"""AbstractSendMessageProcessor.consumerSendMsgBack; reported by the rule no-master"""
_NUMBERS: Final = re.compile(r",\s*-?\d+\s*$")
_WHY: Final = "why"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        # The remark ends with the offset of the message: without it, equal reasons are one.
        self.note_name(_WHY, _NUMBERS.sub("", first_line(row.remark or "no reason given")))

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        messages = counted(self.tally.count, "message")
        groups = f" returned by {called('group', self.groups)}" if self.groups else ""
        return f"{broker} refused {messages}{groups}: {listed(self.named(_WHY))}"


def _key(row: ExchangeRecord) -> str | None:
    remark = row.remark
    if (remark and NO_MASTER in remark) or reason_of(remark) is not None:
        return None
    return whole(row)


RULE = DiagnosisRule(
    id="sendback-failed",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a message that a consumer returns",
    searched=(
        "look message by offset failed",
        "sendMessageBack Exception",
        "Failed to send message back",
    ),
    proof="Response code 1 to a request 36 (CONSUMER_SEND_MSG_BACK).",
    explanation=(
        "A consumer that fails to process a message sends its offset back, and the broker copies"
        " the message to the retry topic of the group. It did not find the message at that offset:"
        " the message was deleted by age, or the broker does not have it. Other remarks say that"
        " the copy could not be stored. The Java consumer then sends the message itself to the"
        " retry topic, or retries it in memory after 5 s; nothing is lost while that consumer runs."
    ),
    advice=(
        "Check whether the group is far behind: messages are kept for fileReservedTime (default 72"
        " h). If consumers read from slaves, check that these are not behind their master. For"
        " other remarks, see the rule that explains the remark, such as disk-full."
    ),
    grpc=BEHIND_PROXY,
    impact=Impact.RETURN_REFUSED,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key,
            requests={RequestCode.CONSUMER_SEND_MSG_BACK},
            responses={ResponseCode.SYSTEM_ERROR},
        ),
    ),
    needs={Need.GROUPS},
)
