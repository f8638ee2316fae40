"""Rows of messages of gRPC calls, against what the clients told and what the brokers were asked."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from analytics.life.again import inner_rows
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import (
    ACKNOWLEDGED,
    CHECKED,
    COMMITTED,
    DEAD,
    DELIVERED,
    PREPARED,
    RETURNED,
    ROLLED_BACK,
    STORED,
    MessageRecord,
)
from dissectors.rows.outcome import is_call
from tests.expected import SUFFIX

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
TOLD = ".grpc.json"
IN_ORDER = "grpc-dead-letters-5x"
NAMES = sorted(path.name.removesuffix(TOLD) for path in SAMPLES.glob(f"*{TOLD}"))


@cache
def _rows(name: str) -> list[MessageRecord]:
    options = DecodeOptions(messages=True, body_limit=64)
    (capture,) = (path for path in SAMPLES.glob(f"{name}.pcap*") if not path.name.endswith(SUFFIX))
    decode = Decode([str(capture)], options)
    found: list[MessageRecord] = []
    for _ in decode.records():
        found += [row for carried in decode.take_messages() for row in carried.messages]
    return found


def _calls(name: str, *events: str) -> list[MessageRecord]:
    return [row for row in _rows(name) if is_call(row.request_name) and row.event in events]


def _told(name: str, what: str) -> list[str]:
    lines = json.loads((SAMPLES / f"{name}{TOLD}").read_text())
    return [line["rest"].split(" ")[0] for line in lines if line["what"] == what]


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_what_the_clients_told(name: str) -> None:
    """What was sent and told is stored; what was delivered to a client is what it consumed."""
    stored = {row.unique_key for row in _calls(name, STORED, PREPARED)}
    assert len(_told(name, "sent")) == len(set(_told(name, "sent")))
    assert set(_told(name, "sent")) <= stored
    if not _told(name, "failed"):
        assert stored == set(_told(name, "sent"))
    if name != IN_ORDER:
        delivered = [row.unique_key or "" for row in _calls(name, DELIVERED)]
        assert sorted(delivered) == sorted(_told(name, "consumed"))
    checked = {row.unique_key for row in _calls(name, CHECKED)}
    assert checked == set(_told(name, "check"))


def test_a_consumer_in_order_tries_again_by_itself_and_gives_the_message_up() -> None:
    told = _told(IN_ORDER, "consumed")
    for event in (DELIVERED, DEAD):
        found = [row.unique_key for row in _calls(IN_ORDER, event)]
        assert [one for one in found for _ in range(2)] == told


def test_rows_have_the_bodies_that_producers_sent() -> None:
    rows = _calls("grpc-send-5x", STORED, PREPARED)
    assert {row.body for row in rows} == {f"body {i} " for i in range(4)}


def test_transactions_end_as_they_were_told() -> None:
    (checked,) = _calls("grpc-send-5x", CHECKED)
    assert [checked.unique_key] == _told("grpc-send-5x", "check")
    ended = [row.event for row in _calls("grpc-send-5x", COMMITTED, ROLLED_BACK)]
    assert ended == [COMMITTED, ROLLED_BACK, COMMITTED]


def test_a_proxy_asks_the_broker_for_the_same() -> None:
    """The hop behind each call names the same queue and offset, where both say one."""
    rows = _rows("grpc-consume-53")
    events = (DELIVERED, ACKNOWLEDGED, RETURNED)
    hops = {
        (row.event, row.topic, row.queue_id, row.queue_offset)
        for row in rows
        if not is_call(row.request_name)
    }
    calls = _calls("grpc-consume-53", *events)
    assert len(calls) > 20
    assert {(row.event, row.topic, row.queue_id, row.queue_offset) for row in calls} <= hops


def test_the_hop_behind_a_call_is_found() -> None:
    rows = [
        row for row in _rows("grpc-send-5x") if row.unique_key == _told("grpc-send-5x", "sent")[0]
    ]
    outer, inner = sorted(rows, key=lambda row: not is_call(row.request_name))
    assert inner_rows([outer, inner], ()) == {1: 0}
    assert (outer.latency_us or 0) > (inner.latency_us or 0)
