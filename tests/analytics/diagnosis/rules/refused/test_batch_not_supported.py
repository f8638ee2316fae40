"""When batch-not-supported speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.batch_not_supported import RETRY_GROUP, RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

ILLEGAL = "the message is illegal, maybe msg body or properties length not matched. limit 4194304B"


def refused(answer: ResponseCode, **values: Any) -> ExchangeRecord:
    made = {"topic": "Orders", "group": "shop", "broker_name": "broker-a", **values}
    return exchange(0, int(RequestCode.SEND_BATCH_MESSAGE), int(answer), **made)


@pytest.mark.parametrize(
    ("answer", "remark", "why"),
    [
        (
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            " request type 320 not supported",
            "it does not know the request SEND_BATCH_MESSAGE (320)",
        ),
        (ResponseCode.MESSAGE_ILLEGAL, RETRY_GROUP, "it accepts none for a retry topic"),
        (
            ResponseCode.MESSAGE_ILLEGAL,
            ILLEGAL,
            "its store accepts none, although no length exceeds the limit",
        ),
    ],
)
def test_says_why(answer: ResponseCode, remark: str, why: str) -> None:
    rows = [refused(answer, remark=remark, body_bytes=100)]
    (one,) = problems(RULE, rows)
    assert one.title == f"broker-a refused 1 batch: {why}"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert same_in_any_order(RULE, rows)


def test_batches_that_are_stored() -> None:
    assert not problems_of_sample(RULE, "send-batch-5x.pcap")


def test_a_batch_that_is_too_long_is_another_matter() -> None:
    remark = ILLEGAL.replace("limit 4194304B", "msg body length limit 4194304B")
    row = refused(ResponseCode.MESSAGE_ILLEGAL, remark=remark, body_bytes=5_000_000)
    assert not problems(RULE, [row])
