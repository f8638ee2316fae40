"""Bodies of real clients and brokers: all are understood, and equal when written again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.grpc.command import CallCommand
from dissectors.remoting.bodies.body import Body
from dissectors.remoting.bodies.registry import decode_body, encode_body
from dissectors.remoting.messages.message import encode_message

SAMPLES = Path(__file__).resolve().parents[4] / "samples"
LARGEST = 400_000
"""Bytes of a capture that is read here: the rest has more of the same."""
CAPTURES = sorted(path.name for path in SAMPLES.glob("*.pcap") if path.stat().st_size <= LARGEST)
RESPELLED = "heartbeat-respelled-"
"""samples of a client that spells the members of its heartbeat in another case"""
IGNORED = "(fastjson2) ignores ClientID"
STANDARD_JSON_SINCE = 401
"""Version of a client that a NameServer answers in standard JSON (V4_9_4)."""


class Seen:
    """One body of a sample with what its command says of it."""

    def __init__(self, code: int, response: bool, data: bytes, body: Body, standard: bool) -> None:
        self.code = code
        self.response = response
        self.data = data
        self.body = body
        self.standard = standard


def bodies_of(capture: str) -> Iterator[Seen]:
    for batch in Decode([str(SAMPLES / capture)]).exchanges():
        for exchange in batch:
            if exchange.request is None or isinstance(exchange.request.command, CallCommand):
                continue
            code = exchange.request.command.code
            version = exchange.request.command.version
            for pdu in (exchange.request, exchange.response):
                if pdu is None or not pdu.body or pdu.missing:
                    continue
                response = pdu is exchange.response
                command = pdu.command
                answer = command.code if response else 0
                data = bytes(pdu.body)
                body = decode_body(code, response, answer, data, command.ext_fields)
                yield Seen(code, response, data, body, version >= STANDARD_JSON_SINCE)


@pytest.mark.skipif(not CAPTURES, reason="no samples were recorded")
@pytest.mark.parametrize("capture", CAPTURES or ["none"])
def test_every_body_is_understood_and_survives_both_directions(capture: str) -> None:
    for seen in bodies_of(capture):
        body = seen.body
        assert body.problem is None, (capture, seen.code, body)
        is_respelled = capture.startswith(RESPELLED) and body.kind == "HeartbeatData"
        assert [IGNORED in note for note in body.notes] == [True] * is_respelled, (capture, body)
        if body.kind in ("stored-messages", "stored-message"):
            assert b"".join(map(encode_message, body.messages)) == seen.data
        elif body.messages:
            values = body.messages[0].body if body.kind == "raw-message" else body.messages
            assert encode_body(seen.code, seen.response, values) == seen.data
        else:
            standard = seen.code == 105 and seen.standard
            again = encode_body(seen.code, seen.response, body.value, standard_json=standard)
            if again != seen.data:  # other clients order the members otherwise
                found = decode_body(seen.code, seen.response, 0, again, {})
                assert found.value == body.value, (capture, seen.code)
