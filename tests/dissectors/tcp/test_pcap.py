"""pcap files: every form, any pieces, and what is left of them when they are damaged."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.tcp.capture import ORDINARY_PACKET
from dissectors.tcp.formats import reader_of
from tests.traffic.captures import pcap
from tests.traffic.talk import SECOND, START

from .readers import Seen, read

_RANDOM = random.Random(3)
PACKETS = [
    (START + index * 1_234_567_891, _RANDOM.randbytes(_RANDOM.choice([54, 60, 66, 300, 1514])))
    for index in range(60)
]
FORMS = [
    pytest.param(
        {"big": big, "nano": unit == "ns", "patched": unit == "patched"},
        id=f"{'big' if big else 'little'}-{unit}",
    )
    for big in (False, True)
    for unit in ("us", "ns", "patched")
]
every_form = pytest.mark.parametrize("form", FORMS)


def _expected(form: dict[str, bool], snaplen: int = 1 << 30) -> list[Seen]:
    unit = 1 if form["nano"] else 1000
    return [
        Seen(index + 1, ts // unit * unit, 1, data[:snaplen], len(data))
        for index, (ts, data) in enumerate(PACKETS)
    ]


@every_form
@pytest.mark.parametrize("chunk", [1, 7, 16, 100, 4096, 1 << 20])
def test_any_pieces(form: dict[str, bool], chunk: int) -> None:
    packets = PACKETS if chunk > 1 else PACKETS[:8]
    seen, findings = read(pcap(packets, **form), chunk)
    assert seen == _expected(form)[: len(packets)]
    assert findings == []


@every_form
def test_link_type_and_snap_length(form: dict[str, bool]) -> None:
    seen, findings = read(pcap(PACKETS, 0xF8000000 | 113, snaplen=64, **form))  # FCS bits above
    assert [one.linktype for one in seen] == [113] * len(PACKETS)
    assert [one[3:] for one in seen] == [one[3:] for one in _expected(form, 64)]
    assert findings == []


def test_a_file_of_nothing() -> None:
    assert read(pcap([])) == ([], [])


@every_form
def test_every_cut_is_said_with_its_offset(form: dict[str, bool]) -> None:
    packets = PACKETS[:4]
    capture = pcap(packets, **form)
    ends = [24]
    for _, data in packets:
        ends.append(ends[-1] + (24 if form["patched"] else 16) + len(data))
    for cut in range(24, len(capture)):
        whole = sum(end <= cut for end in ends) - 1
        seen, findings = read(capture[:cut])
        assert seen == _expected(form)[:whole]
        if cut in ends:
            assert findings == []
        else:
            (info,) = findings
            assert (info.kind, info.offset) == (FindingKind.CAPTURE_TRUNCATED, ends[whole])


@every_form
@given(st.data())
def test_a_flipped_bit_costs_one_packet(form: dict[str, bool], data: st.DataObject) -> None:
    capture = bytearray(pcap(PACKETS, **form))
    bit = data.draw(st.integers(24 * 8, len(capture) * 8 - 1))
    capture[bit // 8] ^= 1 << bit % 8
    chunk = data.draw(st.sampled_from([100, 5000, 1 << 20]))
    seen, _ = read(bytes(capture), chunk)
    right = Counter(one.data for one in _expected(form))
    assert sum((right - Counter(one.data for one in seen)).values()) <= 1


@given(st.data())
def test_lost_and_inserted_bytes_cost_the_packets_that_they_touch(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from([one.values[0] for one in FORMS]))
    capture = pcap(PACKETS, **form)
    at = data.draw(st.integers(24, len(capture) - 1))
    if data.draw(st.booleans()):
        size = data.draw(st.integers(1, 5000))
        damaged = capture[:at] + capture[at + size :]
        touched = capture[at : at + size]
    else:
        inserted = data.draw(st.binary(min_size=1, max_size=200) | st.just(bytes(100_000)))
        damaged = capture[:at] + inserted + capture[at:]
        touched = b""
    seen, _ = read(damaged, data.draw(st.sampled_from([1000, 1 << 20])))
    lost = Counter(one.data for one in _expected(form)) - Counter(one.data for one in seen)
    assert sum(lost.values()) <= len(touched) // 54 + 2


def test_damage_is_said_with_its_offset_and_size() -> None:
    capture = pcap(PACKETS)
    at = 24 + sum(16 + len(data) for _, data in PACKETS[:10])
    seen, findings = read(capture[:at] + b"\xff" * 333 + capture[at:])
    assert [one.data for one in seen] == [data for _, data in PACKETS]
    (info,) = findings
    assert (info.kind, info.offset) == (FindingKind.CAPTURE_DAMAGED, at)
    assert "333 bytes" in info.detail
    assert info.ts == PACKETS[9][0] // 1000 * 1000
    assert info.packet & 0xFFFF == 10


def test_damage_before_the_first_packet() -> None:
    capture = pcap(PACKETS)
    seen, findings = read(capture[:24] + b"\xff" * 40 + capture[24:])
    assert [one.data for one in seen] == [data for _, data in PACKETS]
    assert [(info.kind, info.offset) for info in findings] == [(FindingKind.CAPTURE_DAMAGED, 24)]


def test_damage_up_to_the_end() -> None:
    capture = pcap(PACKETS)
    seen, findings = read(capture + b"\xff" * 2_000_000)
    assert [one.data for one in seen] == [data for _, data in PACKETS]
    (info,) = findings
    assert (info.kind, info.offset) == (FindingKind.CAPTURE_DAMAGED, len(capture))
    assert "2000000 bytes up to the end" in info.detail


def test_a_length_that_swallows_the_rest() -> None:
    """A length beyond the end of the file, by damage: the packets behind it are there."""
    capture = bytearray(pcap(PACKETS))
    at = 24 + sum(16 + len(data) for _, data in PACKETS[:5])
    capture[at + 8 : at + 16] = struct.pack("<II", 900_000, 900_000)
    seen, findings = read(bytes(capture))
    assert [one.data for one in seen] == [data for _, data in PACKETS[:5] + PACKETS[6:]]
    assert [(info.kind, info.offset) for info in findings] == [(FindingKind.CAPTURE_DAMAGED, at)]


def test_a_length_that_swallows_some() -> None:
    capture = bytearray(pcap(PACKETS))
    at = 24 + sum(16 + len(data) for _, data in PACKETS[:5])
    capture[at + 8 : at + 16] = struct.pack("<II", 5000, 5000)
    seen, findings = read(bytes(capture))
    assert [one.data for one in seen] == [data for _, data in PACKETS]
    assert [(info.kind, info.offset) for info in findings] == [(FindingKind.CAPTURE_DAMAGED, at)]


def test_a_capture_inside_a_packet_is_payload() -> None:
    """Of a capture that is itself sent over the network only the packets outside count."""
    inner = pcap(PACKETS[:20])[24:][:60_000]
    packets = [PACKETS[0], (START + SECOND, inner), *PACKETS[1:]]
    seen, findings = read(pcap(packets))
    assert [one.data for one in seen] == [data for _, data in packets]
    capture = pcap(packets[:2])
    seen, findings = read(capture[:-100])
    assert [one.data for one in seen] == [PACKETS[0][1]]
    assert [info.kind for info in findings] == [FindingKind.CAPTURE_TRUNCATED]
    at = 24 + sum(16 + len(data) for _, data in packets[:2])
    capture = pcap(packets)
    seen, findings = read(capture[:at] + b"\xff" * 100 + capture[at:])
    assert [one.data for one in seen] == [data for _, data in packets]


@pytest.mark.parametrize("size", [ORDINARY_PACKET + 1, 300_000, 1 << 20])
def test_very_large_packets(size: int) -> None:
    packets = [*PACKETS[:3], (START, bytes(size)), *PACKETS[3:6], (START, bytes(size))]
    for chunk in (1 << 30, 1 << 18):
        seen, findings = read(pcap(packets, snaplen=1 << 20), chunk)
        assert [len(one.data) for one in seen] == [len(data) for _, data in packets]
        assert findings == []


def test_times_may_jump() -> None:
    times = [
        START,
        START - 30 * 86400 * SECOND,
        START + 400 * 86400 * SECOND,
        0,
        2**32 * SECOND - 1,
    ]
    packets = [(ts, bytes(60)) for ts in times]
    seen, findings = read(pcap(packets, nano=True))
    assert [one.ts for one in seen] == times
    assert findings == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "junk",
    [bytes(4_000_000), b"\xff" * 4_000_000, random.Random(1).randbytes(4_000_000),
     struct.pack("<IIII", 1, 2, 100, 100) * 250_000,
     struct.pack("<IIII", 1, 2, 1_000_000, 1_000_000) * 250_000,
     struct.pack("<IIII", START // SECOND, 2, 30, 30) * 250_000],
    ids=["zeros", "ones", "random", "records", "large records", "near records"],
)  # fmt: skip
def test_junk_takes_linear_time(junk: bytes) -> None:
    began = time.process_time()
    read(pcap(PACKETS) + junk, 1 << 18)
    assert time.process_time() - began < 15


@given(st.binary(max_size=3000), st.sampled_from([1, 13, 4000]))
@example(b"\xff" * 100, 1)
def test_arbitrary_bytes(data: bytes, chunk: int) -> None:
    for form in FORMS:
        head = pcap([], **form.values[0])
        seen, findings = read(head + data, chunk)
        assert sum(len(one.data) + 16 for one in seen) <= len(data)
        if not seen and data:
            assert findings


@every_form
@pytest.mark.parametrize("cut", [1, -1, 0, 17, 40])
def test_only_the_record_that_waits_is_copied(form: dict[str, bool], cut: int) -> None:
    """What follows it stays in the bytes that it came with."""
    data = pcap([(START + number, bytes([number]) * 60) for number in range(4)], **form)
    header = 24 if form["patched"] else 16
    if cut < 1:
        cut += header
    first, second = data[24 : 24 + header + 60 + cut], data[24 + header + 60 + cut :]
    reader = reader_of(0, data[:24])
    assert reader is not None
    assert [one.data is first for one in reader.receive(first)] == [True]
    found = reader.receive(second)
    assert [len(found[0].data), *(one.data is second for one in found[1:])] == [
        header + 60,
        True,
        True,
    ]
    payloads = [one.data[one.start : one.end] for one in found]
    assert payloads == [bytes([number]) * 60 for number in (1, 2, 3)]
    assert reader.take_findings() == []
