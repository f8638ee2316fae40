"""pcapng files: sections, interfaces, every packet block, and what is left of damaged ones."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.tcp.formats import reader_of
from dissectors.tcp.pcapng import MAX_INTERFACES
from tests.traffic.captures import Interface, PcapngWriter, pcapng
from tests.traffic.talk import SECOND, START

from .readers import Seen, read

_RANDOM = random.Random(5)
PACKETS = [
    (START + index * 1_234_567_000, _RANDOM.randbytes(_RANDOM.choice([54, 61, 66, 303, 1514])))
    for index in range(60)
]
every_order = pytest.mark.parametrize("big", [False, True], ids=["little", "big"])


def _simple(big: bool = False) -> bytes:
    return pcapng([(ts, data, 0) for ts, data in PACKETS], [Interface()], big=big)


EXPECTED = [Seen(index + 1, ts, 1, data, len(data)) for index, (ts, data) in enumerate(PACKETS)]


@every_order
@pytest.mark.parametrize("chunk", [1, 11, 100, 4096, 1 << 20])
def test_any_pieces(big: bool, chunk: int) -> None:
    capture = _simple(big) if chunk > 1 else _simple(big)[:3000]
    seen, findings = read(capture, chunk)
    assert seen == EXPECTED[: len(seen)]
    assert chunk == 1 or (len(seen) == len(PACKETS) and findings == [])


@every_order
def test_interfaces_have_link_type_resolution_and_offset_of_their_own(big: bool) -> None:
    interfaces = [
        Interface(1),
        Interface(113, 9),
        Interface(276, 3),
        Interface(101, 0),
        Interface(0, 0x80 | 10),
        Interface(228, 6, offset=-3600),
        Interface(229, 9, offset=1_700_000_000),
        Interface(12, 10),
        Interface(14, 0x80 | 31, offset=7),
    ]
    timed = [(ts, data, index % len(interfaces)) for index, (ts, data) in enumerate(PACKETS)]
    seen, findings = read(pcapng(timed, interfaces, big=big))
    assert findings == []
    for one, (ts, data, which) in zip(seen, timed, strict=True):
        interface = interfaces[which]
        ticks = (ts - interface.offset * SECOND) * interface.ticks // SECOND
        assert one.ts == ticks * SECOND // interface.ticks + interface.offset * SECOND
        assert ts - one.ts <= SECOND // interface.ticks + 1
        assert (one.linktype, one.data) == (interface.linktype, data)


@every_order
def test_sections_begin_anew_in_their_own_byte_order(big: bool) -> None:
    writer = PcapngWriter(big)
    writer.interface(Interface(1))
    writer.enhanced(START, b"a" * 60)
    writer.section(not big)
    writer.interface(Interface(113, 9))
    writer.interface(Interface(276))
    writer.enhanced(START + 1, b"b" * 60)
    writer.enhanced(START + 2000, b"c" * 60, 1)
    writer.section(big)
    writer.interface(Interface(101))
    writer.enhanced(START + 3000, b"d" * 60)
    seen, findings = read(writer.bytes(), 50)
    assert findings == []
    assert [(one.number, one.linktype, one.ts - START, one.data[:1]) for one in seen] == [
        (1, 1, 0, b"a"),
        (2, 113, 1, b"b"),
        (3, 276, 2000, b"c"),
        (4, 101, 3000, b"d"),
    ]


@every_order
def test_simple_and_obsolete_packets(big: bool) -> None:
    writer = PcapngWriter(big)
    writer.interface(Interface(1, snaplen=100))
    writer.interface(Interface(113))
    writer.enhanced(START, b"a" * 60)
    writer.simple(b"b" * 61)
    writer.simple(b"c" * 100, 1514)
    writer.obsolete(START + 5000, b"d" * 62, 1)
    writer.enhanced(START + 6000, b"e" * 64, 0, 1514)
    seen, findings = read(writer.bytes())
    assert findings == []
    assert seen == [
        Seen(1, START, 1, b"a" * 60, 60),
        Seen(2, START, 1, b"b" * 61, 61),
        Seen(3, START, 1, b"c" * 100, 1514),
        Seen(4, START + 5000, 113, b"d" * 62, 62),
        Seen(5, START + 6000, 1, b"e" * 64, 1514),
    ]


def test_other_blocks_are_passed_over() -> None:
    writer = PcapngWriter()
    writer.block(4, b"\1\0\6\0" + b"name resolution" * 3)
    writer.interface(Interface())
    writer.block(5, b"statistics" * 4)
    writer.enhanced(START, b"a" * 60)
    writer.block(0x0BAD, bytes(300_000))
    writer.block(0x80000001, b"")
    writer.enhanced(START, b"b" * 60)
    seen, findings = read(writer.bytes(), 1 << 16)
    assert [one.data[:1] for one in seen] == [b"a", b"b"]
    assert findings == []


def test_a_packet_without_its_interface_is_said() -> None:
    writer = PcapngWriter()
    writer.interfaces = [Interface(), Interface()]
    writer.simple(b"x" * 60)
    writer.enhanced(START, b"a" * 60)
    writer.interface(Interface())
    writer.enhanced(START, b"b" * 60, 1)
    writer.enhanced(START, b"c" * 60, 0)
    seen, findings = read(writer.bytes())
    assert [one.data[:1] for one in seen] == [b"c"]
    assert [info.kind for info in findings] == [FindingKind.CAPTURE_DAMAGED] * 3


def test_the_limit_of_interfaces() -> None:
    writer = PcapngWriter()
    for _ in range(MAX_INTERFACES + 2):
        writer.interface(Interface())
    writer.enhanced(START, b"a" * 60, MAX_INTERFACES - 1)
    writer.enhanced(START, b"b" * 60, MAX_INTERFACES)
    seen, findings = read(writer.bytes())
    assert [one.data[:1] for one in seen] == [b"a"]
    assert [info.detail for info in findings] == [
        f"more than {MAX_INTERFACES} interfaces",
        f"more than {MAX_INTERFACES} interfaces",
        "a packet block that does not fit its interface",
    ]


@pytest.mark.parametrize("resolution", [None, 0, 6, 9, 18, 0x80, 0x80 | 20, 0x80 | 62, 0xFF, 127])
@pytest.mark.parametrize("offset", [0, 5, -(1 << 32), 1 << 32, -(1 << 63), (1 << 63) - 1])
def test_any_time_stamp_is_a_time(resolution: int | None, offset: int) -> None:
    """No time stamp overflows: a time that cannot be is that of the packet before."""
    writer = PcapngWriter()
    writer.interface(Interface(1, resolution, offset))
    rng = random.Random(1)
    for _ in range(50):
        ticks = rng.getrandbits(rng.choice([8, 40, 51, 56, 60, 62, 63, 64]))
        head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, 60, 60)
        writer.block(6, head + bytes(60))
    seen, _ = read(writer.bytes())
    assert len(seen) == 50
    assert all(0 <= one.ts < 1 << 62 for one in seen)


@every_order
def test_every_cut_is_said_with_its_offset(big: bool) -> None:
    writer = PcapngWriter(big)
    writer.interface(Interface())
    for ts, data in PACKETS[:3]:
        writer.enhanced(ts, data)
    capture = writer.bytes()
    ends = [0]
    for part in writer.parts:
        ends.append(ends[-1] + len(part))
    for cut in range(28, len(capture)):
        whole = sum(end <= cut for end in ends) - 1
        seen, findings = read(capture[:cut])
        assert seen == EXPECTED[: max(whole - 2, 0)]
        if cut in ends:
            assert findings == []
        else:
            (info,) = findings
            assert (info.kind, info.offset) == (FindingKind.CAPTURE_TRUNCATED, ends[whole])


@every_order
@given(st.data())
def test_a_flipped_bit_costs_one_packet(big: bool, data: st.DataObject) -> None:
    writer = PcapngWriter(big)
    writer.interface(Interface())
    packets_begin = len(writer.bytes())
    for ts, packet in PACKETS:
        writer.enhanced(ts, packet)
    capture = bytearray(writer.bytes())
    bit = data.draw(st.integers(packets_begin * 8, len(capture) * 8 - 1))
    capture[bit // 8] ^= 1 << bit % 8
    chunk = data.draw(st.sampled_from([100, 5000, 1 << 20]))
    seen, _ = read(bytes(capture), chunk)
    right = Counter(one.data for one in EXPECTED)
    assert sum((right - Counter(one.data for one in seen)).values()) <= 1


@every_order
@given(st.data())
def test_lost_and_inserted_bytes(big: bool, data: st.DataObject) -> None:
    capture = _simple(big)
    at = data.draw(st.integers(200, len(capture) - 1))
    if data.draw(st.booleans()):
        size = data.draw(st.integers(1, 5000))
        damaged = capture[:at] + capture[at + size :]
    else:
        size = 0
        inserted = data.draw(st.binary(min_size=1, max_size=200) | st.just(bytes(100_000)))
        damaged = capture[:at] + inserted + capture[at:]
    seen, _ = read(damaged, data.draw(st.sampled_from([1000, 1 << 20])))
    right = Counter(one.data for one in EXPECTED)
    found = Counter(one.data for one in seen)
    assert sum((right - found).values()) <= size // 54 + 2
    assert sum((found - right).values()) <= 2


def test_damage_is_said_with_its_offset_and_size() -> None:
    writer = PcapngWriter()
    writer.interface(Interface())
    for ts, data in PACKETS[:10]:
        writer.enhanced(ts, data)
    at = len(writer.bytes())
    writer.parts.append(b"\xff" * 332)
    for ts, data in PACKETS[10:]:
        writer.enhanced(ts, data)
    seen, findings = read(writer.bytes())
    assert seen == EXPECTED
    (info,) = findings
    assert (info.kind, info.offset) == (FindingKind.CAPTURE_DAMAGED, at)
    assert "332 bytes" in info.detail


def test_a_length_that_swallows_the_rest() -> None:
    writer = PcapngWriter()
    writer.interface(Interface())
    for ts, data in PACKETS[:5]:
        writer.enhanced(ts, data)
    at = len(writer.bytes())
    for ts, data in PACKETS[5:]:
        writer.enhanced(ts, data)
    capture = bytearray(writer.bytes())
    capture[at + 4 : at + 8] = struct.pack("<I", 8_000_000)
    seen, findings = read(bytes(capture))
    assert [one.data for one in seen] == [data for _, data in PACKETS[:5] + PACKETS[6:]]
    assert [(info.kind, info.offset) for info in findings] == [(FindingKind.CAPTURE_DAMAGED, at)]


def test_a_new_section_is_found_behind_damage() -> None:
    writer = PcapngWriter()
    writer.interface(Interface())
    writer.enhanced(START, b"a" * 60)
    writer.parts.append(b"\xee" * 100)
    writer.section(True)
    writer.interface(Interface(113, 9))
    writer.enhanced(START, b"b" * 60)
    seen, findings = read(writer.bytes())
    assert [(one.linktype, one.data[:1]) for one in seen] == [(1, b"a"), (113, b"b")]
    assert [info.kind for info in findings] == [FindingKind.CAPTURE_DAMAGED]


@pytest.mark.slow
@pytest.mark.parametrize(
    "junk",
    [
        bytes(4_000_000),
        b"\xff" * 4_000_000,
        random.Random(1).randbytes(4_000_000),
        struct.pack("<III", 6, 1_000_000, 0) * 330_000,
        struct.pack("<II", 0x0A0D0D0A, 0x0A0D0D0A) * 500_000,
        struct.pack("<III", 3, 12, 12) * 330_000,
    ],
    ids=["zeros", "ones", "random", "large blocks", "sections", "small blocks"],
)
def test_junk_takes_linear_time(junk: bytes) -> None:
    began = time.process_time()
    read(_simple() + junk, 1 << 18)
    assert time.process_time() - began < 15


@given(st.binary(max_size=3000), st.sampled_from([1, 13, 4000]))
def test_arbitrary_bytes(data: bytes, chunk: int) -> None:
    for big in (False, True):
        head = pcapng([], [Interface()], big=big)
        seen, findings = read(head + data, chunk)
        assert sum(len(one.data) + 16 for one in seen) <= len(data)
        if not seen and len(data) > 11:
            assert findings or _all_blocks(data, ">" if big else "<")


def _all_blocks(data: bytes, order: str) -> bool:
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(f"{order}I", data, at + 4)
        if length < 12:
            return False
        at += length
    return at == len(data)


@every_order
@pytest.mark.parametrize("cut", [1, 7, 8, 40, 103])
def test_only_the_block_that_waits_is_copied(big: bool, cut: int) -> None:
    """What follows it stays in the bytes that it came with."""
    packets = [(START + number, bytes([number]) * 60, 0) for number in range(4)]
    data = pcapng(packets, [Interface()], big=big)
    end = len(data) - 3 * 104  # a packet block: 28 bytes, 60 of the packet, options, 4
    first, second = data[24 : end + cut], data[end + cut :]
    reader = reader_of(0, data[:24])
    assert reader is not None
    assert len(reader.receive(first)) == 1
    found = reader.receive(second)
    assert [len(found[0].data), *(one.data is second for one in found[1:])] == [104, True, True]
    payloads = [one.data[one.start : one.end] for one in found]
    assert payloads == [bytes([number]) * 60 for number in (1, 2, 3)]
    assert reader.take_findings() == []
