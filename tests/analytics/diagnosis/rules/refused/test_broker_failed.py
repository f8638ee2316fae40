"""broker-failed: exceptions in a broker's own program, and those that mean something."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.broker_failed import RULE, thrown
from analytics.diagnosis.rules.refused.refused_otherwise import RULE as OTHERWISE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
ERROR = int(ResponseCode.SYSTEM_ERROR)
NULL = (
    'java.lang.NullPointerException: Cannot invoke "java.lang.Boolean.booleanValue()" because'
    ' "v2.m" is null, org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeaderV2.'
    "createSendMessageRequestHeaderV1(SendMessageRequestHeaderV2.java:78)"
)
"""as a broker of 5.2.0 answers a send of a client of 3.2.6 or 4.0.0"""


def failed(at_ms: float, remark: str = NULL, **values: str) -> ExchangeRecord:
    chosen = {"group": "bills", "topic": "T", "broker_name": "broker-a", "version_name": "V3_2_6"}
    return exchange(at_ms, SEND, ERROR, remark=remark, queue_id=0, **{**chosen, **values})


def test_a_client_that_is_too_old_for_the_broker() -> None:
    rows = [failed(at) for at in range(3)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a failed on 3 sends of group bills with an internal error (NullPointerException)"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.CERTAIN)
    assert one.subject == Subject(broker="broker-a", topic="T", group="bills")
    assert one.details[0] == f"response: {NULL}"
    assert "client versions: JAVA V3_2_6 (3)" in one.details
    assert same_in_any_order(RULE, rows)
    assert problems(OTHERWISE, rows) == []


@pytest.mark.parametrize(
    "remark",
    [
        "org.apache.rocketmq.acl.common.AclException: No accessKey is configured",
        "org.apache.rocketmq.remoting.exception.RemotingCommandException: the custom field <e> is",
        "CODE: 1 DESC: java.lang.NullPointerException",
        "IllegalStateException",
        "",
        None,
    ],
)
def test_what_is_thrown_to_refuse_something(remark: str | None) -> None:
    assert thrown(remark) is None
    assert problems(RULE, [failed(0, remark)]) == []  # type: ignore[arg-type]


def test_two_errors_of_one_broker() -> None:
    (one,) = problems(RULE, [failed(0, "java.lang.NoSuchMethodError: x"), failed(1), failed(2)])
    assert one.count == 3
    assert one.details[0].startswith(
        "also: broker-a failed on 1 send of group bills with an internal error"
    )
