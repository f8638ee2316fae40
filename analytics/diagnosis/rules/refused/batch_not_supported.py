"""A broker does not accept batches, or not for this topic."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import whole
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges
from .oversize_message import too_long

RETRY_GROUP: Final = "batch request does not support retry group"
"""SendMessageProcessor.sendBatchMessage"""
_ILLEGAL: Final = "message is illegal"
_UNKNOWN: Final = int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
_REFUSED: Final = int(ResponseCode.MESSAGE_ILLEGAL)


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        self.note_name("response", str(row.response_code))
        if RETRY_GROUP in (row.remark or ""):
            self.note_name("response", RETRY_GROUP)

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        batches = counted(self.tally.count, "batch", "batches")
        responses = self.named("response")
        if str(_UNKNOWN) in responses:
            why = "it does not know the request SEND_BATCH_MESSAGE (320)"
        elif RETRY_GROUP in responses:
            why = "it accepts none for a retry topic"
        else:
            why = "its store accepts none, although no length exceeds the limit"
        return f"{broker} refused {batches}: {why}"


def _key(row: ExchangeRecord) -> str | None:
    # An old broker does not know the code; its remark says nothing about batches.
    if row.response_code == _UNKNOWN:
        return whole(row)
    remark = row.remark or ""
    # Without a length over the limit, the batch itself is what the store refuses.
    illegal = RETRY_GROUP in remark or (_ILLEGAL in remark and too_long(row) is None)
    return whole(row) if illegal else None


RULE = DiagnosisRule(
    id="batch-not-supported",
    severity=ProblemSeverity.ERROR,
    title="The broker does not accept batches",
    searched=("request type 320 not supported", "batch request does not support retry group"),
    proof=(
        "Response code 3 to a request 320 (SEND_BATCH_MESSAGE); or code 13, although neither body"
        " nor properties are over the limit."
    ),
    explanation=(
        "A batch has its own request code. Some services that imitate a broker do not know it, and"
        " brokers with DLedger did not support it in older 4.x. No broker accepts a batch to a"
        " %RETRY% topic. None of the messages was stored."
    ),
    advice=(
        "Send the messages one by one, asynchronously if you need throughput. Leave autoBatch"
        " (client 5.x, default false) off. With DLedger, use 4.8.0 or newer."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key, requests={RequestCode.SEND_BATCH_MESSAGE}, responses={_UNKNOWN, _REFUSED}
        ),
    ),
    references=(
        "apache/rocketmq#1304",
        "apache/rocketmq#2139",
        "apache/rocketmq-client-go#921",
        "apache/rocketmq-spring#425",
        "alibaba/canal#3304",
    ),
    needs={Need.SENDS},
    lasts=None,
)
