"""Sends through proxies: those of samples are all paired, others are not, memory is bounded."""

from __future__ import annotations

import json
import random

import pytest

from dissectors.decode.pipeline import Decode, DecodeStats
from dissectors.rows.record import ExchangeRecord
from rmqtool.summary import proxied
from rmqtool.summary.proxied import Proxied
from rmqtool.summary.summary import Summary
from rmqtool.summary.summary_json import summary_json
from rmqtool.summary.summary_text import summary_lines
from rmqtool.ui.console import UNLIMITED, Terminal
from tests.dissectors.made_rows import START, record
from tests.expected import SAMPLES

PROXY, BROKER = "127.77.0.71:18081", "127.77.0.11:10911"
MS = 1_000_000


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
    ],
)
def test_each_send_is_paired_in_whatever_order_its_sides_come(name: str, sends: int) -> None:
    rows = _rows(name)
    first = next(row for row in rows if row.request_name == "QueryRoute")
    for _ in range(3):
        found = Proxied()
        for row in (first, *rows):
            found.add(row)
        ((key, row_of),) = found.rows.items()
        assert key == (PROXY, BROKER)
        counts = row_of.client.count, row_of.broker.count, row_of.proxy.count
        assert counts == (sends, sends, sends)
        assert row_of.client.total == row_of.broker.total + row_of.proxy.total
        random.Random(sends).shuffle(rows)


@pytest.mark.parametrize(
    "name", ["grpc-local-53.pcap", "send-async-5x.pcap", "proxy-remoting-5x.pcap"]
)
def test_where_nothing_is_behind_calls_there_is_no_row(name: str) -> None:
    found = Proxied()
    for row in _rows(name):
        found.add(row)
    assert found.rows == {}


def _call(key: str, **values: object) -> ExchangeRecord:
    call = {"request_code": None, "request_name": "SendMessage", "responder": PROXY}
    return record(unique_key=key, **{**call, **values})


def test_what_is_not_within_the_call_is_not_behind_it() -> None:
    found = Proxied()
    call = _call("K", request_time=START, response_time=START + 5 * MS, latency_us=5000)
    for behind in (
        {"request_time": START - MS, "response_time": START + MS},
        {"request_time": START + MS, "response_time": START + 6 * MS},
        {"request_time": START + MS, "response_time": START + 2 * MS, "responder": PROXY},
    ):
        found.add(call)
        found.add(record(unique_key="K", **behind))
    assert found.rows == {}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxied, "MAX_WAITING", 10)
    monkeypatch.setattr(proxied, "MAX_ROWS", 3)
    found = Proxied()
    for number in range(50):
        times = {"request_time": START, "response_time": START + MS}
        found.add(_call(f"A{number}", **times))
        found.add(record(unique_key=f"B{number}", **times))
        found.add(_call(f"C{number}", responder=f"10.0.0.{number}:8081", **times))
        found.add(record(unique_key=f"C{number}", **times))
    assert len(found.rows) == 3
    assert len(found._calls) <= 10
    assert len(found._sends) <= 10


def test_text_and_json_say_where_the_time_went() -> None:
    summary = Summary()
    summary.add(_rows("grpc-send-5x.pcap"))
    lines = summary_lines(summary, DecodeStats(), [], Terminal(False, UNLIMITED, False))
    at = next(i for i, line in enumerate(lines) if line.startswith("Sends through proxies"))
    assert lines[at + 2].split()[:3] == [PROXY, BROKER, "12"]
    (row,) = json.loads(summary_json(summary, DecodeStats()))["proxies"]
    assert (row["proxy"], row["broker"], row["sends"]) == (PROXY, BROKER, 12)
    assert 0 < row["broker_p50_us"] < row["client_p50_us"]
    assert 0 < row["proxy_p50_us"] < row["client_p50_us"]
