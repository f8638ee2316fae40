"""When end-transaction-refused speaks, and when it must not."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.end_transaction_refused import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, oneway, problems, problems_of_sample, same_in_any_order
from ...refusal_checks import check_recorded

END = int(RequestCode.END_TRANSACTION)
NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")


def refused(answer: ResponseCode, **values: Any) -> ExchangeRecord:
    made = {"topic": "Orders", "group": "shop", "facts": ["decision=commit"], **values}
    return exchange(5, END, int(answer), **made)


def test_names_group_and_reason() -> None:
    rows = [NAMED, refused(ResponseCode.SYSTEM_ERROR, remark="The producer group wrong")]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a refused to end 1 transaction of group shop: The producer group wrong"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.details[-1] == "asked for: commit (1)"
    assert same_in_any_order(RULE, rows)


def test_too_late() -> None:
    (one,) = problems(RULE, [NAMED, refused(ResponseCode.ILLEGAL_OPERATION)])
    assert one.title == (
        "broker-a refused to end 1 transaction of group shop: it came later than the time that"
        " the message itself sets for the first check"
    )


def test_one_way_ends_and_access_control_are_no_problem() -> None:
    rows = [
        oneway(0, END, topic="Orders"),
        exchange(1, END, 0, topic="Orders"),
        refused(ResponseCode.SYSTEM_ERROR, remark="AclException: No acl config for eve, org.x"),
    ]
    assert not problems(RULE, rows)


@pytest.mark.parametrize("name", ["transaction-4x.pcap", "transaction-5x.pcap"])
def test_recorded_transactions(name: str) -> None:
    assert not problems_of_sample(RULE, name)


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "transaction-refused-4x.pcap",
            3,
            "127.77.0.11:10911 refused to end 3 transactions of groups right_group and "
            "wrong_group: Find prepared transaction message failed, The producer group "
            "wrong and The transaction state table offset wrong",
        ),
        (
            "transaction-refused-5x.pcap",
            3,
            "127.77.0.11:10911 refused to end 3 transactions of groups right_group and "
            "wrong_group: Find prepared transaction message failed, The producer group "
            "wrong and The transaction state table offset wrong",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(broker="127.77.0.11:10911", topic="EndTopic"))
