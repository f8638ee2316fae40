"""A reply arrives at the broker, which cannot deliver it to the client."""

from __future__ import annotations

import re
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.code_sets import REPLIES
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...names import only
from ...problem import Impact, ProblemSeverity, Subject
from ...refusals import Refusals, refused_with
from ...rule import DiagnosisRule

MARKS: Final = ("push reply message", "[REPLY_TO_CLIENT] is null")
_CLIENT: Final = re.compile(
    r"channel of <([^>]{1,200})> not found|push reply message to (\S{1,200}?) ?fail"
)

_CLIENTS: Final = "askers"


class _Fold(Refusals):
    def take(self, row: ExchangeRecord) -> None:
        match = _CLIENT.search(row.remark or "")
        if match is not None:
            self.note_name(_CLIENTS, match[1] or match[2])

    def title(self, context: Context) -> str:
        broker = only(map(context.broker, self.brokers)) or "brokers"
        client = only(self.named(_CLIENTS))
        to = f"to client {client}" if client else "to clients"
        replies = counted(self.tally.count, "reply", "replies")
        return f"{broker} could not deliver {replies} {to}"

    def impact(self) -> dict[Impact, int]:
        return {}  # a reply failed, not a message to the topic

    def subject(self, context: Context) -> Subject:
        common = super().subject(context)
        return Subject(
            broker=common.broker,
            topic=common.topic,
            group=common.group,
            client=only(self.named(_CLIENTS)),
        )


RULE = DiagnosisRule(
    id="reply-undeliverable",
    severity=ProblemSeverity.WARNING,
    title="The broker cannot deliver a reply to the requester",
    searched=(
        "push reply message fail",
        "request timeout",
        "RequestTimeoutException",
        "RPC reply",
        "reply message properties[REPLY_TO_CLIENT] is null",
    ),
    proof=(
        "Response code 1 (SYSTEM_ERROR) to a reply (324, 325), with a remark that the broker could"
        " not push the reply message, or does not know the requester."
    ),
    explanation=(
        "In request-reply, the consumer sends its reply to the broker, and the broker pushes it"
        " (326) over the connection of the requester, which it knows from heartbeats. The requester"
        " is gone, has a new client id, sends heartbeats only to another broker, or did not respond"
        " within 10 s. The requester gets a timeout although its request was processed."
    ),
    advice=(
        "Check that the requester is still running when the reply arrives, and that each process"
        " has its own client id. Raise the timeout of request() if replies take long. A retry by"
        " the consumer pushes the reply again and stores one more copy (storeReplyMessageEnable,"
        " default true); stored copies are never pushed."
    ),
    grpc="Not covered: gRPC has no request-reply.",
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_ERROR,), requests=REPLIES),
    references=(
        "apache/rocketmq#2435",
        "apache/rocketmq#2348",
        "apache/rocketmq#3933",
        "apache/rocketmq-spring#256",
        "apache/rocketmq-spring#310",
    ),
    limits=(
        "Each attempt to send the reply counts. The capture does not show whether the requester"
        " still waited."
    ),
    needs={Need.SENDS},
    consequence_of={"duplicate-client-id"},
)
