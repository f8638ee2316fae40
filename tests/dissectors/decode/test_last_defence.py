"""One frame never ends a run: text nested deep, and decoders that raise although none should."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dissectors.conversations.conversation import Pdu
from dissectors.decode import command_row, exchange_row, stages
from dissectors.decode.command_row import command_row_of
from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.remoting.bodies import registry
from dissectors.remoting.bodies.registry import decode_body
from rmqtool.decode import tree
from tests.pure import implementation
from tests.traffic.captures import pcap_of
from tests.traffic.commands import HEART_BEAT, Command, frame, send, sent
from tests.traffic.decoded import decode, records
from tests.traffic.talk import Talk

NESTED = b"[" * 1200
BODIES = {
    "brackets": NESTED,
    "braces": b'{"a":' * 1200,
    "closed": b"[" * 1200 + b"]" * 1200,
    "member": b'{"consumerDataSet":[{"groupName":"g"}],"a":' + NESTED + b"]" * 1200 + b"}",
    "very deep": b"[" * 1_000_000,
}


def _capture(tmp_path: Path, body: bytes) -> Path:
    """A good exchange, the heartbeat in packet 6, a good exchange."""
    talk = Talk(mss=60_000).open()
    talk.say(0, send(1).frame).say(1, sent(1).frame)
    talk.say(0, Command(HEART_BEAT, 2, body=body).frame)
    talk.say(1, Command(0, 2, 1).frame).say(0, send(3).frame).say(1, sent(3).frame)
    path = tmp_path / "heartbeat.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    return path


@pytest.mark.parametrize("name", BODIES)
def test_a_nested_heartbeat_is_a_finding(name: str, tmp_path: Path) -> None:
    path = _capture(tmp_path, BODIES[name])
    outcome = records([path])
    assert [one.status for one in outcome.records] == ["answered"] * 3
    found = [info for info in outcome.findings if info.kind is FindingKind.BAD_BODY]
    assert [info.packet for info in found] == [outcome.records[1].request_packet]
    assert outcome.records[1].findings == ["BAD_BODY"]
    assert outcome.records[1].group == ("g" if name == "member" else None)


@pytest.mark.parametrize("name", BODIES)
def test_every_view_goes_on(name: str, tmp_path: Path) -> None:
    path = _capture(tmp_path, BODIES[name])
    rows = [
        command_row_of(seen, [str(path)], 256)
        for batch in Decode([str(path)]).commands()
        for seen in batch
    ]
    assert len(rows) == 6
    assert [one["kind"] for one in rows[2].findings] == ["BAD_BODY"]
    assert all(msgspec.json.encode(one) for one in rows)
    assert all(tree.Tree(["x"], True, None).exchange(one) for one in decode([path]).exchanges)


@pytest.mark.parametrize("text", [b'{"code":34,"opaque":2,"x":', b'{"code":34,"extFields":{"a":'])
def test_a_nested_header_is_a_bad_header(text: bytes, tmp_path: Path) -> None:
    talk = Talk(mss=60_000).open().say(0, send(1).frame).say(1, sent(1).frame)
    talk.say(0, frame(text + NESTED)).say(0, send(3).frame).say(1, sent(3).frame)
    path = tmp_path / "header.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    outcome = records([path])
    assert [one.opaque for one in outcome.records] == [1, 3]
    assert outcome.kinds[FindingKind.BAD_HEADER] == 1


class _Slip(Exception):
    """What no decoder should raise."""


def _raise(*_: object) -> None:
    raise _Slip


def test_a_decoder_of_heartbeats_that_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "groups_of", _raise)
    outcome = records([_capture(tmp_path, b"{}")])
    assert len(outcome.records) == 3
    (found,) = [info for info in outcome.findings if info.kind is FindingKind.BAD_BODY]
    assert (found.detail, found.packet) == ("not decoded: _Slip", outcome.records[1].request_packet)


def test_a_decoder_of_bodies_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.FORMS, "raw-message", _raise)  # type: ignore[arg-type]
    assert decode_body(310, False, 0, b"x", {}).problem == "not decoded: _Slip"


def test_a_column_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if implementation() == "compiled":
        pytest.skip("compiled modules call each other directly")

    def slip(request: Pdu | None, _: Pdu | None) -> list[str]:
        if request is not None and request.view.topic:
            raise _Slip
        return []

    monkeypatch.setattr(exchange_row, "facts", slip)
    outcome = records([_capture(tmp_path, b"{}")])
    assert [one.topic for one in outcome.records] == [None, None, None]
    assert outcome.kinds[FindingKind.BAD_BODY] == 2  # the heartbeat names no topic


def test_a_header_that_makes_its_decoder_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dissectors.conversations import conversation_states

    if implementation() == "compiled":
        pytest.skip("compiled modules call each other directly")
    monkeypatch.setattr(conversation_states, "odd_header_of", _raise)
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame).say(0, frame(b"{code:1}"))
    talk.say(0, send(3).frame).say(1, sent(3).frame)
    path = tmp_path / "header.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    outcome = records([path])
    assert [one.opaque for one in outcome.records] == [1, 3]
    assert [(i.packet, i.detail) for i in outcome.findings if i.kind is FindingKind.BAD_BODY] == [
        (6, "not decoded: _Slip")
    ]


def test_parts_that_cannot_be_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if implementation() == "compiled":
        pytest.skip("compiled modules call each other directly")
    monkeypatch.setattr(command_row, "property_parts", _raise)
    path = _capture(tmp_path, b"{}")
    (seen, *_) = [one for batch in Decode([str(path)]).commands() for one in batch]
    shown = command_row_of(seen, [str(path)], 256)
    assert [one["detail"] for one in shown.findings] == ["not decoded: _Slip"]
    assert shown.header["b"] == "Orders"
    assert msgspec.json.encode(shown)


def test_a_tree_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if implementation() == "compiled":
        pytest.skip("compiled modules call each other directly")
    monkeypatch.setattr(tree, "findings_of", _raise)
    path = _capture(tmp_path, b"{}")
    lines = tree.Tree(["x"], False, None).exchange(decode([path]).exchanges[0])
    assert sum("not decoded: _Slip" in line for line in lines) == 2
