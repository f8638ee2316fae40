"""A broker refuses a message because its body, properties, or topic are too long."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import natural_of
from dissectors.grpc.names import CODES
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import PROPERTIES
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import says, whole
from ...problem import Case, ProblemSeverity
from ...refusals import CALL_REFUSALS, Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges

LONGEST_PROPERTIES: Final = 32767
"""Short.MAX_VALUE: CommitLog, MessageExtEncoder"""
LONGEST_TOPIC: Final = 127
"""Byte.MAX_VALUE: TopicValidator, SendMessageProcessor"""
_MARKS: Final = (
    "message is illegal",
    "message topic length too long",
    "longer than topic max length",
    "must be less 64KB",
)
"""SendMessageProcessor, AbstractSendMessageProcessor.msgContentCheck, TopicValidator"""
_CODES: Final = frozenset(
    (
        int(ResponseCode.MESSAGE_ILLEGAL),
        int(ResponseCode.INVALID_PARAMETER),
        int(ResponseCode.SYSTEM_ERROR),
    )
)
"""13; for the name of a topic 29, or 1 from brokers before 5.3.2"""
_TOO_LARGE: Final = CODES["MESSAGE_BODY_TOO_LARGE"]
_LIMIT: Final = re.compile(r"body (?:length limit|cannot exceed the max) (\d{1,12})")
"""limit of a broker, and of a proxy (SendMessageActivity.validateMessageBodySize)"""
_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)
_BODY: Final = "body"
_PROPERTIES: Final = "properties"
_TOPIC: Final = "topic"
_UNKNOWN: Final = "unknown"
_KIND: Final = "kind"
_LIMIT_STATED: Final = "limit"


def limit_in(remark: str | None) -> int | None:
    """Return the maximum body size in bytes from the remark, or None if it is not there."""
    match = _LIMIT.search(remark or "")
    return natural_of(match[1]) if match is not None else None


def too_long(row: ExchangeRecord) -> str | None:
    """Return the oversize part of a refused message: body, properties, or topic; None: unknown."""
    remark = row.remark or ""
    if "topic length" in remark or "topic max length" in remark:
        return _TOPIC
    # Before the body: the remark names the body's limit for both.
    if (number_in(row.facts, PROPERTIES) or 0) > LONGEST_PROPERTIES:
        return _PROPERTIES
    limit = limit_in(remark)
    if "64KB" in remark or (limit is not None and row.body_bytes > limit):
        return _BODY
    return None


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        limit = limit_in(row.remark)
        if limit is not None:
            self.note_figure(_LIMIT_STATED, limit)
        kind = too_long(row) or _UNKNOWN
        self.note_name(_KIND, kind)
        size = {
            _PROPERTIES: (number_in(row.facts, PROPERTIES) or 0),
            _TOPIC: len(row.topic or ""),
        }.get(kind, row.body_bytes)
        self.note_figure(kind, size)

    def title(self, context: Context) -> str:
        broker = context.server(self.key)
        why = "; ".join(self._said(kind) for kind in sorted(self.named(_KIND)))
        return f"{broker} refused {self.what} as too long or malformed: {why}"

    def judge(self, case: Case, context: Context) -> None:
        if set(self.named(_KIND)) == {_UNKNOWN}:
            case.doubt(
                "neither body nor properties are over the limit as far as the packets say"
                if _LIMIT_STATED in self.figures
                else "the broker does not report its maxMessageSize: the 128k in remarks of older"
                " brokers is fixed text"
            )

    def _said(self, kind: str) -> str:
        _, size = self.figures[kind]
        if kind == _PROPERTIES:
            return f"properties of {size:,} bytes (limit {LONGEST_PROPERTIES:,})"
        if kind == _TOPIC:
            return f"a topic of {size} characters (limit {LONGEST_TOPIC})"
        limit = self.figures.get(_LIMIT_STATED, (0, 0))[1]
        if limit:
            return f"a body of {size:,} bytes (limit {limit:,})"
        less = ", more than the broker's maxMessageSize" if kind == _UNKNOWN else ""
        return f"a body of {size:,} bytes{less}"


def _key(row: ExchangeRecord) -> str | None:
    if not says(row, *_MARKS):
        return None
    if row.request_code == _BATCH and too_long(row) is None:
        return None  # refused because it is a batch
    return whole(row)


def _key_of_call(row: ExchangeRecord) -> str | None:
    marked = says(row, *_MARKS)
    return whole_of_sends(row) if marked or row.response_code == _TOO_LARGE else None


RULE = DiagnosisRule(
    id="oversize-message",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a message that is too long",
    searched=(
        "the message is illegal, maybe msg body or properties length not matched",
        "MESSAGE_ILLEGAL",
        "CODE: 13",
        "msg body must be less 64KB",
        "message topic length too long",
        "The specified topic is longer than topic max length",
        "message body cannot exceed the max",
    ),
    proof=(
        "Response code 13 (MESSAGE_ILLEGAL) to a send, with a remark about lengths; or code 29 (1"
        " from brokers before 5.3.2) and `longer than topic max length`. With gRPC: SendMessage"
        " gets MESSAGE_BODY_TOO_LARGE (41301) or the broker's remark."
    ),
    explanation=(
        "The broker accepts bodies up to maxMessageSize, properties up to 32,767 bytes, and topic"
        " names up to 127 characters. The compressed size of a body counts. Producers have their"
        " own maxMessageSize; if it is larger, the broker refuses what they let pass. It refuses a"
        " retry, too."
    ),
    advice=(
        "Send less: store large content elsewhere and send a reference, and split batches by size."
        " Or raise maxMessageSize (default 4 MB) on all brokers, proxies, and producers. The limit"
        " of properties is fixed: keep keys and user properties short."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests=SENDS, responses=_CODES),
        Exchanges(key=_key_of_call, responses=CALL_REFUSALS),
    ),
    references=(
        "apache/rocketmq#2282",
        "apache/rocketmq#6605",
        "apache/rocketmq#3786",
        "apache/rocketmq#6579",
        "alibaba/canal#3731",
        "alibaba/canal#3845",
        "alibaba/canal#1617",
    ),
    needs={Need.SENDS},
    lasts=None,
)
