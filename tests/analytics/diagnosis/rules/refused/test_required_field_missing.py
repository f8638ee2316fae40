"""required-field-missing: headers without a field that the server requires."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.refused.broker_failed import RULE as BROKER_FAILED
from analytics.diagnosis.rules.refused.required_field_missing import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL, ERROR = int(RequestCode.PULL_MESSAGE), int(ResponseCode.SYSTEM_ERROR)
NULL = "java.lang.NullPointerException: Cannot invoke"


@pytest.mark.parametrize("name", ["field-missing-4x.pcap", "field-missing-5x.pcap"])
def test_recorded(name: str) -> None:
    found = problems_of_sample(RULE, name)
    assert [one.title.partition(" refused ")[2] for one in found] == [
        "2 pulls (PULL_MESSAGE): header field queueId is missing",
        "3 sends (SEND_MESSAGE_V2): header fields queueId and topic are missing",
    ]
    assert same_in_any_order(RULE, sample(name).exchanges)
    assert problems_of_sample(BROKER_FAILED, name) == []


def test_what_the_server_says() -> None:
    row = exchange(0, 34, ERROR, remark="RemotingCommandException: the custom field <x> is null")
    (one,) = problems(RULE, [row])
    assert one.title.endswith("header field x is missing")


def test_another_error_is_none() -> None:
    whole = {"topic": "T", "group": "g", "queue_id": 0}
    assert problems(RULE, [exchange(0, PULL, ERROR, remark=NULL, **whole)]) == []
    assert len(problems(BROKER_FAILED, [exchange(0, PULL, ERROR, remark=NULL, **whole)])) == 1
    assert problems(RULE, [exchange(0, PULL, ERROR, remark="store is tired")]) == []
