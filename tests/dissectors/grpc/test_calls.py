from __future__ import annotations

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.budget import Budget
from dissectors.foreign import Unreadable
from dissectors.grpc.call_messages import CallMessage, shown_metadata
from dissectors.grpc.calls import MOST_STREAMS, CallReader
from dissectors.grpc.columns import columns_of
from dissectors.grpc.pieces import MessageCutter, Piece
from dissectors.grpc.tree import decode_message
from dissectors.grpc.wire import fields_of
from dissectors.remoting.row_facts.names import MAX_FACTS
from tests.traffic.calls import part
from tests.traffic.http2 import Http2Writer as Writer

from ..http2.talk import NOWHERE, events_of

HEARTBEAT = b"\x0a\x06\x12\x04team\x10\x02"
"""a push consumer of the group `team`"""
SETTINGS = b"\x12\x00"
"""a telemetry command with empty settings"""
OK = b"\x0a\x09\x08\xa0\x9c\x01\x12\x03yes"
"""a status of code OK"""


def _said(client: Writer, server: Writer) -> list[CallMessage]:
    reader = CallReader(Budget())
    out: list[CallMessage] = []
    for event in events_of(bytes(client.data)):
        reader.receive(event, True, out)
    for event in events_of(bytes(server.data)):
        reader.receive(event, False, out)
    return out


def test_a_call_is_a_request_and_a_response() -> None:
    client, server = Writer(), Writer(is_client=False)
    client.call(1, "Heartbeat", HEARTBEAT)
    server.answer(1, OK)
    request, response = _said(client, server)
    assert (request.command.name, request.command.columns.group) == ("Heartbeat", "team")
    assert request.command.columns.facts == ["client_type=PUSH_CONSUMER", "client=me"]
    assert (response.command.code, response.command.name) == (20000, "OK")
    assert response.command.remark == "yes"


def test_what_grpc_itself_refuses_has_its_own_name() -> None:
    client, server = Writer(), Writer(is_client=False)
    client.call(1, "Heartbeat", HEARTBEAT)
    server.headers(
        1,
        [(":status", "200"), ("grpc-status", "14"), ("grpc-message", "gone%20%E2%82%AC")],
        ends=True,
    )
    _, response = _said(client, server)
    assert (response.command.code, response.command.name) == (14, "GRPC_UNAVAILABLE")
    assert response.command.remark == "gone €"


@pytest.mark.parametrize("served", [False, True])
def test_the_status_of_a_telemetry_stream_answers_settings_that_wait(served: bool) -> None:
    client, server = Writer(), Writer(is_client=False)
    path = "/apache.rocketmq.v2.MessagingService/Telemetry"
    client.headers(1, [(":method", "POST"), (":path", path)])
    client.message(1, SETTINGS, ends=False)
    if served:
        server.headers(1, [(":status", "200")])
        server.message(1, SETTINGS, ends=False)
    server.headers(1, [("grpc-status", "3"), ("grpc-message", "group not found")], ends=True)
    request, response = _said(client, server)
    assert (request.command.name, request.command.is_response) == ("Telemetry", False)
    assert response.command.is_response
    expected = None if served else "group not found"
    assert response.command.remark == expected


def test_settings_that_a_proxy_sends_on_its_own_answer_nothing_later() -> None:
    reader, out = CallReader(Budget()), list[CallMessage]()
    client, server = Writer(), Writer(is_client=False)
    path = "/apache.rocketmq.v2.MessagingService/Telemetry"
    client.headers(1, [(":method", "POST"), (":path", path)])
    server.headers(1, [(":status", "200")])
    for _ in range(3):
        server.message(1, SETTINGS, ends=False)
    first, own = events_of(bytes(client.data)), events_of(bytes(server.data))
    later, end = Writer(), Writer(is_client=False)
    later.message(1, SETTINGS, ends=False)
    end.headers(1, [("grpc-status", "3")], ends=True)
    for from_client, events in (
        *((True, first), (False, own)),
        *((True, events_of(bytes(later.data))), (False, events_of(bytes(end.data)))),
    ):
        for event in events:
            reader.receive(event, from_client, out)
    assert [message.command.code for message in out][-1] == 3


def test_signatures_are_masked() -> None:
    client = Writer()
    signed = "MQv2-HMAC-SHA1 Credential=accountname, SignedHeaders=x-mq-date-time, Signature=C0FFEE"
    path = "/apache.rocketmq.v2.MessagingService/Heartbeat"
    client.headers(1, [(":method", "POST"), (":path", path), ("authorization", signed)])
    client.message(1, HEARTBEAT, ends=True)
    (request,) = _said(client, Writer(is_client=False))
    shown = request.command.ext_fields["authorization"]
    assert "C0FFEE" not in shown
    assert "accountname" not in shown
    assert request.command.account == "accountname"


def test_other_credentials_are_masked() -> None:
    key = "A" * 80
    shown = shown_metadata(
        [
            ("proxy-authorization", "Basic dXNlcjpwYXNz"),
            ("set-cookie", "sid=secret"),
            ("authorization", f"MQv2-HMAC-SHA1 Credential={key}/cn, Signature=AB"),
        ]
    )
    assert shown["proxy-authorization"] == shown["set-cookie"] == "***"
    assert "AAAAA" not in shown["authorization"]


def test_facts_of_a_message_are_bounded() -> None:
    """Each entry of a subscription takes two bytes, and its fact repeats the group."""
    entries = part(1, part(2, "g" * 1000)) + part(2, b"") * 10_000
    settings = decode_message("TelemetryCommand", part(2, part(6, entries)))
    assert len(columns_of("TelemetryCommand", settings.tree).facts) == MAX_FACTS
    addresses = part(2, part(1, "host") + part(2, 8081)) * 10_000
    route = decode_message("QueryRouteRequest", part(2, addresses))
    assert len(columns_of("QueryRouteRequest", route.tree).facts) == MAX_FACTS


def test_streams_without_end_are_bounded() -> None:
    client = Writer()
    path = "/apache.rocketmq.v2.MessagingService/Heartbeat"
    for stream in range(1, 2 * MOST_STREAMS + 200, 2):
        client.headers(stream, [(":method", "POST"), (":path", path)])
    reader = CallReader(Budget())
    for event in events_of(bytes(client.data)):
        reader.receive(event, True, [])
    assert reader.abandoned == 100


def test_a_compressed_message_is_opened_within_the_budget() -> None:
    packed = gzip.compress(b"0" * 1_000_000)
    data = b"\1" + len(packed).to_bytes(4) + packed
    for room, problem in ((2_000_000, None), (1000, "it becomes too large")):
        cutter = MessageCutter()
        cutter.encoding = "gzip"
        found: list[Piece] = []
        cutter.receive(data, 0, NOWHERE, Budget(room), found)
        assert (len(found[0].data), found[0].problem) == (min(room, 1_000_000), problem)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 200), max_size=8))
def test_how_messages_are_cut_changes_nothing(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(b"\0" + len(one).to_bytes(4) + one for one in messages)
    cutter = MessageCutter()
    found: list[Piece] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, stop in itertools.pairwise(edges):
        cutter.receive(data[start:stop], 0, NOWHERE, Budget(), found)
    assert [one.data for one in found] == messages
    assert cutter.held == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_far_as_they_go(data: bytes) -> None:
    decode_message("SendMessageRequest", data)
    decode_message("TelemetryCommand", data)


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05abc", b"\x0b", b"\x00\x00", b"\xff" * 11])
def test_what_is_no_message_says_so(data: bytes) -> None:
    with pytest.raises(Unreadable):
        list(fields_of(data))
