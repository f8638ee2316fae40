"""Which hops a relay made of which, in any order, by captures and by made-up rows; bounded."""

from __future__ import annotations

import random

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.rows import relays as of
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import Hop, Relay, Relays, hop_of, inner_hops, proven_relays
from tests.dissectors.made_rows import START, record, unanswered
from tests.expected import SAMPLES

CLIENT, RELAY, BROKER = "10.0.0.9", "10.0.0.7:8080", "10.0.0.1:10911"
HIDDEN = "172.17.0.1"
"""a host that says nothing of the relay"""
MS, SECOND = 1_000_000, 1_000_000_000


def hop(begin: int, took: int | None, host: str, server: str, id_: str | None = None) -> Hop:
    """Return a hop; times in ms."""
    end = None if took is None else (begin + took) * MS
    return Hop(begin * MS, end, host, server, id_)


def call(begin: int, took: int | None) -> Hop:
    return hop(begin, took, CLIENT, RELAY)._replace(call=True)


def test_what_the_host_that_was_asked_sends_meanwhile_is_an_inner_hop() -> None:
    outer = hop(0, 20, CLIENT, RELAY)
    assert inner_hops([hop(5, 10, "10.0.0.7", BROKER), outer]) == {0: 1}
    assert inner_hops([outer, hop(21, 10, "10.0.0.7", BROKER)]) == {}, "after the response"
    assert inner_hops([outer, hop(5, 10, "10.0.0.7", RELAY)]) == {}, "to the same server"
    assert inner_hops([outer, hop(5, 10, HIDDEN, BROKER)]) == {}, "from another host"
    assert inner_hops([outer, hop(5, 10, CLIENT, BROKER)]) == {}, "an attempt"


def test_one_message_id_proves_a_relay_behind_any_host() -> None:
    for host in (CLIENT, HIDDEN, "10.0.0.7"):
        proof = [hop(0, 20, CLIENT, RELAY, "ID"), hop(5, 10, host, BROKER, "ID")]
        assert inner_hops(proof) == {1: 0}
        assert inner_hops(proof[::-1]) == {0: 1}
        assert proven_relays([proof]) == {Relay(RELAY, host, BROKER)}
    attempts = [hop(0, 2, CLIENT, RELAY, "ID"), hop(1000, 2, CLIENT, BROKER, "ID")]
    assert inner_hops(attempts) == {}, "one after the other"
    assert proven_relays([attempts]) == frozenset()


def test_a_proven_relay_is_known_for_sends_that_were_not_answered() -> None:
    known = {Relay(RELAY, HIDDEN, BROKER), Relay(RELAY, CLIENT, BROKER)}
    for host, most in ((HIDDEN, of.MAX_OPEN), (CLIENT, of.SAME_HOST_OPEN)):
        outer = hop(0, None, CLIENT, RELAY)
        assert inner_hops([outer, hop(most // MS, None, host, BROKER)], known) == {1: 0}
        assert inner_hops([outer, hop(most // MS + 1, None, host, BROKER)], known) == {}
        assert inner_hops([outer, hop(1, None, host, BROKER)]) == {}, "not proven"


def test_what_goes_by_remoting_while_a_call_waits_is_behind_it() -> None:
    calls = [call(0, 20), call(100, None)]
    behind = [hop(5, 10, HIDDEN, BROKER), hop(110, 10, HIDDEN, BROKER)]
    assert inner_hops([*calls, *behind]) == {2: 0, 3: 1}
    assert inner_hops([calls[0], behind[1]]) == {}
    assert inner_hops([hop(0, 200, CLIENT, BROKER), calls[1]]) == {}, "no relay speaks gRPC"


def test_hops_through_two_relays_are_all_inner_ones() -> None:
    second = "10.0.0.8:8080"
    chain = [
        hop(0, 30, CLIENT, RELAY, "ID"),
        hop(1, 20, "10.0.0.7", second, "ID"),
        hop(2, 10, "10.0.0.8", BROKER, "ID"),
    ]
    assert inner_hops(chain) == {1: 0, 2: 1}


def test_a_client_on_the_host_of_the_broker_may_try_again() -> None:
    first, made = hop(0, 5, "10.0.0.1", RELAY), hop(1, None, "10.0.0.7", BROKER)
    again = hop(2, 1, "10.0.0.1", "10.0.0.8:8080")
    assert inner_hops([first, made, again]) == {1: 0}


def test_clocks_of_two_captures_may_differ() -> None:
    outer = hop(0, 20, CLIENT, RELAY, "ID")._replace(capture="a")
    inner = hop(-300, 10, HIDDEN, BROKER, "ID")
    assert inner_hops([outer, inner._replace(capture="a")]) == {}
    assert inner_hops([outer, inner._replace(capture="b")]) == {1: 0}


def test_hops_never_go_round_in_a_circle() -> None:
    hops = [
        hop(0, 20, CLIENT, RELAY)._replace(capture="a"),
        hop(0, 20, CLIENT, BROKER)._replace(capture="b"),
    ]
    known = {Relay(RELAY, CLIENT, BROKER), Relay(BROKER, CLIENT, RELAY)}
    assert len(inner_hops(hops, known)) == 1


def test_many_hops_of_one_message_take_linear_time() -> None:
    hops = [hop(n, 1_000_000, HIDDEN, f"10.0.0.{n % 200}:1") for n in range(20_000)]
    assert inner_hops(hops) == {}


def _rows(name: str) -> list[ExchangeRecord]:
    return [row for rows in Decode([str(SAMPLES / name)]).records() for row in rows]


@pytest.mark.parametrize(
    ("name", "sends"),
    [
        ("grpc-send-5x.pcap", 12),
        ("grpc-go-keys-53.pcapng", 4),
        ("grpc-python-5x.pcap", 4),
        ("grpc-tls-keys-5x.pcapng", 4),
        ("grpc-too-many-5x.pcap", 40),
        ("grpc-dead-letters-5x.pcap", 2),
        ("proxy-remoting-5x.pcap", 10),
    ],
)
def test_both_sides_are_paired_in_any_order_and_when_merged(name: str, sends: int) -> None:
    rows = _rows(name)
    calls = name.startswith("grpc")
    proxy = "127.77.0.71:18081" if calls else "127.77.0.71:18080"
    relay = Relay(proxy, "127.0.0.1", "127.77.0.11:10911")
    for _ in range(3):
        half = len(rows) // 2
        found, other = Relays(), Relays()
        for row in rows[:half]:
            found.add(row)
        for row in rows[half:]:
            other.add(row)
        found.merge(other)
        ((key, times),) = found.sends().items()
        assert key == relay
        assert found.proven() == (frozenset() if calls else {relay})
        assert {times.outer.count, times.inner.count, times.own.count} == {sends}
        assert times.outer.total == times.inner.total + times.own.total
        random.Random(sends).shuffle(rows)


@pytest.mark.parametrize("name", ["grpc-local-53.pcap", "send-async-5x.pcap"])
def test_where_nothing_is_relayed_there_is_no_relay(name: str) -> None:
    found = Relays()
    for row in _rows(name):
        found.add(row)
    assert found.sends() == {}


def test_sends_of_a_relay_that_is_proven_later_count() -> None:
    found = Relays()
    for n, id_ in enumerate((None, "ID")):
        times = {"request_time": START, "response_time": START + 9 * MS, "unique_key": f"K{n}"}
        found.add(
            record(client_address="10.0.0.9:1", server_address=RELAY, offset_msg_id=id_, **times)
        )
        times |= {"request_time": START + MS, "response_time": START + 2 * MS}
        found.add(
            record(client_address=f"{HIDDEN}:1", server_address=BROKER, offset_msg_id=id_, **times)
        )
    ((relay, times_of),) = found.sends().items()
    assert (relay, times_of.outer.count) == (Relay(RELAY, HIDDEN, BROKER), 2)


def test_a_row_becomes_a_hop() -> None:
    row = unanswered(request_code=None, request_name="SendMessage", request_time=START)
    assert hop_of(row) == Hop(START, None, "10.0.0.5", BROKER, None, True, "a.pcap")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "MAX_MESSAGES", 10)
    monkeypatch.setattr(of, "MAX_HOPS", 5)
    monkeypatch.setattr(of, "MAX_RELAYS", 3)
    found, other = Relays(), Relays()
    for n in range(50):
        times = {"request_time": START, "response_time": START + 9 * MS, "unique_key": f"K{n}"}
        found.add(record(client_address=f"10.0.0.{n}:1", server_address=RELAY, **times))
        found.add(record(client_address=f"10.0.1.{n}:1", **(times | {"response_time": START + MS})))
        other.add(record(**times))
    for _ in range(10):
        other.add(record(**times))
    found.merge(other)
    assert len(found.sends()) == 3
    assert len(found._open) <= 10
    assert max(len(hops) for hops in found._open.values() if isinstance(hops, list)) <= 5
