"""When sql92-unsupported speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.sql92_unsupported import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import problems, problems_of_sample
from ...refusal_checks import NAMED, check_made, check_recorded, refusals

REMARK = "The broker does not support consumer to filter message by SQL92"
refused = refusals(ResponseCode.SYSTEM_ERROR, REMARK, RequestCode.CHECK_CLIENT_CONFIG)


def test_names_what_was_refused() -> None:
    rows = [NAMED, refused(1), refused(9)]
    check_made(RULE, rows, "broker-a does not filter by SQL92: it refused 2 requests of group shop")


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, remark="no consumer for this group, g")])


def test_a_broker_that_filters() -> None:
    assert not problems_of_sample(RULE, "push-filter-sql-5x.pcap")


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "filter-sql-off-4x.pcap",
            1,
            "broker-a does not filter by SQL92: it refused 1 request",
        ),
        (
            "filter-sql-off-5x.pcap",
            1,
            "broker-a does not filter by SQL92: it refused 1 request",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(broker="broker-a"))
