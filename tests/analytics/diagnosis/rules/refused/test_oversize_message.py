"""When oversize-message speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.refused.oversize_message import RULE, limit_in
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order
from ...refusal_checks import check_recorded

REMARK = (
    "the message is illegal, maybe msg body or properties length not matched. msg body length limit"
    " 4194304B, msg properties length limit 32KB."
)


def refused(code: int = int(RequestCode.SEND_MESSAGE_V2), **values: Any) -> ExchangeRecord:
    made = {"remark": REMARK, "topic": "Orders", "group": "shop", "broker_name": "broker-a"}
    return exchange(0, code, int(ResponseCode.MESSAGE_ILLEGAL), **{**made, **values})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (
            {"body_bytes": 5_000_000},
            "a body of 5,000,000 bytes (limit 4,194,304)",
        ),
        (
            {"body_bytes": 9, "facts": ["properties_bytes=40000"]},
            "properties of 40,000 bytes (limit 32,767)",
        ),
        (
            {"remark": "message topic length too long 300", "topic": "T" * 300},
            "a topic of 300 characters (limit 127)",
        ),
        (
            {"body_bytes": 70_000, "remark": "msg body must be less 64KB"},
            "a body of 70,000 bytes",
        ),
    ],
)
def test_says_what_is_too_long(values: dict[str, Any], why: str) -> None:
    rows = [refused(**values)]
    (one,) = problems(RULE, rows)
    assert one.title == f"broker-a refused 1 send as too long or malformed: {why}"
    assert one.subject == Subject(broker="broker-a", topic=rows[0].topic, group="shop")
    assert one.confidence is Confidence.CERTAIN
    assert same_in_any_order(RULE, rows)


def test_it_is_not_sure_where_nothing_is_too_long() -> None:
    (one,) = problems(RULE, [refused(body_bytes=10)])
    assert one.confidence is Confidence.LIKELY
    assert one.title.endswith(": a body of 10 bytes (limit 4,194,304)")


def test_a_short_batch_is_refused_as_a_batch() -> None:
    batch = int(RequestCode.SEND_BATCH_MESSAGE)
    assert not problems(RULE, [refused(batch, body_bytes=100)])
    assert problems(RULE, [refused(batch, body_bytes=5_000_000)])


def test_a_timed_message_is_another_matter() -> None:
    assert not problems(RULE, [refused(remark="timer message illegal, the delay time")])


def test_limit_in() -> None:
    assert limit_in(REMARK) == 4_194_304
    assert limit_in(None) is None


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "message-too-large-4x.pcap",
            4,
            "broker-a refused 4 sends as too long or malformed: a body of 20,006 "
            "bytes (limit 16,384); properties of 33,088 bytes (limit 32,767); "
            "a topic of 130 characters (limit 127)",
        ),
        (
            "message-too-large-5x.pcap",
            4,
            "broker-a refused 4 sends as too long or malformed: a body of 20,006 "
            "bytes (limit 16,384); properties of 33,089 bytes (limit 32,767); "
            "a topic of 130 characters (limit 127)",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(broker="broker-a"))
