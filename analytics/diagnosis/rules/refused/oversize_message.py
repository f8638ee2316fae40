"""A broker refuses a message because its body, properties or topic are too long."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts import PROPERTIES, fact_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity
from ...refusals import Refusals
from ...rule import DiagnosisRule, Exchanges

LONGEST_PROPERTIES: Final = 32767
"""Short.MAX_VALUE: CommitLog, MessageExtEncoder"""
DEFAULT_LIMIT: Final = 4 * 1024 * 1024
"""maxMessageSize: MessageStoreConfig"""
_MARKS: Final = ("message is illegal", "message topic length too long", "must be less 64KB")
"""SendMessageProcessor, AbstractSendMessageProcessor.msgContentCheck"""
_LIMIT: Final = re.compile(r"body length limit (\d{1,12})\s*B")
_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)
_BODY: Final = "body"
_PROPERTIES: Final = "properties"
_TOPIC: Final = "topic"
_SAID: Final = "limit"


def limit_in(remark: str | None) -> int | None:
    """Return the longest body, in bytes, that the broker says it takes; None: it does not say."""
    found = _LIMIT.search(remark or "")
    return int(found[1]) if found is not None else None


def too_long(row: ExchangeRecord) -> str | None:
    """Return what of a refused message is too long: body, properties or topic; None: not known."""
    remark = row.remark or ""
    if "topic length" in remark:
        return _TOPIC
    if int(fact_in(row.facts, PROPERTIES) or 0) > LONGEST_PROPERTIES:
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
            self.note_figure(_SAID, limit)
        self.note_figure(_BODY, row.body_bytes)
        if (size := fact_in(row.facts, PROPERTIES)) is not None:
            self.note_figure(_PROPERTIES, int(size))
        self.note_name("too long", too_long(row))

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        found = self.named("too long")
        body, limit = self.figures[_BODY][1], self.figures.get(_SAID, (0, 0))[1]
        if _PROPERTIES in found:
            size = self.figures[_PROPERTIES][1]
            why = f"properties of {size:,} bytes, {LONGEST_PROPERTIES:,} are allowed"
        elif _TOPIC in found:
            why = "the name of the topic is too long"
        elif limit:
            over = "are allowed" if _BODY in found else "would be allowed"
            why = f"a body of {body:,} bytes, {limit:,} {over}"
        else:
            why = f"a body of {body:,} bytes"
        return f"{broker} refused {self.what} as too long or not well formed: {why}"

    def judge(self, case: Case, context: Context) -> None:
        if not self.named("too long"):
            case.confidence = Confidence.LIKELY
            case.reason = "neither body nor properties are over the limit as far as the packets say"


def _key(row: ExchangeRecord) -> str | None:
    remark = row.remark or ""
    if not any(mark in remark for mark in _MARKS):
        return None
    if row.request_code == _BATCH and too_long(row) is None:
        return None  # it is refused because it is a batch
    return whole(row)


RULE = DiagnosisRule(
    id="oversize-message",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a message that is too long",
    searched=(
        "the message is illegal, maybe msg body or properties length not matched",
        "message body size over max value",
        "MESSAGE_ILLEGAL",
        "CODE: 13",
    ),
    proof="A send is answered with code 13 (MESSAGE_ILLEGAL) and a remark about lengths.",
    explanation=(
        "The broker takes bodies up to maxMessageSize, properties up to 32,767 bytes and topic"
        " names up to 127 characters. A body counts as it travels, compressed. Producers have a"
        " limit of their own of the same name; if theirs is larger, the broker refuses what they"
        " let pass. A retry is refused as well."
    ),
    advice=(
        "Send less: put large content elsewhere and send its address, split batches by their size."
        " Or raise maxMessageSize (default 4 MB) on all brokers and producers alike. Properties"
        " have no setting: keep keys and user properties short."
    ),
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key, requests=SENDS, responses=frozenset((int(ResponseCode.MESSAGE_ILLEGAL),))
        ),
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
    needs=frozenset((Need.SENDS,)),
)
