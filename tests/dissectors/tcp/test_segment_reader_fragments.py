"""IP fragments: in any order, doubled, cut, without end."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.tcp.capture import Packet
from dissectors.tcp.segment_reader import MAX_DATAGRAMS, MAX_PARTS, MAX_WAITING_BYTES, SegmentReader
from tests.traffic.network import (
    AUTHENTICATION,
    DESTINATION,
    TCP,
    ethernet,
    extension,
    fragments,
    ipv4,
    ipv6,
    tcp,
    vxlan,
)
from tests.traffic.talk import START, End, Tcp

from .reading import LONG, V4, V6, assert_is, read


@pytest.mark.parametrize("segment", LONG, ids=["IPv4", "IPv6"])
@given(st.data())
def test_fragments_in_any_order(segment: Tcp, data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 400)) * 8
    parts = fragments(segment, size, 77)
    repeated = data.draw(st.lists(st.sampled_from(parts), max_size=3))
    order = data.draw(st.permutations(parts + repeated))
    reader = SegmentReader()
    found = [read(ethernet(part), reader=reader) for part in order]
    whole = [one for one in found if one is not None]
    assert whole
    for one in whole:
        assert_is(one, segment)
    reader.finish()
    assert reader.skipped.get("IP fragment", 0) == len(found) - len(whole)


def test_the_first_copy_of_a_byte_wins() -> None:
    """Also where a later fragment begins before it: an overlap must not replace what was seen."""
    right = tcp(replace(V4, payload=b"r" * 44))
    wrong = tcp(replace(V4, payload=b"w" * 44))
    pieces = [(8, 32, right, True), (0, 48, wrong, True), (32, 64, right, False)]
    reader = SegmentReader()
    found = None
    for start, end, source, more in pieces:
        word = start >> 3 | (0x2000 if more else 0)
        packet = ipv4(
            V4.src.address, V4.dst.address, TCP, source[start:end], ident=5, fragment=word
        )
        found = read(ethernet(packet), reader=reader) or found
    assert found is not None
    payload = found.data[found.start : found.end]
    assert payload == b"r" * 12 + b"w" * 16 + b"r" * 16


def test_fragments_of_different_datagrams_are_not_mixed() -> None:
    """Identification, addresses, protocol and tunnel tell them apart; and so does time."""
    reader = SegmentReader()
    first, second = fragments(LONG[0], 2048, 1)
    other = fragments(replace(LONG[0], src=End("10.0.0.6", 51234)), 2048, 1)
    assert read(ethernet(first), reader=reader) is None
    for packet in (fragments(LONG[0], 2048, 2)[1], other[1], vxlan(second)):
        assert read(ethernet(packet), reader=reader) is None
    late = ethernet(second)
    packet = Packet(43, START + 31_000_000_000, 1, late, 0, len(late), len(late))
    assert reader.segment_of(packet) is None
    assert read(ethernet(second), reader=reader) is None
    reader.finish()
    assert {info.kind for info in reader.findings} == {FindingKind.FRAGMENT_LOST}


def test_an_atomic_fragment_is_whole() -> None:
    head = struct.pack(">BHI", 0, 0, 9)
    packet = ipv6(V6.src.address, V6.dst.address, TCP, tcp(V6), extensions=[(44, head)])
    assert_is(read(ethernet(packet)), V6)


def test_extension_headers_inside_of_fragments() -> None:
    """IPsec and options for the destination follow the fragment header (RFC 8200, 4.1)."""
    (first, ah), (second, options) = extension(AUTHENTICATION, 24), extension(DESTINATION)
    whole = bytes((second,)) + ah + bytes((TCP,)) + options + tcp(V6)
    for size in (len(whole), 16):
        reader = SegmentReader()
        found = None
        for at in range(0, len(whole), size):
            head = struct.pack(">BHI", 0, at | (at + size < len(whole)), 9)
            part = whole[at : at + size]
            packet = ipv6(V6.src.address, V6.dst.address, first, part, extensions=[(44, head)])
            found = read(ethernet(packet), reader=reader)
        assert_is(found, V6)


def test_fragments_that_the_snap_length_cut_are_not_used() -> None:
    first, second = fragments(LONG[0], 2048, 1)
    reader = SegmentReader()
    assert read(ethernet(first)[:-1], length=len(ethernet(first)), reader=reader) is None
    assert read(ethernet(second), reader=reader) is None
    reader.finish()
    assert [info.kind for info in reader.findings] == [FindingKind.FRAGMENT_LOST]


def _fragment(ident: int, offset: int, part: bytes, more: bool = True) -> bytes:
    word = offset >> 3 | (0x2000 if more else 0)
    source = f"10.{ident >> 16 & 255}.0.1"
    return ethernet(ipv4(source, "10.0.0.1", TCP, part, ident=ident & 0xFFFF, fragment=word))


def test_the_limit_of_datagrams() -> None:
    reader = SegmentReader()
    for ident in range(MAX_DATAGRAMS + 3):
        read(_fragment(ident, 0, tcp(V4)[:24]), reader=reader)
    assert [info.kind for info in reader.findings] == [FindingKind.FRAGMENT_LOST] * 3
    rest = tcp(V4)[24:]
    assert read(_fragment(2, 24, rest, False), reader=reader) is None  # was given up
    assert read(_fragment(MAX_DATAGRAMS, 24, rest, False), reader=reader) is not None


def test_the_limit_of_waiting_bytes() -> None:
    reader = SegmentReader()
    count = MAX_WAITING_BYTES // 60000 + 2
    for ident in range(count):
        read(_fragment(ident, 8, bytes(60000)), reader=reader)
    assert 1 <= len(reader.findings) <= 3
    reader.finish()
    assert len(reader.findings) == count


def test_the_limit_of_parts() -> None:
    reader = SegmentReader()
    for index in range(MAX_PARTS + 1):
        read(_fragment(1, 16 * index, b"12345678"), reader=reader)
    assert [info.kind for info in reader.findings] == [FindingKind.FRAGMENT_LOST]


def test_a_fragment_beyond_the_largest_datagram_is_dropped() -> None:
    reader = SegmentReader()
    assert read(_fragment(1, 65528, b"12345678"), reader=reader) is None
    reader.finish()
    assert reader.findings == []
