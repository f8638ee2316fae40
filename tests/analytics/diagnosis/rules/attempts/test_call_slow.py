"""call-slow: sends by gRPC that take far longer than a proxy's quick ones."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.attempts.call_slow import RULE
from dissectors.grpc.names import OK
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, connection, exchange, problems, same_in_any_order, sample

SAMPLES = (
    *("grpc-send-5x", "grpc-consume-53", "grpc-too-many-5x", "grpc-proxy-killed-5x"),
    *("grpc-local-53", "grpc-python-5x", "grpc-disk-full-53"),
)


def call(at_ms: float, latency_ms: float = 3, **values: object) -> ExchangeRecord:
    """Return a send by gRPC at a time."""
    name = {"request_name": "SendMessage", "response_name": "OK", "topic": "Orders"}
    made = exchange(at_ms, 0, OK, latency_ms, **{**name, **values})
    made.request_code = None
    return made


QUICK = [call(2000 + 50 * at) for at in range(20)]
CONNECTION = connection(0, 20_000)


def test_three_slow_calls() -> None:
    slow = [call(5000 + 1000 * at, 400 + at) for at in range(3)]
    (one,) = problems(RULE, [*QUICK, *slow], [CONNECTION])
    assert one.title == (
        f"proxy {BROKER} took up to 402 ms for a send: 3 sends took 400 ms or longer; the"
        " fastest tenth took less than 4.1 ms"
    )
    assert (one.count, one.subject) == (3, Subject(server=BROKER))
    assert one.severity is ProblemSeverity.WARNING
    assert "topics: Orders (3)" in one.details
    assert not any("isolate" in line for line in one.details), "clients of gRPC isolate nothing"
    assert same_in_any_order(RULE, [*QUICK, *slow], [CONNECTION])


def test_one_is_information_and_two_short_ones_are_none() -> None:
    (one,) = problems(RULE, [*QUICK, call(5000, 600)], [CONNECTION])
    assert one.severity is ProblemSeverity.INFO
    assert problems(RULE, [*QUICK, call(5000, 300), call(7000, 300)], [CONNECTION]) == []


def test_other_calls_failures_and_first_ones_do_not_count() -> None:
    others = [
        call(10, 900),
        call(4000, 900, request_name="ReceiveMessage"),
        call(5000, 900, response_code=50001, response_name="INTERNAL_SERVER_ERROR"),
    ]
    assert problems(RULE, [*QUICK, *others], [CONNECTION]) == []


def test_a_proxy_that_stands_still() -> None:
    """Three times 600 ms; a send that comes later waits shorter."""
    rows = sample("grpc-slow-53.pcap")
    (one,) = problems(RULE, rows.exchanges, rows.connections)
    assert (one.count, one.subject) == (3, Subject(server="127.77.0.11:18081"))
    assert one.title.startswith("proxy 127.77.0.11:18081 took up to 576 ms for a send: 3 sends")


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_without_slow_sends(name: str) -> None:
    rows = sample(f"{name}.pcap")
    assert problems(RULE, rows.exchanges, rows.connections) == []
