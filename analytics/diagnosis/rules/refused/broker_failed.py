"""A broker fails on a request: its program throws an exception where nobody expected one."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import ProblemSeverity
from ...refusals import Refusals, called, counted_names, listed
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges
from .required_field_missing import missing_fields

_THROWN: Final = re.compile(r"((?:[a-z_]\w*\.)+)([A-Z]\w*(?:Exception|Error))\b")
"""package and class at the beginning of a remark (RemotingHelper.exceptionSimpleDesc)"""
_MEANT: Final = (
    "AclException",
    "AuthenticationException",
    "AuthorizationException",
    "MQBrokerException",
    "MQClientException",
    "ProxyException",
    "RemotingCommandException",
)
"""what a server throws to refuse a request; its text is the reason"""
_VERSION: Final = "version"
_CLASS: Final = "class"
_REMARK: Final = "remark"
_LONGEST: Final = 400
"""characters of a remark that are shown"""


class _Fold(Refusals):
    """Requests on which brokers failed by one kind of exception."""

    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        remark = " ".join((row.remark or "").split())
        self.note_name(_REMARK, remark[:_LONGEST])
        self.note_name(_CLASS, thrown(row.remark))
        if row.version_name:
            self.note_name(_VERSION, f"{row.language} {row.version_name}")

    def title(self, context: Context) -> str:
        groups = f" of {called('group', self.groups)}" if self.groups else ""
        error = listed(one.rpartition(".")[2] for one in self.named(_CLASS))
        return (
            f"{context.broker(min(self.brokers))} failed on {self.what}{groups}: an error in its"
            f" own program ({error}), not a refusal"
        )

    def details(self, context: Context) -> list[str]:
        said = [f"it answers: {min(self.named(_REMARK), default='')}", *super().details(context)]
        if versions := self.named(_VERSION):
            said.append(f"the clients say: {counted_names(versions)}")
        return said


def thrown(remark: str | None) -> str | None:
    """Return the class of the exception that a remark begins with; None: it is no such remark."""
    found = _THROWN.match(remark or "")
    return None if found is None or found[2] in _MEANT else found[1] + found[2]


def _key(row: ExchangeRecord) -> str | None:
    return None if missing_fields(row) else thrown(row.remark)


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
        "Requests are answered with code 1 (SYSTEM_ERROR) and a remark that begins with the name of"
        " an exception which no server throws to refuse something, such as"
        " `java.lang.NullPointerException`."
    ),
    explanation=(
        "Something in the request, or in the broker's state, was not foreseen: its program threw an"
        " exception, and the broker answers with the exception's name and the place in the code."
        " What the request asked for was not done, or only in part. A client that is much older"
        " than the broker is a common reason: it does not send fields which later versions take"
        " for granted."
    ),
    advice=(
        "Compare the versions of client and broker: use a client of the broker's generation."
        " Otherwise look for the exception in the broker's log (broker.log) and search RocketMQ's"
        " issues for its first line; trying again helps only where the state of the broker was the"
        " reason."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=frozenset((int(ResponseCode.SYSTEM_ERROR),))),),
    limits="Whether a part of the request was carried out before the exception is not known.",
)
