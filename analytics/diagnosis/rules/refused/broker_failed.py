"""A broker fails on a request with an unexpected exception."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import listed
from ...problem import ProblemSeverity
from ...refusals import CALL_REFUSALS, Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges
from .required_field_missing import missing_fields

_THROWN: Final = re.compile(r"((?:[a-z_]\w*\.)+)([A-Z]\w*(?:Exception|Error))\b")
"""package and class at the start of a remark (RemotingHelper.exceptionSimpleDesc)"""
_MEANT: Final = (
    "AclException",
    "AuthenticationException",
    "AuthorizationException",
    "MQBrokerException",
    "MQClientException",
    "ProxyException",
    "RemotingCommandException",
)
"""exceptions that a server throws to refuse a request; the message is the reason"""
_CLASS: Final = "class"
_REMARK: Final = "remark"
_LONGEST: Final = 400
"""maximum displayed characters of a remark"""


class _Fold(Refusals):
    """Requests on which brokers failed with one kind of exception."""

    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        remark = " ".join((row.remark or "").split())
        self.note_name(_REMARK, remark[:_LONGEST])
        self.note_name(_CLASS, thrown(row.remark))
        self.note_version(row)

    def title(self, context: Context) -> str:
        error = listed(name.rpartition(".")[2] for name in self.named(_CLASS))
        return (
            f"{context.refuser(min(self.brokers))} failed on {self.what}{self.of_groups} with an"
            f" internal error ({error})"
        )

    def details(self, context: Context) -> list[str]:
        return [f"response: {min(self.named(_REMARK), default='')}", *super().details(context)]


def thrown(remark: str | None) -> str | None:
    """Return the class of the exception that starts a remark, or None."""
    match = _THROWN.match(remark or "")
    return None if match is None or match[2] in _MEANT else match[1] + match[2]


def _key(row: ExchangeRecord) -> str | None:
    # A server that uses a field without checking it throws, too: `required-field-missing` has
    # those.
    return None if missing_fields(row) else thrown(row.remark)


def _key_of_call(row: ExchangeRecord) -> str | None:
    return None if whole_of_sends(row) is None else _key(row)


RULE = DiagnosisRule(
    id="broker-failed",
    severity=ProblemSeverity.ERROR,
    title="Requests cause an exception inside the broker",
    searched=(
        "java.lang.NullPointerException",
        "CODE: 1 DESC: java.lang",
        "MQBrokerException: CODE: 1",
    ),
    proof=(
        "Response code 1 (SYSTEM_ERROR) with a remark that begins with an exception no server"
        " throws on purpose, such as `java.lang.NullPointerException`."
    ),
    explanation=(
        "The broker did not expect something in the request or in its own state. It threw an"
        " exception, and responded with the exception's name and the place in the code. The request"
        " was not carried out, or only in part. A common reason is a client much older than the"
        " broker: it does not send fields that later versions require."
    ),
    advice=(
        "Compare the versions of client and broker, and use a client of the broker's generation."
        " Otherwise, look for the exception in the broker's log (broker.log) and search RocketMQ's"
        " issues for its first line. A retry helps only if the reason was a temporary state of the"
        " broker."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, responses={ResponseCode.SYSTEM_ERROR}),
        Exchanges(key=_key_of_call, responses=CALL_REFUSALS),
    ),
    limits=(
        "With gRPC, only sends are examined. It is unknown whether part of the request was carried"
        " out before the exception."
    ),
)
