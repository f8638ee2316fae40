"""Names of brokers, by routes and by the requests that carry one."""

from __future__ import annotations

import random

import pytest

from dissectors.rows.broker_names import MAX_ADDRESSES, BrokerNames
from replay.captured.captured_send import CapturedSend
from replay.captured.source import CapturedSource
from tests.expected import SAMPLES


def test_a_broker_has_the_name_that_routes_give_to_its_address() -> None:
    names = BrokerNames()
    names.add_routed(["broker-a=10.0.0.1:10911", "broker-a=10.0.0.2:10911", "broker-b=[::1]:10911"])
    assert names.of("10.0.0.1:10911") == names.of("10.0.0.2:10911") == "broker-a"
    assert names.of("10.0.0.1:10909") == "broker-a", "its VIP channel"
    assert names.of("[::1]:10911") == "broker-b"
    assert names.of("10.0.0.3:10911") == "10.0.0.3:10911"
    assert names.of("no address") == "no address"


def test_a_proxy_has_no_brokers_name() -> None:
    names = BrokerNames()
    names.add_routed(["broker-a=10.0.0.7:8080", "broker-b=10.0.0.7:8080"])
    names.add_routed(["broker-a=10.0.0.7:8080"])
    assert names.of("10.0.0.7:8080") == "10.0.0.7:8080"


def test_names_are_bounded() -> None:
    names = BrokerNames()
    names.add_routed(f"b{number}=host:{number}" for number in range(MAX_ADDRESSES + 5))
    assert names.of("host:9") == "b9"
    assert names.of(f"host:{MAX_ADDRESSES + 4}") == f"host:{MAX_ADDRESSES + 4}"


def test_sends_of_an_old_client_are_to_the_brokers_of_its_route() -> None:
    """The client of 4.3.2 names no broker in its requests."""
    source = CapturedSource([str(SAMPLES / "fault-freeze-43.pcap")])
    sends = [one for batch in source.batches() for one in batch if isinstance(one, CapturedSend)]
    assert {one.header.broker_name for one in sends} == {""}
    assert {one.broker for one in sends} == {"broker-a", "broker-b"}
    assert all(one.response.broker == one.broker for one in sends)


A, B, C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:8080"
VIP = "10.0.0.1:10909"


@pytest.mark.parametrize(
    ("routed", "asked", "expected"),
    [
        ([], [(A, "a", 9), (A, "b", 1)], {A: "a"}),  # few name another
        ([], [(C, "a", 1), (C, "b", 1)], {}),  # a proxy
        ([], [(C, "a", 9), (C, "b", 1)], {C: "a"}),  # a proxy for nearly one broker
        ([], [(A, "a", 9), (B, "b", 2), (B, "a", 2)], {A: "a", B: "b"}),  # half are stale retries
        ([], [(A, "a", 2), (VIP, "a", 2)], {A: "a", VIP: "a"}),
        ([f"a={A}"], [(A, "b", 9)], {A: "a"}),  # routes count most
        ([f"a={A}", f"b={A}"], [(A, "b", 9)], {}),  # a proxy, by routes
    ],
)
def test_names_by_routes_and_requests(
    routed: list[str], asked: list[tuple[str, str, int]], expected: dict[str, str]
) -> None:
    made = BrokerNames()
    made.add_routed(routed)
    for address, name, count in asked:
        made.add_requested(address, name, count)
    assert made.names() == expected


def test_the_vip_channel_has_the_name_of_its_broker() -> None:
    made = BrokerNames()
    made.add_requested(A, "a")
    assert made.names_with_vip() == {A: "a", VIP: "a"}
    assert (made.of(VIP), made.own_address(VIP)) == ("a", A)


def test_parts_in_any_order_resolve_alike() -> None:
    chance = random.Random(1)
    rows = [(f"h:{chance.randrange(20)}", f"b{chance.randrange(6)}") for _ in range(500)]
    whole = BrokerNames()
    for address, name in rows:
        whole.add_requested(address, name)
    for _ in range(4):
        chance.shuffle(rows)
        parts = [BrokerNames(), BrokerNames()]
        for number, (address, name) in enumerate(rows):
            parts[number % 2].add_requested(address, name)
            parts[number % 2].names()  # resolving in between changes nothing
        parts[1].merge(parts[0])
        assert parts[1].names() == whole.names()
