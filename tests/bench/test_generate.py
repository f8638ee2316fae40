"""The generated captures: deterministic, valid TCP, and holding exactly what the truth says."""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.captures.captures import Capture, capture_of
from bench.captures.generate import SENDS, write_capture
from bench.decode.tshark_baseline import lua_command, lua_missing
from bench.decode.verify import Found, differences, found_in_fields

PACKETS = 12_000
SYN, FIN = 2, 1


class Seen(NamedTuple):
    """One packet as this test reads it, without any code of the project."""

    time: int
    flow: bytes
    flags: int
    seq: int
    ack: int
    payload: bytes
    ip: bytes
    tcp: bytes


def read(path: Path) -> Iterator[Seen]:
    data = path.read_bytes()
    assert data[:4] == bytes.fromhex("d4c3b2a1")
    at = 24
    while at < len(data):
        seconds, micros, size, whole = struct.unpack_from("<IIII", data, at)
        assert size == whole
        frame = data[at + 16 : at + 16 + size]
        at += 16 + size
        assert frame[12:15] == b"\x08\x00\x45"
        ip, tcp = frame[14:34], frame[34:]
        assert int.from_bytes(ip[2:4], "big") == size - 14
        seq, ack = struct.unpack_from(">II", tcp, 4)
        payload = tcp[(tcp[12] >> 4) * 4 :]
        flow = ip[12:20] + tcp[:4]
        yield Seen(seconds * 1_000_000 + micros, flow, tcp[13], seq, ack, payload, ip, tcp)


def reverse(flow: bytes) -> bytes:
    return flow[4:8] + flow[:4] + flow[10:12] + flow[8:10]


def ones_complement(data: bytes) -> int:
    data += b"\0" * (len(data) & 1)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def streams(path: Path) -> dict[bytes, bytes]:
    """Return the bytes of every direction, put in order by their sequence numbers."""
    starts: dict[bytes, int] = {}
    pieces: dict[bytes, dict[int, bytes]] = {}
    for packet in read(path):
        start = packet.seq + 1 if packet.flags & SYN else packet.seq
        first = starts.setdefault(packet.flow, start)
        if packet.payload:
            pieces.setdefault(packet.flow, {})[packet.seq - first & 0xFFFFFFFF] = packet.payload
    joined = {}
    for flow, by_offset in pieces.items():
        stream = b""
        for offset in sorted(by_offset):
            assert offset == len(stream)
            stream += by_offset[offset]
        joined[flow] = stream
    return joined


def frames(stream: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 4], "big")
        yield stream[at + 4 : at + 4 + size]
        at += 4 + size
    assert at == len(stream)


def identity(frame: bytes) -> tuple[int, int, int]:
    """Return code, opaque and flag."""
    header = frame[4 : 4 + int.from_bytes(frame[1:4], "big")]
    if frame[0] == 0:
        members = json.loads(header)
        return members["code"], members["opaque"], members["flag"]
    code, opaque, flag = struct.unpack_from(">H3xii", header)
    return code, opaque, flag


@pytest.fixture(scope="module", params=["json", "mixed"])
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    path = tmp_path_factory.mktemp(str(request.param))
    return capture_of(PACKETS, 7, str(request.param), path)


@pytest.mark.slow
def test_same_arguments_give_the_same_bytes(capture: Capture, tmp_path: Path) -> None:
    arguments = capture.truth["arguments"]
    assert isinstance(arguments, dict)
    again = tmp_path / "again.pcap"
    assert write_capture(again, PACKETS, 7, str(arguments["mix"])) == capture.truth
    assert again.read_bytes() == capture.path.read_bytes()
    write_capture(again, PACKETS, 8, str(arguments["mix"]))
    assert again.read_bytes() != capture.path.read_bytes()


@pytest.mark.slow
def test_packets_are_valid_and_in_order_of_time(capture: Capture) -> None:
    count, last = 0, 0
    for packet in read(capture.path):
        count += 1
        assert packet.time >= last
        last = packet.time
        assert ones_complement(packet.ip) == 0xFFFF
        pseudo = packet.ip[12:20] + struct.pack(">HH", 6, len(packet.tcp))
        assert ones_complement(pseudo + packet.tcp) == 0xFFFF
    assert count == capture.count("packets")
    assert PACKETS <= count < PACKETS + 2000


def test_an_ack_never_passes_what_the_capture_has(capture: Capture) -> None:
    contiguous: dict[bytes, int] = {}
    waiting: dict[bytes, dict[int, int]] = {}
    for packet in read(capture.path):
        other = reverse(packet.flow)
        if other in contiguous:
            assert packet.ack == contiguous[other]
        size = len(packet.payload) + bool(packet.flags & (SYN | FIN))
        expected = contiguous.setdefault(packet.flow, packet.seq)
        ahead = waiting.setdefault(packet.flow, {})
        if packet.seq == expected:
            expected = expected + size & 0xFFFFFFFF
            while expected in ahead:
                expected = ahead.pop(expected)
            contiguous[packet.flow] = expected
        elif size and (packet.seq - expected & 0xFFFFFFFF) < 1 << 31:
            ahead[packet.seq] = packet.seq + size & 0xFFFFFFFF


def test_the_truth_is_what_the_streams_hold(capture: Capture) -> None:
    found = Found(body_bytes=0)
    operations: Counter[str] = Counter()
    binary = 0
    assert found.body_bytes is not None
    for stream in streams(capture.path).values():
        for frame in frames(stream):
            code, opaque, flag = identity(frame)
            found.add(code, opaque, flag, len(frame))
            found.body_bytes += len(frame) - 4 - int.from_bytes(frame[1:4], "big")
            binary += frame[0]
            if not flag & 1:
                operations[str(code)] += 1
    assert differences(found, capture) == []
    assert operations == capture.table("operations")
    assert binary == capture.count("binary_headers")


def test_the_truth_adds_up(capture: Capture) -> None:
    exchanges = capture.table("exchanges")
    answered, orphan = exchanges["answered"], exchanges["orphan"]
    asked = sum(exchanges.values()) - orphan
    assert capture.count("requests") == asked == sum(capture.table("operations").values())
    assert capture.count("responses") == answered + orphan
    assert capture.count("file_bytes") == capture.path.stat().st_size


def test_the_mix_is_the_promised_one(capture: Capture) -> None:
    packets = capture.count("packets")
    assert 0.29 < capture.count("pure_acks") / packets < 0.33
    assert 0.45 < capture.count("commands") / packets < 0.6
    assert 650 < capture.count("file_bytes") / packets < 850
    share = capture.count("binary_headers") / capture.count("commands")
    assert share == 0 or 0.35 < share < 0.55
    data = capture.count("data_segments")
    # half a segment a connection more or less: each has its own turn
    assert abs(capture.count("late") - 0.0025 * data) < 25
    assert abs(capture.count("repeated") - 0.0025 * data) < 25
    assert capture.count("late") > 0 < capture.count("repeated")
    assert capture.count("messages_in_pulls") > 1000


def test_frames_straddle_segments(capture: Capture) -> None:
    cuts: dict[bytes, set[int]] = {}
    first: dict[bytes, int] = {}
    for packet in read(capture.path):
        start = first.setdefault(packet.flow, packet.seq + bool(packet.flags & SYN))
        if packet.payload:
            cuts.setdefault(packet.flow, set()).add(packet.seq - start & 0xFFFFFFFF)
    inside = total = 0
    for flow, stream in streams(capture.path).items():
        at = 0
        for frame in frames(stream):
            total += 1
            inside += at not in cuts[flow]
            at += 4 + len(frame)
    assert 0.2 < inside / total < 0.6


def test_small_commands_are_a_packet_each(tmp_path: Path) -> None:
    capture = capture_of(4000, 7, SENDS, tmp_path)
    found = Found()
    for packet in read(capture.path):
        if packet.payload:
            assert int.from_bytes(packet.payload[:4], "big") == len(packet.payload) - 4
            code, opaque, flag = identity(packet.payload[4:])
            assert flag or code in (10, 310)
            found.add(code, opaque, flag, len(packet.payload) - 4)
    assert differences(found, capture) == []
    assert capture.count("requests") == capture.count("responses") > 1900
    assert capture.count("body_bytes") == 600 * capture.count("requests")


@pytest.mark.tshark
def test_tshark_finds_the_same_commands(capture: Capture, tmp_path: Path) -> None:
    if lua_missing():
        pytest.skip(lua_missing())
    output = tmp_path / "fields.tsv"
    with output.open("wb") as file:
        subprocess.run(lua_command(capture.path), stdout=file, check=True, timeout=60)
    assert differences(found_in_fields(output), capture) == []
