"""Each remark of a broker's refusal, as its classes have it, has a rule that speaks of it."""

from __future__ import annotations

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rules
from dissectors.remoting.codes import RequestCode

from .made_rows import exchange

SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE
POP, ACK = RequestCode.POP_MESSAGE, RequestCode.ACK_MESSAGE
END, REPLY = RequestCode.END_TRANSACTION, RequestCode.SEND_REPLY_MESSAGE
BACK, RECALL = RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.RECALL_MESSAGE
REMARKS = (
    (PULL, 27, "The broker's consumer filter data is not exist!", "refused-otherwise"),
    (PULL, 28, "the consumer's consumer filter data not latest", "refused-otherwise"),
    (PULL, 26, "subscription group [g] does not exist, See https://x", "group-missing"),
    (BACK, 26, "subscription group not exist, g See https://x", "group-missing"),
    (PULL, 16, "subscription group no permission, g", "no-permission"),
    (PULL, 16, "the broker[192.0.2.1] pulling message is forbidden", "no-permission"),
    (PULL, 16, "the topic[T] pulling message is forbidden", "no-permission"),
    (PULL, 16, "the consumer group[g] can not consume by broadcast way", "no-permission"),
    (POP, 16, "the broker[x] pop message is forbidden because timerWheelEnable", "no-permission"),
    (SEND, 16, "the broker[x] sending transaction message is forbidden", "no-permission"),
    (SEND, 16, "the topic[T] sending message is forbidden", "no-permission"),
    (POP, 1, "the broker[x] pop message's num is greater than 32", "refused-otherwise"),
    (PULL, 1, "store getMessage return null", "refused-otherwise"),
    (SEND, 13, "msg body must be less 64KB", "oversize-message"),
    (SEND, 13, "message topic length too long 300", "oversize-message"),
    (SEND, 1, "The specified topic is longer than topic max length.", "oversize-message"),
    (SEND, 1, "The specified topic contains illegal characters", "refused-otherwise"),
    (SEND, 1, "store putMessage return null", "refused-otherwise"),
    (SEND, 14, "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]lmq consume queue num", "refused-otherwise"),
    (END, 1, "Message store is slave mode, so end transaction", "end-transaction-refused"),
    (END, 1, "The commit log offset wrong", "end-transaction-refused"),
    (END, 1, "OS page cache busy, please try another machine", "end-transaction-refused"),
    (ACK, 13, "ack offset illegal.", "refused-otherwise"),
    (RECALL, 13, "recall failed, timestamp invalid", "refused-otherwise"),
    (RECALL, 14, "recall failed, broker service not available", "refused-otherwise"),
    (SEND, 1, "o.a.r.AclException: No PlainAccessResource for accessKey=a", "acl-signature"),
    (SEND, 16, "Authentication failed. Please verify the credentials", "acl-signature"),
    (SEND, 16, "authentication header is incorrect.", "acl-signature"),
    (SEND, 16, "User:a has no permission to access Topic:T from x", "acl-signature"),
    (REPLY, 1, "reply message properties[REPLY_TO_CLIENT] is null", "reply-undeliverable"),
    (REPLY, 1, "push reply message to x fail", "reply-undeliverable"),
    (RequestCode.SEND_MESSAGE, 3, " request type 10 not supported", "version-mismatch"),
)
"""request, response code, remark, rule that speaks of it"""


@pytest.mark.parametrize(("request_code", "code", "remark", "rule"), REMARKS)
def test_a_refusal_has_a_rule(request_code: RequestCode, code: int, remark: str, rule: str) -> None:
    engine = Engine(rules())
    engine.add_exchanges(
        [
            exchange(at, int(request_code), code, remark=remark, topic="T", group="g")
            for at in range(0, 5000, 1000)
        ]
    )
    assert rule in {one.rule for one in engine.diagnosis().problems}
