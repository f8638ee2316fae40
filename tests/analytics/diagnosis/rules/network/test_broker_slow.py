"""broker-slow: late answers, single ones, and those of a fresh connection."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.network.broker_slow import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)

SEND = int(RequestCode.SEND_MESSAGE_V2)


@pytest.mark.parametrize(
    ("name", "figures"),
    [("fault-slow-5x.pcap", ("708 ms", "304 ms")), ("fault-slow-4x.pcap", ("705 ms", "303 ms"))],
)
def test_late_answers(name: str, figures: tuple[str, str]) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        f"broker-a (127.77.0.61:10911) took up to {figures[0]} for a send: 7 sends took"
        f" {figures[1]} or longer; the fastest tenth took less than 4.1 ms"
    )
    assert (one.count, one.subject) == (7, Subject(broker="broker-a"))
    assert one.severity is ProblemSeverity.WARNING


@pytest.mark.parametrize("name", ["outage-5x.pcap", "ha-replication-5x.pcap", "send-sync-5x.pcap"])
def test_silent_where_nothing_is_slow_but_a_beginning_or_a_slave(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-slow-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def quick() -> list[ExchangeRecord]:
    return [exchange(2000 + at, SEND, broker_name="broker-a") for at in range(20)]


def test_one_slow_send_is_information() -> None:
    slow = exchange(5000, SEND, latency_ms=600, broker_name="broker-a")
    (one,) = problems(RULE, [*quick(), slow], [connection(0, 9000)])
    assert one.severity is ProblemSeverity.INFO
    slow = exchange(5000, SEND, latency_ms=400, broker_name="broker-a")
    assert problems(RULE, [*quick(), slow], [connection(0, 9000)]) == []


def test_the_first_send_of_a_connection_and_waits_for_a_slave_do_not_count() -> None:
    first = exchange(10, SEND, latency_ms=900, broker_name="broker-a")
    late = int(ResponseCode.FLUSH_SLAVE_TIMEOUT)
    slave = [exchange(at, SEND, late, 3000, broker_name="broker-a") for at in (4000, 8000)]
    assert problems(RULE, [*quick(), first, *slave], [connection(0, 12_000)]) == []
