"""What the fold of refusals counts: relays once, brokers by name, figures of all addresses."""

from __future__ import annotations

from analytics.diagnosis.names import called, listed
from analytics.diagnosis.refusals import RefusedAttempt, own_attempts
from analytics.diagnosis.rules.overload.page_cache_busy import MARK, RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import Hop

from .made_rows import exchange, problems, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
BUSY = int(ResponseCode.SYSTEM_BUSY)
PROXY = "10.0.0.7:8080"


def refused(at_ms: float, latency_ms: float = 5, **values: object) -> ExchangeRecord:
    made = {"remark": MARK, "topic": "Orders", "broker_name": "broker-a", **values}
    return exchange(at_ms, SEND, BUSY, latency_ms, **made)


def test_a_relay_that_was_captured_on_both_sides_is_one_refusal() -> None:
    outer = refused(0, 20, server_address=PROXY, unique_key="A")
    inner = refused(5, 10, client_address="10.0.0.7:50000", unique_key="A", conversation=1)
    (one,) = problems(RULE, [inner, outer])
    assert one.count == 1
    assert one.subject.broker == "broker-a"
    assert "clients: 10.0.0.9 (1)" in one.details
    assert len(one.evidence) == 2
    assert same_in_any_order(RULE, [inner, outer])


def test_attempts_one_after_the_other_count_each() -> None:
    rows = [
        refused(0, unique_key="A"),
        refused(10, unique_key="A", server_address="10.0.0.3:10911"),
    ]
    (one,) = problems(RULE, rows)
    assert one.count == 2


def test_two_captures_of_one_refusal_count_once() -> None:
    here = refused(0, unique_key="A")
    there = refused(0.1, unique_key="A", opaque=here.opaque, capture="other.pcap")
    (one,) = problems(RULE, [here, there])
    assert one.count == 1


def test_two_addresses_of_one_broker_are_one_problem() -> None:
    rows = [refused(at, server_address=f"10.0.0.1:{port}") for at, port in ((0, 10911), (9, 10909))]
    (one,) = problems(RULE, rows)
    assert (one.count, one.subject.broker) == (2, "broker-a")
    rows.append(refused(20, server_address="10.0.0.3:10911", broker_name="broker-b"))
    assert [one.subject.broker for one in problems(RULE, rows)] == ["broker-a", "broker-b"]


def test_own_attempts_are_without_inner_hops() -> None:
    def attempt(begin: int, end: int, host: str, server_address: str) -> RefusedAttempt:
        hop = Hop(begin, end, host, server_address)
        return RefusedAttempt(hop, f"{host}:1", begin, None, None, None)

    outer, inner = attempt(0, 9, "c", "p:1"), attempt(2, 7, "p", "b:1")
    second = attempt(10, 12, "c", "p:1")
    assert own_attempts([second, inner, outer]) == [outer, second]


def test_words() -> None:
    assert listed(["b", "a"]) == "a and b"
    assert listed(["a"]) == "a"
    assert listed([]) == ""
    assert called("group", ["a", "a"]) == "group a"
    assert called("group", ["b", "a"]) == "groups a and b"
    assert listed("abcde") == "a, b, c and 2 more"
