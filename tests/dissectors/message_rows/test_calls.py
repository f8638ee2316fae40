"""Rows of messages of gRPC calls, against what the clients told and what the brokers were asked."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.life.again import inner_rows
from dissectors.decode.exchange import Exchange
from dissectors.decode.exchange_row import records_of
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
from tests.profiles import examples
from tests.traffic.calls import OK, Calls, message, part, rejoined
from tests.traffic.captures import pcap_of
from tests.traffic.decoded import decode_segments
from tests.traffic.talk import CLIENT, Tcp

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
TOLD = ".grpc.json"
IN_ORDER = "grpc-dead-letters-5x"
IN_ORDER_ALL = (IN_ORDER, "grpc-fifo-blocked-5x")
"""samples of consumers in order that fail"""
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
    delivered = [row.unique_key or "" for row in _calls(name, DELIVERED)]
    consumed = _told(name, "consumed")
    # A consumer in order tries again by itself: each message is delivered once.
    assert sorted(delivered) == sorted(set(consumed) if name in IN_ORDER_ALL else consumed)
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


@examples(1)
@given(st.data())
def test_messages_of_a_stream_without_its_end_are_delivered(data: st.DataObject) -> None:
    """Wherever the capture is cut, or a stream reset: those whose bytes it has."""
    made, ends = Calls(), dict[str, int]()
    streams = [made.begin("ReceiveMessage") for _ in range(2)]
    for stream in streams:
        made.data(0, stream, part(1, part(2, "team")), ends=True)
        made.headers(1, stream, [(":status", "200"), ("content-type", "application/grpc")])
    for number in range(6):
        size = data.draw(st.sampled_from([0, 900, 3000]))
        got = part(2, message(f"got-{number}", bytes(size)))
        made.data(1, data.draw(st.sampled_from(streams)), got, size=data.draw(SIZES))
        ends[f"got-{number}"] = sum(len(said) for side, said in made.said if side)
    for stream in streams:
        if data.draw(st.booleans()):
            made.reset(data.draw(st.sampled_from([0, 1])), stream)
        else:
            made.data(1, stream, OK)
            made.headers(1, stream, [("grpc-status", "0")], ends=True)
    segments = rejoined(data.draw, made, 1448)
    segments = segments[: data.draw(st.integers(8, len(segments)))]
    captured = sum(len(one.payload) for one in segments if one.src != CLIENT)
    found = _rows_of(segments)
    assert sorted(row.unique_key or "" for row in found) == [
        key for key, end in ends.items() if end <= captured
    ]
    places = {number: one.ts for number, one in enumerate(segments, 1)}
    for row in found:
        assert (row.event, row.consumer_group) == (DELIVERED, "team")
        assert row.packet is not None
        assert row.time == places[row.packet]


def test_a_call_without_its_end_is_unanswered() -> None:
    made = Calls()
    stream = made.begin("ReceiveMessage")
    made.data(0, stream, part(1, part(2, "team")), ends=True)
    made.headers(1, stream, [(":status", "200")])
    made.data(1, stream, OK)
    made.data(1, stream, part(2, message("key", b"x")))
    (row,) = _rows_of(made.talk().segments)
    assert (row.unique_key, row.response_name, row.latency_us) == ("key", None, None)
    outcome = decode_segments(made.talk().segments)
    (exchange,) = records_of(outcome.exchanges, ["c"], [])
    assert (exchange.status, exchange.response_time) == ("unanswered", None)
    alone = [Exchange(None, one.response) for one in outcome.exchanges]  # its request was given up
    (orphan,) = records_of(alone, ["c"], [])
    assert (orphan.status, orphan.response_packet) == ("orphan", row.packet)


SIZES = st.sampled_from([16384, 700, 100])


def _rows_of(segments: list[Tcp]) -> list[MessageRecord]:
    with NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_of(segments))
        file.flush()
        decode = Decode([file.name], DecodeOptions(messages=True))
        return [
            row
            for _ in decode.records()
            for carried in decode.take_messages()
            for row in carried.messages
        ]
