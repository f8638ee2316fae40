"""A server refuses requests whose header lacks a required field."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import called, listed
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges

_NULL_FIELD: Final = re.compile(r"the custom field <(\w{1,64})> is null")
"""RemotingCommand.decodeCommandCustomHeader of old releases"""
_FAILED: Final = ("NullPointerException", " is blank")
"""responses of a server that uses a field without checking that it is present"""
_OF_QUEUE: Final = frozenset(
    (
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
    )
)
_WITH_GROUP: Final = frozenset(
    (
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
    )
)
_FIELD: Final = "field"
_REMARK: Final = "remark"
_LONGEST: Final = 200
"""maximum displayed characters of a remark"""


class _Fold(Refusals):
    def take(self, row: ExchangeRecord) -> None:
        for name in missing_fields(row):
            self.note_name(_FIELD, name)
        self.note_name(_REMARK, " ".join((row.remark or "").split())[:_LONGEST])
        self.note_version(row)

    def title(self, context: Context) -> str:
        servers = listed(map(context.broker, self.brokers))
        fields = self.named(_FIELD)
        are = "is" if len(fields) == 1 else "are"
        missing = f"header {called('field', fields)} {are} missing"
        return f"{servers} refused {self.what} ({listed(self.requests)}): {missing}"

    def details(self, context: Context) -> list[str]:
        return [f"response: {min(self.named(_REMARK), default='')}", *super().details(context)]


def missing_fields(row: ExchangeRecord) -> list[str]:
    """Return the missing required fields of a refused request; empty for other reasons."""
    remark = row.remark or ""
    if (match := _NULL_FIELD.search(remark)) is not None:
        return [match[1]]
    code = row.request_code
    # The exception names no field, so the request has to lack one.
    if code is None or not any(text in remark for text in _FAILED):
        return []
    needed = [("topic", row.topic)] if code in SENDS | FETCHES | _OF_QUEUE else []
    if code in SENDS:
        needed.append(("producerGroup", row.group))
    if code in _WITH_GROUP:
        needed.append(("consumerGroup", row.group))
    absent = [name for name, value in needed if not value]
    if code in SENDS | _WITH_GROUP | _OF_QUEUE and row.queue_id is None:
        absent.append("queueId")
    return absent


def _key(row: ExchangeRecord) -> str | None:
    return " ".join([str(row.request_code), *fields]) if (fields := missing_fields(row)) else None


RULE = DiagnosisRule(
    id="required-field-missing",
    severity=ProblemSeverity.ERROR,
    title="A server refuses requests whose header lacks a required field",
    searched=(
        "the custom field <topic> is null",
        "The specified topic is blank",
        "RemotingCommandException the custom field",
    ),
    proof=(
        "Response code 1 (SYSTEM_ERROR) with a NullPointerException or `The specified topic is"
        " blank` to a send, pull, or offset request without topic, group, or queue id. Or any"
        " response with `the custom field <NAME> is null`."
    ),
    explanation=(
        "A server reads the extFields of a request into the header class of its request code."
        " RocketMQ only logs a missing required field (`the custom field … is null`) and fails"
        " where it uses it; other servers may refuse the request with that text. Clients in other"
        " languages, tools that build requests themselves, and very old clients omit fields."
    ),
    advice=(
        "Update the client library, or add the field to the request: rmqtool codes NAME lists the"
        " fields of a request. In SEND_MESSAGE_V2, field names have one letter: b is the topic, e"
        " the queue id."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses={ResponseCode.SYSTEM_ERROR}),),
    limits="Missing fields without a column are seen only if the server names them.",
    lasts=None,
)
