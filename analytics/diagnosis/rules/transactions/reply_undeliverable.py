"""A reply comes to the broker, but the broker cannot pass it on to who asked."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.code_sets import REPLIES
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals, only, refused_with, times
from ...rule import DiagnosisRule

MARK: Final = "push reply message"
_ASKER: Final = re.compile(
    r"channel of <([^>]{1,200})> not found|push reply message to (\S{1,200}?) ?fail"
)

_ASKERS: Final = "askers"


class _Fold(Refusals):
    def take(self, row: ExchangeRecord) -> None:
        found = _ASKER.search(row.remark or "")
        if found is not None:
            self.note_name(_ASKERS, found[1] or found[2])

    def title(self, context: Context) -> str:
        broker = only(context.broker(one) for one in self.brokers) or "brokers"
        asker = only(self.named(_ASKERS))
        to = f"to requester {asker}" if asker else "to requesters"
        return f"{broker} could not pass on replies {to}, {times(self.tally.count)}"

    def subject(self, context: Context) -> Subject:
        common = super().subject(context)
        return Subject(
            broker=common.broker,
            topic=common.topic,
            group=common.group,
            client=only(self.named(_ASKERS)),
        )


RULE = DiagnosisRule(
    id="reply-undeliverable",
    severity=ProblemSeverity.WARNING,
    title="The broker cannot pass on a reply to the requester",
    searched=("push reply message fail", "request timeout", "RequestTimeoutException", "RPC reply"),
    proof=(
        "A reply (324, 325) that the broker answers 1 (SYSTEM_ERROR) with a remark that it could"
        " not push the reply message."
    ),
    explanation=(
        "In request-reply the consumer sends its reply to the broker, and the broker pushes it"
        " (326) over the connection of the requester, which it knows from heartbeats. The requester"
        " is gone, has another client id by now, sends heartbeats to another broker only, or did"
        " not answer within 10 s. The requester gets a timeout although its request was done."
    ),
    advice=(
        "Check that the requester still runs when the reply comes, and that each process has its"
        " own client id. Raise the timeout of request() if replies take long. The replier may try"
        " again, which changes nothing: the reply is stored anyway (storeReplyMessageEnable,"
        " default true)."
    ),
    grpc="gRPC has no request-reply.",
    fold=_Fold,
    exchanges=refused_with(MARK, codes=(ResponseCode.SYSTEM_ERROR,), requests=REPLIES),
    references=(
        "apache/rocketmq#2435",
        "apache/rocketmq#2348",
        "apache/rocketmq#3933",
        "apache/rocketmq-spring#256",
        "apache/rocketmq-spring#310",
    ),
    limits="Each attempt to send the reply counts. Whether the asker still waited is not seen.",
    needs=frozenset((Need.SENDS,)),
    consequence_of=frozenset(("duplicate-client-id",)),
)
