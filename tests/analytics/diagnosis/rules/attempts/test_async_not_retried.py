"""async-not-retried: refused once and never sent again."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.attempts.async_not_retried import RULE
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.versions import V5_3_2

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .made_sends import OTHER, send

FULL = int(ResponseCode.SERVICE_NOT_AVAILABLE)
BUSY = int(ResponseCode.SYSTEM_BUSY)
ERROR = int(ResponseCode.SYSTEM_ERROR)


def test_a_refusal_that_synchronous_sends_retry() -> None:
    rows = [send(0, 9), send(500, 1, FULL), send(3000, 2)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "1 send of group shop was refused with SERVICE_NOT_AVAILABLE (1) and not retried on another"
        " broker"
    )
    assert one.confidence is Confidence.LIKELY
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert same_in_any_order(RULE, rows)


def test_the_go_client_is_information() -> None:
    rows = [send(0, 9), send(500, 1, FULL, language="GO"), send(3000, 2)]
    assert [one.severity for one in problems(RULE, rows)] == [ProblemSeverity.INFO]


@pytest.mark.parametrize(
    "rows",
    [
        [send(0, 9), send(500, 1, FULL), send(503, 1, server_address=OTHER), send(3000, 2)],
        [send(0, 9), send(500, 1, FULL)],
        [send(0, 1, FULL), send(3000, 2)],
        [send(0, 9), send(500, 1, ERROR, remark="AclException: signature failed"), send(3000, 2)],
        [send(0, 9), send(500, 1, int(ResponseCode.MESSAGE_ILLEGAL)), send(3000, 2)],
        [
            send(0, 9),
            send(500, 1, int(ResponseCode.SYSTEM_BUSY), version=V5_3_2 - 20),
            send(3000, 2),
        ],
    ],
    ids=[
        "retried",
        "the capture ends",
        "the capture begins",
        "refused for good",
        "illegal",
        "an old client",
    ],
)
def test_silent_where_no_retry_is_missing(rows) -> None:
    assert problems(RULE, rows) == []


@pytest.mark.parametrize("name", ["fault-disk-full-5x.pcap", "acl-5x.pcap", "acl-4x.pcap"])
def test_silent_of_samples(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
