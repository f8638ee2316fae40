"""What tests of rules about refused requests share: made refusals, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from .made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

NAMED = exchange(0, int(RequestCode.SEND_MESSAGE_V2), broker_name="broker-a")
"""A send that tells the broker's name."""
MADE = {"topic": "Orders", "group": "shop"}
"""What made requests name."""


def refusals(
    answer: ResponseCode,
    remark: str,
    request: RequestCode = RequestCode.SEND_MESSAGE_V2,
    **fixed: Any,
) -> Callable[..., ExchangeRecord]:
    """Return what makes refused requests: at a time in ms, another request, other values."""

    def refused(at_ms: float, request: RequestCode = request, **values: Any) -> ExchangeRecord:
        made = {"remark": remark, **MADE, **fixed, **values}
        return exchange(at_ms, int(request), int(answer), **made)

    return refused


def check_made(
    rule: DiagnosisRule, rows: Sequence[ExchangeRecord], title: str, count: int = 2
) -> None:
    """Check that made refusals of broker-a are one problem, in any order."""
    (one,) = problems(rule, rows)
    assert one.title == title
    assert one.subject == Subject(broker="broker-a", **MADE)
    assert one.count == count
    assert same_in_any_order(rule, rows)


def check_recorded(
    rule: DiagnosisRule, name: str, title: str, count: int, subject: Subject
) -> None:
    """Check that a sample has one problem, in any order of its exchanges."""
    (one,) = problems_of_sample(rule, name)
    assert one.title == title
    assert one.subject == subject
    assert one.count == count
    assert same_in_any_order(rule, sample(name).exchanges)
