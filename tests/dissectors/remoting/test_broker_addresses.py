"""Addresses of brokers in answers of NameServers, as Java writes them and as others do."""

from __future__ import annotations

import json

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.broker_addresses import MAX_BROKERS, broker_addresses_of
from tests.expected import SAMPLES

JAVA = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a"'
    b',"cluster":"c"},{"brokerAddrs":{0:"[::1]:10911"},"brokerName":"broker-b","cluster":"c"}],'
    b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-c","perm":6}]}'
)
FOUND = ["broker-a=10.0.0.1:10911", "broker-a=10.0.0.2:10911", "broker-b=[::1]:10911"]


def test_a_route_as_java_writes_it() -> None:
    assert broker_addresses_of(JAVA) == FOUND


def test_a_route_in_another_order_and_with_blanks() -> None:
    value = {
        "brokerDatas": [
            {"cluster": "c", "brokerName": "broker-b", "brokerAddrs": {"0": "[::1]:10911"}},
            {
                "brokerName": "broker-a",
                "brokerAddrs": {"0": "10.0.0.1:10911", "1": "10.0.0.2:10911"},
            },
        ]
    }
    assert broker_addresses_of(json.dumps(value, indent=2).encode()) == FOUND


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'"brokerAddrs"',
        b'{"brokerAddrs":{0:"10.0.0.1:10911"}}',
        b'{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a\x1b[31m"}',
        b'{"brokerAddrs":{0:"10.0.0.1\x07"},"brokerName":"a"}',
        b'{"brokerAddrs":' * 5000,
        b"{" * 100_000 + b'"brokerAddrs"',
        b'{"brokerAddrs":{' + b'0:"' * 20_000,
    ],
)
def test_what_names_none(body: bytes) -> None:
    assert broker_addresses_of(body) == []


def test_as_many_as_are_named() -> None:
    addresses = ",".join(f'{n}:"10.0.0.1:{n}"' for n in range(MAX_BROKERS + 9))
    body = f'{{"brokerAddrs":{{{addresses}}},"brokerName":"a"}}'.encode()
    assert len(broker_addresses_of(body)) == MAX_BROKERS


@pytest.mark.parametrize(
    "name", ["send-sync-5x", "send-sync-4x", "binary-header-cluster-5x", "go-client-5x"]
)
def test_rows_of_recorded_routes_name_the_broker(name: str) -> None:
    rows = [row for part in Decode([str(SAMPLES / f"{name}.pcap")]).records() for row in part]
    routes = [row for row in rows if row.request_code == 105 and row.response_code == 0]
    assert {tuple(row.brokers) for row in routes} == {("broker-a=127.77.0.11:10911",)}
    assert not any(row.brokers for row in rows if row.request_code in (310, 34, 38))


def test_rows_of_send_backs_have_their_limit() -> None:
    decoded = Decode([str(SAMPLES / "push-retry-dlq-5x.pcap")])
    rows = [row for part in decoded.records() for row in part]
    limits = {(row.request_code == 36, row.max_reconsume_times) for row in rows}
    assert limits == {(True, 2), (False, None)}
