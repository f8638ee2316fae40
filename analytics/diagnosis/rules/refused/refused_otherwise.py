"""A server refuses client requests for a reason that no other rule knows."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS, STORED
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import joined_key
from ...names import listed
from ...problem import Case, ProblemSeverity, first_line
from ...refusals import Refusals
from ...registry import rules
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges

OTHERWISE: Final = "refused-otherwise"
CALLS: Final = "call-refused"
"""the same for gRPC calls"""
_REQUESTS: Final = (
    SENDS
    | FETCHES
    | {
        RequestCode.HEART_BEAT,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.END_TRANSACTION,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.RECALL_MESSAGE,
    }
)
"""regular requests of clients; administrators see the response themselves"""
_NO_REFUSALS: Final = STORED | {
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.NO_MESSAGE,
    ResponseCode.POLLING_FULL,
    ResponseCode.POLLING_TIMEOUT,
}
"""responses that only report a state"""
LARGEST: Final = 10_000
"""upper bound of response codes"""
_REFUSALS: Final = frozenset(range(1, LARGEST)) - _NO_REFUSALS
_NUMBER: Final = re.compile(r"\d+")
MAX_REMARK: Final = 80
_FIELD: Final = "Request doesn't have field bname"
"""A proxy takes the broker name from the request; clients send it since 4.9.4."""
REMARK: Final = "remark"


class RefusedOtherwise(Refusals):
    """Requests refused with one code and remark."""

    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        self.note_name(REMARK, first_line(row.remark or ""))
        self.note_version(row)
        self.note_name("code", f"{row.response_name} ({row.response_code})")

    def title(self, context: Context) -> str:
        why = min(self.named(REMARK), default="")
        code = min(self.named("code"), default="")
        reason = f": {why}" if why else ""
        server = context.server(self.key)
        if _FIELD in self.named(REMARK):
            server = f"proxy {listed(self.brokers)}"
        return f"{server} refused {self.what}{self.of_groups} with {code}{reason}"

    def judge(self, case: Case, context: Context) -> None:
        if _FIELD in self.named(REMARK):
            case.advice = (
                "Use a 5.x client, or let these clients connect to the NameServer and the brokers:"
                " a 5.x proxy reads the broker's name from the request (bname), which older clients"
                " do not send."
            )
            return
        case.doubt("the response is all that is known")


def key_of_other(row: ExchangeRecord) -> str | None:
    """Return the code and remark of a refusal; None if another rule takes it."""
    if any(
        takes.key(row) is not None
        for takes in _others()
        if takes.takes_response(row)
        and (takes.requests is None or row.request_code in takes.requests)
    ):
        return None
    # Remarks have times, ids, and sizes: without numbers, those of one reason are alike.
    remark = _NUMBER.sub("N", (row.remark or "")[:MAX_REMARK])
    return joined_key(str(row.response_code), remark)


@cache
def _others() -> tuple[Exchanges, ...]:
    """Return the responses that other rules take."""
    return tuple(
        takes
        for rule in rules()
        if rule.id not in (OTHERWISE, CALLS)
        for takes in rule.exchanges
        if takes.responses is not None
    )


RULE = DiagnosisRule(
    id=OTHERWISE,
    severity=ProblemSeverity.ERROR,
    title="A server refuses requests for a reason that no other rule covers",
    searched=(
        "MQBrokerException: CODE",
        "Request doesn't have field bname",
        "The broker's consumer filter data is not exist!Your expression may be wrong!",
        "the consumer's consumer filter data not latest",
        "The specified topic contains illegal characters",
        "store putMessage return null",
        "store getMessage return null",
        "ack offset illegal",
        "recall failed",
        "unknown Response Code:",
        "broker response code:",
        "pop message is forbidden because timerWheelEnable is false",
    ),
    proof=(
        "Sends, pulls, and other frequent requests get an error response that no other rule covers."
    ),
    explanation=(
        "The code and remark of the response say what the server objects to. The client throws"
        " MQBrokerException with both."
    ),
    advice=(
        "Look for the remark in the server's log at that time: an exception there says more."
        " rmqtool codes CODE explains the code."
    ),
    grpc=REFUSED_CALL,
    fold=RefusedOtherwise,
    exchanges=(Exchanges(key=key_of_other, requests=_REQUESTS, responses=_REFUSALS),),
    limits=(
        "Responses that another rule covers are left to that rule, even if it reports no problem."
    ),
)
