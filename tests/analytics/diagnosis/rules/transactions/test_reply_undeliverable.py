from __future__ import annotations

import pytest

from analytics.diagnosis.rules.transactions.reply_undeliverable import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)
SEND = int(RequestCode.SEND_MESSAGE_V2)
ERROR = int(ResponseCode.SYSTEM_ERROR)
NOT_FOUND = "push reply message fail, channel of <10.0.0.7@asker> not found."


def reply(at_ms: float, remark: str = NOT_FOUND, code: int = REPLY) -> ExchangeRecord:
    return exchange(at_ms, code, ERROR, remark=remark, topic="Main_REPLY_TOPIC", group="replier")


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_a_real_asker_that_was_killed(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"request-abandoned-{generation}.pcap")
    assert one.title == ("broker-a could not deliver 1 reply to client 127.0.0.1@asker")
    assert (one.count, one.subject.group) == (1, "lost_group")


@pytest.mark.parametrize("remark", [NOT_FOUND, "push reply message to 10.0.0.7@askerfail."])
def test_an_asker_that_is_gone(remark: str) -> None:
    (one,) = problems(RULE, [reply(0, remark), reply(10, remark)])
    assert one.title == ("10.0.0.1:10911 could not deliver 2 replies to client 10.0.0.7@asker")
    assert (one.count, one.subject.client) == (2, "10.0.0.7@asker")


def test_other_refusals_are_other_problems() -> None:
    assert problems(RULE, [reply(0, "create mapped file failed")]) == []
    assert problems(RULE, [reply(0, code=SEND)]) == []


def test_replies_that_arrive_are_normal() -> None:
    assert problems_of_sample(RULE, "request-reply-5x.pcap") == []
    assert problems_of_sample(RULE, "request-reply-4x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, [reply(at) for at in range(12)])
