"""Brokers of requests that name none, by the routes before them."""

from __future__ import annotations

from replay.captured import broker_names
from replay.captured.broker_names import BrokerNames
from replay.captured.captured_send import CapturedSend
from replay.captured.source import CapturedSource
from tests.expected import SAMPLES


def test_a_broker_has_the_name_that_routes_give_to_its_address() -> None:
    names = BrokerNames()
    names.note(["broker-a=10.0.0.1:10911", "broker-a=10.0.0.2:10911", "broker-b=[::1]:10911"])
    assert names.of("10.0.0.1:10911") == names.of("10.0.0.2:10911") == "broker-a"
    assert names.of("10.0.0.1:10909") == "broker-a", "its VIP channel"
    assert names.of("[::1]:10911") == "broker-b"
    assert names.of("10.0.0.3:10911") == "10.0.0.3:10911"
    assert names.of("no address") == "no address"


def test_a_proxy_has_no_brokers_name() -> None:
    names = BrokerNames()
    names.note(["broker-a=10.0.0.7:8080", "broker-b=10.0.0.7:8080"])
    names.note(["broker-a=10.0.0.7:8080"])
    assert names.of("10.0.0.7:8080") == "10.0.0.7:8080"


def test_names_are_bounded() -> None:
    names = BrokerNames()
    names.note(f"b{number}=host:{number}" for number in range(broker_names.MAX_NAMES + 5))
    assert names.of("host:9") == "b9"
    assert names.of(f"host:{broker_names.MAX_NAMES + 4}") == f"host:{broker_names.MAX_NAMES + 4}"


def test_sends_of_an_old_client_are_to_the_brokers_of_its_route() -> None:
    """The client of 4.3.2 names no broker in its requests."""
    source = CapturedSource([str(SAMPLES / "fault-freeze-43.pcap")])
    sends = [one for batch in source.batches() for one in batch if isinstance(one, CapturedSend)]
    assert {one.header.broker_name for one in sends} == {""}
    assert {one.broker for one in sends} == {"broker-a", "broker-b"}
    assert all(one.answer.broker == one.broker for one in sends)
