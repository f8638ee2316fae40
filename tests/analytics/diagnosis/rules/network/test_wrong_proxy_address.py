"""wrong-proxy-address: routes of a proxy to where nobody listens."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.network.wrong_proxy_address import RULE
from dissectors.grpc.names import OK
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    connection,
    exchange,
    problems,
    problems_of_sample,
    refused_connect,
    same_in_any_order,
)

PROXY = "10.0.0.7:30081"
NAMED = "10.0.0.7:8081"


def route(*addresses: str) -> ExchangeRecord:
    facts = [f"asked_endpoint={PROXY}", *(f"endpoint={one}" for one in addresses)]
    row = exchange(1, 0, OK, topic="T", server_address=PROXY, facts=facts)
    row.request_code, row.request_name = None, "QueryRoute"
    return row


def test_a_mapped_port_that_the_route_does_not_name() -> None:
    rows, connects = [route(NAMED)], [refused_connect(2, 1, server_address=NAMED)]
    (one,) = problems(RULE, rows, connects)
    assert one.title == (
        f"the proxy's route names {NAMED}, but clients reach the proxy at {PROXY}: 1 connection"
        " attempt to it failed, none succeeded"
    )
    assert one.advice.startswith("Publish the proxy's gRPC port")
    assert same_in_any_order(RULE, rows, connects)
    (one,) = problems(
        RULE, [route("10.9.9.9:8081")], [refused_connect(2, server_address="10.9.9.9:8081")]
    )
    assert one.advice.startswith("Set brokerIP1")


def test_an_address_that_works_or_that_nobody_tried() -> None:
    assert problems(RULE, [route(NAMED)]) == []
    assert problems(RULE, [route(PROXY)], [refused_connect(2, server_address=PROXY)]) == []
    other = refused_connect(2, server_address=NAMED, client_address="10.0.0.50:1234")
    assert problems(RULE, [route(NAMED)], [other]) == [], "nobody who got the route"
    came_about = connection(9, 10, 2, server_address=NAMED)
    assert (
        problems(RULE, [route(NAMED)], [refused_connect(2, server_address=NAMED), came_about]) == []
    )


@pytest.mark.parametrize("name", ["grpc-send-5x.pcap", "grpc-proxy-killed-5x.pcap"])
def test_silent_where_the_address_is_right(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_a_host_name_that_no_client_resolves() -> None:
    (one,) = problems(RULE, [route("proxy-0.internal:8081")])
    assert one.title == (
        "the proxy's route names proxy-0.internal:8081 by a host name, and no client that"
        " received this route made another call; the clients may be unable to resolve the name"
    )
    assert (one.confidence, one.count) == (Confidence.LIKELY, 1)
    going_on = exchange(9, 0, OK, server_address="10.1.1.1:8081", facts=["client=c"])
    going_on.request_code, going_on.request_name = None, "Telemetry"
    assert problems(RULE, [route("proxy-0.internal:8081"), going_on]) == []
    known = route("proxy-0.internal:8081")
    known.facts[0] = "asked_endpoint=proxy-0.internal:8081"
    assert problems(RULE, [known]) == [], "the client knows the proxy by it"
