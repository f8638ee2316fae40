from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.rules.transactions.pop_clock_skew import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import START, exchange, problems, problems_of_sample, same_in_any_order

TIMEOUT = int(ResponseCode.POLLING_TIMEOUT)
REMARK = "the broker[10.0.0.1] pop message is timeout too much"


def pop(at_ms: float, answer: int = TIMEOUT, **values: Any) -> ExchangeRecord:
    of = {"group": "shop", "topic": "Orders", "remark": REMARK}
    return exchange(at_ms, int(RequestCode.POP_MESSAGE), answer, **{**of, **values})


def test_pops_that_are_refused_at_once() -> None:
    rows = [pop(at) for at in range(5)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "5 of 5 pops from 10.0.0.9 are refused immediately as too old: its clock is behind the"
        " broker's, and group shop gets no messages through it"
    )
    assert same_in_any_order(RULE, rows)


@pytest.mark.parametrize(
    ("behind_ms", "said"),
    [
        (70_000, "its clock is 70 s behind that of the capture"),
        (9_000, "they came late, or the clock of the broker is ahead"),
    ],
)
def test_how_far_the_clock_is_behind(behind_ms: int, said: str) -> None:
    start = START // 1_000_000
    rows = [
        pop(at, facts=[f"born_ms={start + at - behind_ms}", "suspend_ms=15000"])
        for at in range(0, 5000, 1000)
    ]
    (one,) = problems(RULE, rows)
    assert f"as too old: {said}, and group shop" in one.title
    assert one.details[-1] == "a pop may wait for 15 s (pollTime)"
    assert same_in_any_order(RULE, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [pop(at, latency_ms=15_000) for at in range(5)],  # the end of a long poll
        [pop(at, remark=None) for at in range(5)],
        [pop(0), pop(1)],
        [*(pop(at) for at in range(3)), *(pop(at, 0, remark=None) for at in range(9, 15))],
    ],
)
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


def test_healthy_pops() -> None:
    assert problems_of_sample(RULE, "pop-calls-5x.pcap") == []
