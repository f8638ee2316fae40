"""A broker does not take back a message that a consumer could not process."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import ProblemSeverity, first_line
from ...refusals import Refusals, called, counted, listed
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges
from .acl_signature import reason_of

NO_MASTER: Final = "no master available along with"
"""AbstractSendMessageProcessor.consumerSendMsgBack; the rule no-master says it."""
_NUMBERS: Final = re.compile(r",\s*-?\d+\s*$")
_WHY: Final = "why"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        self.note_name(_WHY, _NUMBERS.sub("", first_line(row.remark or "no reason given")))

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        messages = counted(self.tally.count, "message")
        groups = f" that {called('group', self.groups)} sent back" if self.groups else ""
        return f"{broker} did not take {messages}{groups}: {listed(self.named(_WHY))}"


def _key(row: ExchangeRecord) -> str | None:
    remark = row.remark
    if (remark and NO_MASTER in remark) or reason_of(remark) is not None:
        return None
    return whole(row)


RULE = DiagnosisRule(
    id="sendback-failed",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a message that a consumer returns",
    searched=("look message by offset failed", "sendMessageBack Exception"),
    proof="A request 36 (CONSUMER_SEND_MSG_BACK) is answered with code 1.",
    explanation=(
        "A consumer that fails sends the message's offset back, and the broker copies the message"
        " to the retry topic of the group. It did not find the message at that offset: it was"
        " deleted by age, or the request went to a broker that does not have it. Other remarks say"
        " that the copy could not be stored. The Java consumer then sends the message itself to the"
        " retry topic, or tries it again in its own memory after 5 s; nothing is lost while it"
        " runs."
    ),
    advice=(
        "Check whether the group is far behind: messages are kept for fileReservedTime (default 72"
        " h). If slaves are read, check that they are not behind their master. For other remarks"
        " see the rule of that name, such as disk-full."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key,
            requests=frozenset((int(RequestCode.CONSUMER_SEND_MSG_BACK),)),
            responses=frozenset((int(ResponseCode.SYSTEM_ERROR),)),
        ),
    ),
    needs=frozenset((Need.GROUPS,)),
)
