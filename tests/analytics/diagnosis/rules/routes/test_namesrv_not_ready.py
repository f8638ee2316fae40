"""When namesrv-not-ready speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.routes.namesrv_not_ready import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, same_in_any_order
from ...refusal_checks import check_recorded


def route(at_ms: float, remark: str | None) -> ExchangeRecord:
    code, error = int(RequestCode.GET_ROUTEINFO_BY_TOPIC), int(ResponseCode.SYSTEM_ERROR)
    return exchange(at_ms, code, error, remark=remark, server_address=NAMESRV, topic="Orders")


def test_says_how_long() -> None:
    rows = [route(0, "name server not ready"), route(4000, "name server not ready")]
    (one,) = problems(RULE, rows)
    assert (
        one.title == "NameServer 10.0.0.2:9876 returned no routes yet: 2 requests refused over 4 s"
    )
    assert one.subject == Subject(server=NAMESRV)
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [route(0, None), route(0, "system busy")])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "namesrv-not-ready-5x.pcap",
            5,
            "NameServer 127.77.0.1:9876 returned no routes yet: 5 requests refused",
        ),
    ],
)
def test_recorded_on_a_real_cluster(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(server="127.77.0.1:9876"))
