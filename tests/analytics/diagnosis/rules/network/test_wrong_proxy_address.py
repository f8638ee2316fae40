"""wrong-proxy-address: routes of a proxy to where nobody listens."""

from __future__ import annotations

import pytest

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
    row = exchange(1, 0, OK, topic="T", responder=PROXY, facts=facts)
    row.request_code, row.request_name = None, "QueryRoute"
    return row


def test_a_mapped_port_that_the_route_does_not_name() -> None:
    rows, connects = [route(NAMED)], [refused_connect(2, 1, server=NAMED)]
    (one,) = problems(RULE, rows, connects)
    assert one.title == (
        f"the proxy's route names {NAMED}, but clients reach the proxy at {PROXY}: 1 connect to it"
        " failed, none succeeded"
    )
    assert one.advice.startswith("Publish the proxy's gRPC port")
    assert same_in_any_order(RULE, rows, connects)
    (one,) = problems(RULE, [route("10.9.9.9:8081")], [refused_connect(2, server="10.9.9.9:8081")])
    assert one.advice.startswith("Set localServeAddr")


def test_an_address_that_works_or_that_nobody_tried() -> None:
    assert problems(RULE, [route(NAMED)]) == []
    assert problems(RULE, [route(PROXY)], [refused_connect(2, server=PROXY)]) == []
    other = refused_connect(2, server=NAMED, client="10.0.0.50:1234")
    assert problems(RULE, [route(NAMED)], [other]) == [], "nobody who got the route"
    came_about = connection(9, 10, 2, server=NAMED)
    assert problems(RULE, [route(NAMED)], [refused_connect(2, server=NAMED), came_about]) == []


@pytest.mark.parametrize("name", ["grpc-send-5x.pcap", "grpc-proxy-killed-5x.pcap"])
def test_silent_where_the_address_is_right(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
