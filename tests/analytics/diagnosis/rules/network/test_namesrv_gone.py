"""namesrv-gone: one of two NameServers is killed."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.network.namesrv_gone import RULE
from dissectors.remoting.codes import RequestCode

from ...made_rows import (
    NAMESRV,
    connection,
    exchange,
    problems,
    problems_of_sample,
    refused_connect,
    same_in_any_order,
    sample,
)


@pytest.mark.parametrize(
    ("name", "count", "since"),
    [("namesrv-gone-5x.pcap", 16, "02:43:13"), ("namesrv-gone-4x.pcap", 3, "03:01:04")],
)
def test_a_killed_namesrv(name: str, count: int, since: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    start = f"NameServer 127.77.0.1:9876 was gone from {since} UTC to the end of the capture: "
    assert one.title.startswith(start)
    assert (one.count, one.severity) == (count, ProblemSeverity.WARNING)
    assert one.subject == Subject(server="127.77.0.1:9876")


@pytest.mark.parametrize("name", ["outage-5x.pcap", "fault-kill-5x.pcap", "registration-5x.pcap"])
def test_silent_where_it_was_there(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("namesrv-gone-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_the_only_one_is_an_error() -> None:
    route = exchange(1, int(RequestCode.GET_ROUTEINFO_BY_TOPIC), server_address=NAMESRV, topic="T")
    rows = [
        connection(0, 100, server_address=NAMESRV),
        refused_connect(900, 1, server_address=NAMESRV),
    ]
    (one,) = problems(RULE, [route], rows)
    assert one.severity is ProblemSeverity.ERROR
