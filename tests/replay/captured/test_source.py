"""Captures and logs give the same sends."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from replay.captured.captured_send import CapturedSend, Refused, messages_of
from replay.captured.source import REGISTER_BROKER, CapturedSource, SourceError, survey_of
from replay.safety import Guard
from rmqtool.decode.options import DecodeRequest, View
from rmqtool.decode.run import run_decode
from rmqtool.ui.common_options import RowFormat
from tests.rmqtool.command import capture_in
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, route_query
from tests.traffic.talk import Talk

from ..replayed import SAMPLES, read, sample

NAMES = (
    "send-sync-5x.pcap",
    "send-batch-4x.pcap",
    "send-compressed-5x.pcap",
    "send-binary-header-5x.pcap",
    "transaction-5x.pcap",
    "fault-disk-full-plain-5x.pcap",
    "big-bodies-5x.pcap",
    "acl-5x.pcap",
)


def written(name: str, folder: Path) -> str:
    path = folder / "log.jsonl"
    request = DecodeRequest(
        [sample(name)], view=View.commands, format=RowFormat.jsonl, output=str(path), quiet=True
    )
    run_decode(request)
    return str(path)


def shape(rows: list[CapturedSend | Refused]) -> list[object]:
    found: list[object] = []
    for one in rows:
        if isinstance(one, Refused):
            found.append((one.refusal, one.seen.origin.packet))
            continue
        answer = one.response
        outcome = answer.status, answer.code, answer.remark, answer.attempts, answer.queue_offset
        messages = messages_of(one.seen, one.header)
        found.append((one.seen.origin.packet, one.header, messages, one.state, outcome))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_log_gives_what_its_capture_gives(name: str, tmp_path: Path) -> None:
    log = CapturedSource([written(name, tmp_path)])
    found = [one for group in log.batches() for one in group]
    assert shape(found) == shape(read(name))
    assert any(isinstance(one, CapturedSend) for one in found)
    capture = CapturedSource([sample(name)])
    list(capture.batches())
    assert log.skipped == capture.skipped
    assert log.responders == capture.responders == survey_of([sample(name)]).responders


def test_bodies_that_are_no_text_come_back_whole(tmp_path: Path) -> None:
    rows = read("send-batch-5x.pcap")
    assert rows
    log = Path(written("send-batch-5x.pcap", tmp_path))
    text = log.read_text().replace(
        '"bodyForm":"text","body":"message 0 ä消息"', '"bodyForm":"base64","body":"/wA="'
    )
    log.write_text(text)
    source = CapturedSource([str(log)])
    captured = [one for group in source.batches() for one in group if isinstance(one, CapturedSend)]
    messages = messages_of(captured[0].seen, captured[0].header)
    assert messages[0].body == b"\xff\x00"  # type: ignore[union-attr]


def test_a_packed_log_is_read(tmp_path: Path) -> None:
    log = Path(written("send-sync-5x.pcap", tmp_path))
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    source = CapturedSource([str(packed)])
    assert sum(len(group) for group in source.batches()) == 8


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"no": "row"}', "line 1: not a command row"),
        ("{", "line 1"),
        ('{"request_time":"x","topic":"T"}', "holds no bodies"),
    ],
)
def test_what_is_no_log_is_said_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(line + "\n")
    with pytest.raises(SourceError, match=says):
        list(CapturedSource([str(log)]).batches())


def test_rows_that_were_edited_are_refused_with_a_reason(tmp_path: Path) -> None:
    log = Path(written("send-sync-5x.pcap", tmp_path))
    text = log.read_text()
    for old, new in (
        ('"time":"2026', '"time":"when'),
        ('"bodyForm":"text"', '"bodyForm":"base64"'),
    ):
        log.write_text(text.replace(old, new))
        with pytest.raises(SourceError, match="line"):
            list(CapturedSource([str(log)]).batches())


def test_captures_and_logs_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="one order"):
        list(CapturedSource([sample(NAMES[0]), written(NAMES[0], tmp_path)]).batches())


NOT_ROCKETMQ = ("tls-refused-4x.pcap", "tls-refused-5x.pcap")
"""captures without a frame that can be read"""


@pytest.mark.slow
def test_foreign_and_damaged_traffic_gives_reasons_and_no_error() -> None:
    for path in sorted(SAMPLES.glob("*.pcap")):
        source = CapturedSource([str(path)])
        for group in source.batches():
            for one in group:
                if isinstance(one, CapturedSend):
                    messages_of(one.seen, one.header)
        assert source.commands > 0 or path.name in NOT_ROCKETMQ, path.name


def test_addresses_that_answered_are_known_whatever_they_were_asked(tmp_path: Path) -> None:
    source = CapturedSource([str(capture_in(tmp_path))])
    list(source.batches())
    assert {"10.0.0.1:10911", "10.0.0.9:9876"} <= source.responders


def test_brokers_that_only_routes_and_registrations_name_are_known_too(tmp_path: Path) -> None:
    route = b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.77:10911"},"brokerName":"broker-b"}]}'
    query = route_query(1)
    fields = {"brokerName": "broker-c", "brokerAddr": "10.0.0.78:10911"}
    talk = Talk().open().say(0, query.frame).say(1, query.answer(0, body=route).frame)
    talk.say(0, Command(REGISTER_BROKER, 2, ext=fields).frame)
    endless = ("d" * 400 + ":10911", f"[fe80::79%{'z' * 400}]:10911", f"10.0.0.80{'.' * 400}:10911")
    for opaque, address in enumerate(endless, 3):
        fields = {"brokerName": f"broker-{opaque}", "brokerAddr": address}
        talk.say(0, Command(REGISTER_BROKER, opaque, ext=fields).frame)
    path = tmp_path / "route.pcap"
    path.write_bytes(pcap_of(talk.segments))
    source = CapturedSource([str(path)])
    list(source.batches())
    assert {"10.0.0.77:10911", "10.0.0.78:10911"} < source.responders
    assert max(map(len, source.responders)) < 100
    guard = Guard(True)
    guard.learn(source.responders)
    for target in ("[fe80::79]:10911", "10.0.0.80:10911"):
        assert "is an address of the capture" in (guard.why_not(target) or "")
    assert source.responders == survey_of([str(path)]).responders
