"""Packets as segments: every link layer, IPv4, IPv6, tunnels, fragments, the snap length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.findings import FindingKind
from dissectors.tcp.segment import reversed_key, source_of
from dissectors.tcp.segment_reader import (
    MAX_IPV6_HEADERS,
    MAX_OFFLOADED,
    MAX_TUNNELS,
    SegmentReader,
)
from tests.traffic.network import (
    AUTHENTICATION,
    DESTINATION,
    HOP_BY_HOP,
    LINKS,
    ROUTING,
    TCP,
    TUNNELS,
    ethernet,
    extension,
    fragments,
    geneve,
    gre,
    ip,
    ip_in_ip,
    ipv4,
    ipv6,
    tcp,
    udp,
    vxlan,
)
from tests.traffic.talk import ACK, FIN, RST, SYN, End, Tcp

from .reading import LONG, V4, V6, assert_is, read

BOTH = pytest.mark.parametrize("segment", [V4, V6], ids=["IPv4", "IPv6"])


@BOTH
@pytest.mark.parametrize("name", sorted(LINKS))
def test_every_link_layer(name: str, segment: Tcp) -> None:
    link = LINKS[name]
    if link.version in (0, 6 if segment is V6 else 4):
        assert_is(read(link.wrap(ip(segment)), link.linktype), segment)


@BOTH
@pytest.mark.parametrize("name", sorted(TUNNELS))
def test_every_tunnel(name: str, segment: Tcp) -> None:
    found = read(ethernet(TUNNELS[name](ip(segment))))
    assert_is(found, segment)
    assert found is not None
    plain = read(ethernet(ip(segment)))
    assert plain is not None
    assert found.key != plain.key  # what was seen in a tunnel is a conversation of its own


@BOTH
def test_tunnels_are_told_apart(segment: Tcp) -> None:
    packets = [
        ip(segment),
        vxlan(ip(segment), 1),
        vxlan(ip(segment), 2),
        geneve(ip(segment), 1),
        geneve(ip(segment), 2),
        gre(ip(segment)),
        gre(ip(segment), key=1),
        gre(ip(segment), key=2),
        ip_in_ip(ip(segment)),
        vxlan(vxlan(ip(segment), 2), 1),
        vxlan(vxlan(ip(segment), 1), 2),
    ]
    keys = {found.key for found in map(read, map(ethernet, packets)) if found is not None}
    assert len(keys) == len(packets)


def test_addresses_and_ports_are_not_mixed_up() -> None:
    """Keys of different directions differ, also where their bytes in a row are the same."""
    ends = [End(f"10.0.{a}.{b}", port) for a in (0, 1) for b in (1, 2) for port in (1, 256)]
    keys = {}
    for src in ends:
        for dst in ends:
            if src != dst:
                found = read(ethernet(ip(replace(V4, src=src, dst=dst))))
                assert found is not None
                keys[found.key] = (src, dst)
                assert (source_of(found.key), source_of(reversed_key(found.key))) == (
                    str(src),
                    str(dst),
                )
    assert len(keys) == len(ends) * (len(ends) - 1)


@pytest.mark.parametrize("size", range(0, 41, 4))
def test_options(size: int) -> None:
    """Of IPv4 (up to 40 bytes) and of TCP."""
    options = (b"\x01" * 40)[:size]
    segment = replace(V4, options=options)
    assert_is(read(ethernet(ip(segment))), segment)
    both = ipv4(V4.src.address, V4.dst.address, TCP, tcp(segment), options=options)
    assert_is(read(ethernet(both)), segment)


def test_extension_headers() -> None:
    chains = [
        [extension(HOP_BY_HOP)],
        [extension(HOP_BY_HOP, 16), extension(DESTINATION, 24), extension(ROUTING, 8)],
        [extension(AUTHENTICATION, 24)],
        [extension(135, 8), extension(AUTHENTICATION, 12), extension(DESTINATION)],
        [extension(DESTINATION)] * (MAX_IPV6_HEADERS - 1),
    ]
    for chain in chains:
        packet = ipv6(V6.src.address, V6.dst.address, TCP, tcp(V6), extensions=chain)
        assert_is(read(ethernet(packet)), V6)
    reader = SegmentReader()
    packet = ipv6(
        V6.src.address, V6.dst.address, TCP, tcp(V6), extensions=[extension(DESTINATION)] * 40
    )
    assert read(ethernet(packet), reader=reader) is None
    assert reader.skipped == {"not TCP": 1}


def test_the_length_is_that_of_ip() -> None:
    """What follows the IP packet (padding, a checksum) is not payload."""
    for segment in (replace(V4, payload=b""), replace(V4, payload=b"x"), V4):
        reader = SegmentReader()
        reader.acks_wanted = True
        assert_is(read(ethernet(ip(segment)) + b"\x99" * 30, reader=reader), segment)


@BOTH
def test_offloaded_packets_say_no_length(segment: Tcp) -> None:
    payload = b"z" * 70000
    long = replace(segment, payload=payload)
    whole = tcp(long)
    if segment is V6:
        packet = ipv6(long.src.address, long.dst.address, TCP, whole, length=0)
    else:
        packet = ipv4(long.src.address, long.dst.address, TCP, whole, length=0)
    assert_is(read(ethernet(packet)), long)


@BOTH
def test_a_length_on_the_wire_that_cannot_be(segment: Tcp) -> None:
    """Of a packet that does not say its length itself: no more is missing than one can have."""
    if segment is V6:
        packet = ipv6(segment.src.address, segment.dst.address, TCP, tcp(segment), length=0)
    else:
        packet = ipv4(segment.src.address, segment.dst.address, TCP, tcp(segment), length=0)
    found = read(ethernet(packet), length=(1 << 32) - 1)
    assert found is not None
    assert 0 < found.missing <= MAX_OFFLOADED


@BOTH
def test_every_snap_length(segment: Tcp) -> None:
    """The captured payload is a beginning; the rest is missing, to the byte."""
    whole = ethernet(ip(replace(segment, payload=b"0123456789" * 10)))
    head = len(whole) - 100
    for size in range(len(whole)):
        reader = SegmentReader()
        found = read(whole[:size], length=len(whole), reader=reader)
        if size < head:
            assert found is None
            assert sum(reader.skipped.values()) == 1
        else:
            assert found is not None
            assert found.data[found.start : found.end] == whole[head:size]
            assert found.missing == len(whole) - size


def test_a_snap_length_within_tcp_options() -> None:
    whole = ethernet(ip(replace(V4, options=b"\x01" * 12)))
    for size in range(54, 66):
        found = read(whole[:size], length=len(whole))
        assert found is not None
        assert (found.end - found.start, found.missing) == (0, len(V4.payload))


def test_acknowledgements_are_given_only_to_who_waits() -> None:
    reader = SegmentReader()
    bare = ethernet(ip(replace(V4, payload=b"", flags=ACK)))
    assert read(bare, reader=reader) is None
    assert reader.skipped == {}
    reader.acks_wanted = True
    assert read(bare, reader=reader) is not None
    reader.acks_wanted = False
    for flags in (SYN, FIN | ACK, RST):
        assert read(ethernet(ip(replace(V4, payload=b"", flags=flags))), reader=reader) is not None


def test_what_is_no_tcp_is_counted_with_its_reason() -> None:
    reader = SegmentReader()
    arp = b"\xff" * 12 + b"\x08\x06" + bytes(46)
    lldp = b"\xff" * 12 + b"\x88\xcc" + bytes(46)
    llc = b"\xff" * 12 + b"\x00\x20" + bytes(46)
    packets = [
        (arp, "not IP"),
        (lldp, "not IP"),
        (llc, "not IP"),
        (ethernet(udp("1.1.1.1", "2.2.2.2", 53, b"x" * 20)), "not TCP"),
        (ethernet(udp("1.1.1.1", "2.2.2.2", 4789, bytes(30))), "not TCP"),
        (ethernet(ipv4("1.1.1.1", "2.2.2.2", 1, b"ping" * 8)), "not TCP"),
        (ethernet(ipv4("1.1.1.1", "2.2.2.2", 47, b"\x30\x01\x88\x0b" + bytes(30))), "not TCP"),
        (ethernet(ipv4("1.1.1.1", "2.2.2.2", TCP, b"short")), "malformed"),
        (ethernet(ipv4("1.1.1.1", "2.2.2.2", TCP, tcp(V4), length=19)), "malformed"),
        (b"short", "malformed"),
        (ethernet(b"\x45" + bytes(10))[:30], "malformed"),
        (ethernet(b"\x41" + bytes(50)), "malformed"),
        (ethernet(ip(V4))[:46] + b"\xf0" + ethernet(ip(V4))[47:], "malformed"),
        (ethernet(ip(V4))[:46] + b"\x10" + ethernet(ip(V4))[47:], "malformed"),
        (b"\x02" * 12 + b"\x86\xdd\x60" + bytes(20), "malformed"),
    ]
    counts: dict[str, int] = {}
    for data, reason in packets:
        counts[reason] = counts.get(reason, 0) + 1
        assert read(data, reader=reader) is None
        assert reader.skipped == counts
    for linktype in (0, 108, 113, 276):
        assert read(b"\0" * 3, linktype, reader=reader) is None
    assert reader.skipped["malformed"] == counts["malformed"] + 4
    assert {info.kind for info in reader.findings} == {FindingKind.PACKET_MALFORMED}
    for linktype in (101, 228, 229, 12, 14):
        assert read(b"", linktype, reader=reader) is None
        assert read(b"\x00" * 40, linktype, reader=reader) is None


def test_a_link_type_that_is_not_decoded_is_said_once() -> None:
    reader = SegmentReader()
    for _ in range(3):
        for linktype in (105, 127, 192):
            assert read(bytes(60), linktype, reader=reader) is None
    assert reader.skipped == {"link type 105": 3, "link type 127": 3, "link type 192": 3}
    assert [info.kind for info in reader.findings] == [FindingKind.UNSUPPORTED_LINKTYPE] * 3


def test_the_limit_of_tunnels() -> None:
    packet = ip(V4)
    for depth in range(1, MAX_TUNNELS + 4):
        packet = ip_in_ip(packet)
        reader = SegmentReader()
        found = read(ethernet(packet), reader=reader)
        if depth <= MAX_TUNNELS + 1:
            assert_is(found, V4)
        else:
            assert found is None
            assert reader.skipped == {"tunnels too deep": 1}


# -- any bytes ----------------------------------------------------------------------------------

STARTS = [
    b"",
    ethernet(ip(V4)),
    ethernet(ip(V6)),
    ethernet(TUNNELS["vxlan-in-gre"](ip(V4))),
    ethernet(TUNNELS["geneve-options"](ip(V6))),
    ethernet(fragments(LONG[0], 512, 1)[1]),
    ethernet(fragments(LONG[1], 512, 1)[1]),
]


@given(st.data())
def test_arbitrary_bytes(data: st.DataObject) -> None:
    """A segment, if there is one, lies within the packet."""
    start = bytearray(data.draw(st.sampled_from(STARTS)))
    for _ in range(data.draw(st.integers(0, 6))):
        if start:
            start[data.draw(st.integers(0, len(start) - 1))] = data.draw(st.integers(0, 255))
    body = bytes(start)[: data.draw(st.integers(0, 3000))] + data.draw(st.binary(max_size=80))
    linktype = data.draw(st.sampled_from([0, 1, 12, 14, 101, 108, 113, 228, 229, 276, 999]))
    length = data.draw(st.integers(len(body), len(body) + 3000))
    reader = SegmentReader()
    reader.acks_wanted = data.draw(st.booleans())
    for _ in range(2):
        found = read(body, linktype, length=length, reader=reader)
        if found is not None:
            assert 0 <= found.start <= found.end <= len(found.data)
            assert 0 <= found.missing <= 0x20000 + length
            assert len(found.key) % 5 in (1, 2)
            assert found.data[found.end :].startswith(b"\xdd") or found.end <= len(found.data)
    reader.finish()
