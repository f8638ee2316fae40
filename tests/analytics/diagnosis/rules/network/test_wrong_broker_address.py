"""wrong-broker-address: routes to where nobody is."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.network import wrong_broker_address
from analytics.diagnosis.rules.network.wrong_broker_address import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

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
    ("name", "address", "count"),
    [
        ("address-refused-5x.pcap", "127.0.0.1:10911", 13),
        ("address-silent-5x.pcap", "127.77.0.99:10911", 12),
        ("address-silent-4x.pcap", "127.77.0.99:10911", 7),
    ],
)
def test_addresses_that_nobody_listens_at(name: str, address: str, count: int) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        f"the route names broker-a at {address}: {count} connection attempts to it failed, none"
        " succeeded"
    )
    assert (one.count, one.confidence) == (count, Confidence.LIKELY)
    assert one.subject == Subject(broker="broker-a")


@pytest.mark.parametrize(
    "name", ["fault-kill-5x.pcap", "slave-read-5x.pcap", "proxy-remoting-5x.pcap"]
)
def test_silent_where_the_address_is_right(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("address-refused-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def route(address: str) -> ExchangeRecord:
    code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    return exchange(1, code, server_address=NAMESRV, topic="T", brokers=[f"broker-a={address}"])


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1:10911", "which is the loopback of each client's own host"),
        ("172.17.0.3:10911", "which is an address inside Docker on the broker's host"),
        ("0.0.0.0:10911", "which is not an address that clients can connect to"),
    ],
)
def test_addresses_that_are_wrong_for_everybody_else(address: str, what: str) -> None:
    (one,) = problems(RULE, [route(address)])
    assert one.title == (
        f"the route names broker-a at {address}, {what}: no connection attempt was captured"
    )
    assert one.confidence is Confidence.LIKELY
    (one,) = problems(RULE, [route(address)], [refused_connect(9, server_address=address)])
    assert (one.count, one.confidence) == (1, Confidence.CERTAIN)
    assert problems(RULE, [route(address)], [connection(9, 9, server_address=address)]) == []


def test_an_address_of_the_same_network_is_fine() -> None:
    assert problems(RULE, [route("10.0.0.1:10911")]) == []
    assert problems(RULE, [route("10.0.0.1:10911")], [refused_connect(9)]) == []


def test_a_host_name_behind_which_nobody_connects() -> None:
    named = [route("rocketmq-001:10911")]
    nameserver = connection(0, 2000, server_address=NAMESRV)
    (one,) = problems(RULE, named, [nameserver])
    assert one.title.startswith("the route names broker-a by a host name, rocketmq-001:10911")
    assert one.advice.startswith("Check that each client resolves rocketmq-001")
    for used in (connection(5, 100, 1), refused_connect(5, 1)):
        assert problems(RULE, named, [nameserver, used]) == []


def test_a_proxy_that_names_itself_needs_its_own_remedy() -> None:
    connects = [refused_connect(at, at, server_address="10.0.0.77:8080") for at in range(3)]
    (one,) = problems(RULE, [route("10.0.0.77:8080")], connects)
    assert one.advice.startswith("Set remotingAccessAddr in rmq-proxy.json")
    connects = [refused_connect(at, at, server_address="10.0.0.77:10911") for at in range(3)]
    (one,) = problems(RULE, [route("10.0.0.77:10911")], connects)
    assert one.advice.startswith("Set brokerIP1")


def test_failed_connects_to_many_addresses_hide_no_known_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wrong_broker_address, "MAX_ADDRESSES", 2)
    address = "10.0.0.3:10911"
    scan = [refused_connect(at, at, server_address=f"10.0.9.{at}:22") for at in range(50)]
    tried = [refused_connect(100 + at, 100 + at, server_address=address) for at in range(12)]
    first = refused_connect(0, 200, server_address=address)
    (one,) = problems(RULE, [route(address)], [first, *scan, *tried])
    assert one.count == 13
