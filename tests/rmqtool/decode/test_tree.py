"""Trees: every field with its meaning, the body taken apart, nothing secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqtool.decode.tree import add_value

from ..command import ROOT, capture_in, rmqtool


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return capture_in(tmp_path)


def test_a_send(capture: Path) -> None:
    out = rmqtool("decode", "pcap", capture, "-V", "--where", "opaque == 1").out
    for line in (
        "SEND_MESSAGE_V2: SUCCESS in 2.10 ms, conversation 0",
        "  Request: packet 4, 2026-11-20T10:00:00.000300Z, 10.0.0.5:51234 → 10.0.0.1:10911",
        "    code: 310 (SEND_MESSAGE_V2)",
        "    version: 401 (V4_9_4)",
        "    SendMessageRequestHeaderV2",
        "      producerGroup [a]: producers",
        "      bornTimestamp [g]: 1795168800000 (2026-11-20T10:00:00.000Z)",
        "          UNIQ_KEY: 0A000005000000000000000000000001",
        "        body (text, 5 bytes): hello",
        "  Response: packet 5, 2026-11-20T10:00:00.002400Z, 10.0.0.1:10911 → 10.0.0.5:51234",
        "      queueOffset: 4711",
    ):
        assert line in out.splitlines()


def test_credentials_are_masked(capture: Path) -> None:
    out = rmqtool("decode", "pcap", capture, "-V").out
    assert "rocketmq-key" not in out
    assert "AccessKey: rock***" in out
    assert "Signature: ***" in out


def test_a_heartbeat_is_taken_apart(capture: Path) -> None:
    out = rmqtool("decode", "pcap", capture, "-V", "--where", "request_name == HEART_BEAT").out
    assert "HEART_BEAT: unanswered, conversation 0" in out
    assert "clientID: 10.0.0.5@1" in out


def test_body_limit(capture: Path) -> None:
    out = rmqtool(
        "decode", "pcap", capture, "-V", "--where", "opaque == 1", "--body-limit", "2"
    ).out
    assert "body (text, 5 bytes, cut): he" in out


def test_findings_stand_between_the_exchanges(capture: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.pcap"
    data = capture.read_bytes()
    first = 24 + 16 + int.from_bytes(data[32:36], "little")
    bare.write_bytes(data[:24] + data[first:])  # without the SYN
    assert "[MIDSTREAM, note] conversation 0" in rmqtool("decode", "pcap", bare, "-V").out
    assert "MIDSTREAM" not in rmqtool("decode", "pcap", bare, "-V", "--where", "has topic").out
    assert "[UNKNOWN_CODE, note] request code 9999" in rmqtool("decode", "pcap", bare, "-V").out


def test_values_of_any_shape() -> None:
    value = {"a": {}, "b": [], "c": [1, "x\n"], "d": [{"e": None}, {"f": True}], "g": {"h": 1.5}}
    lines: list[str] = []
    add_value(lines, "", value, "")
    assert lines == [
        "a: {}",
        "b: []",
        r"c: [1, x\n]",
        "d 1 of 2:",
        "  e: -",
        "d 2 of 2:",
        "  f: true",
        "g:",
        "  h: 1.5",
    ]


@pytest.mark.slow
def test_every_sample_has_a_tree() -> None:
    samples = ROOT / "samples"
    if not samples.is_dir():
        pytest.skip("no samples here")
    result = rmqtool("decode", "pcap", samples, "-V")
    assert result.status == 0
    assert all(line.isprintable() for line in result.out.splitlines())
