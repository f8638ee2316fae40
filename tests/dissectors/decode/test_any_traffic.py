"""What holds for all conversations, however they were cut, ordered, repeated, carried or lost.

The relation of loss. Let P be the commands that were said and E the exchanges that they make.
When packets, or ends of packets, are missing in the capture, then
- every PDU that is found is one of P, each at most as often as it was said: same sender, same
  header to the last field, same body; of a PDU with `missing` > 0 the body that is there is a
  beginning of the real one and its length on the wire is right;
- every request and response that are found as a pair are a pair of E;
- what is not paired is a half of an exchange of E, or an orphan or oneway of E itself.
So loss gives fewer, never other. Opaques are unique in each direction here: with an opaque that
is used again a lost request makes the next one's partner ambiguous by nature.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from heapq import merge
from operator import attrgetter, itemgetter
from struct import iter_unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.conversation import Pdu
from dissectors.decode.exchange import EARLY_TOLERANCE
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.stages import ExchangeStages
from dissectors.findings import Severity
from dissectors.processes.worker import ShardDecode
from dissectors.remoting.framing.frame_decoder import KEEP_ALL
from dissectors.tcp.capture import packet_number
from dissectors.tcp.formats import reader_of
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import Command
from tests.traffic.decoded import (
    Outcome,
    command_of,
    decode,
    decode_bytes,
    decode_segments,
    multiset,
)
from tests.traffic.network import LINKS, TUNNELS, ethernet, fragments, ip, packets
from tests.traffic.scripts import Script, disturbed, scripts, talks
from tests.traffic.talk import BROKER, CLIENT, End, Tcp, retimed

V6 = (End("2001:db8::5", 51234), End("2001:db8::1", 10911))


def _is_clean(outcome: Outcome) -> bool:
    return all(info.kind.severity < Severity.WARNING for info in outcome.findings)


@pytest.mark.slow
@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    script = data.draw(scripts(reuse=True))
    outcome = decode_segments(data.draw(talks(script)))
    assert multiset(outcome.exchanges) == script.expected()
    assert _is_clean(outcome)


@pytest.mark.slow
@given(st.data())
def test_any_order_and_repetition(data: st.DataObject) -> None:
    script = data.draw(scripts())
    segments = data.draw(disturbed(data.draw(talks(script))))
    # An answer may be stamped a millisecond before its request, not more.
    segments = retimed(segments, step=min(1000, EARLY_TOLERANCE // (len(segments) + 1)))
    outcome = decode_segments(segments)
    assert multiset(outcome.exchanges) == script.expected()
    assert _is_clean(outcome)


@pytest.mark.slow
@given(st.data())
def test_any_link_layer(data: st.DataObject) -> None:
    script = data.draw(scripts(max_size=6))
    client, server = data.draw(st.sampled_from([(CLIENT, BROKER), V6]))
    segments = data.draw(talks(script, client=client, server=server))
    version = 6 if client is V6[0] else 4
    names = [name for name, link in LINKS.items() if link.version in (0, version)]
    link = data.draw(st.sampled_from(names))
    form = {"big": data.draw(st.booleans()), "nano": data.draw(st.booleans())}
    outcome = decode_bytes(pcap_of(segments, link, **form))
    assert multiset(outcome.exchanges) == script.expected(client, server)
    assert _is_clean(outcome)


@pytest.mark.slow
@given(st.data())
def test_any_tunnel(data: st.DataObject) -> None:
    script = data.draw(scripts(max_size=6))
    client, server = data.draw(st.sampled_from([(CLIENT, BROKER), V6]))
    segments = data.draw(talks(script, client=client, server=server))
    tunnel = TUNNELS[data.draw(st.sampled_from(sorted(TUNNELS)))]
    timed = [(one.ts, ethernet(tunnel(ip(one)))) for one in segments if len(one.payload) < 60000]
    whole = len(timed) == len(segments)  # what is too large for the outer packet is left out
    outcome = decode_bytes(pcap(timed))
    if whole:
        assert multiset(outcome.exchanges) == script.expected(client, server)
        assert _is_clean(outcome)


@pytest.mark.slow
@given(st.data())
def test_any_fragmentation(data: st.DataObject) -> None:
    script = data.draw(scripts(max_size=6))
    client, server = data.draw(st.sampled_from([(CLIENT, BROKER), V6]))
    segments = data.draw(talks(script, client=client, server=server))
    timed: list[tuple[int, bytes]] = []
    for ident, one in enumerate(segments):
        size = data.draw(st.sampled_from([512, 1024, 1448, 16000]))
        parts = data.draw(st.permutations(fragments(one, size & ~7, ident)))
        repeated = data.draw(st.lists(st.sampled_from(parts), max_size=1))
        timed += [(one.ts, ethernet(part)) for part in (*repeated, *parts)]
    outcome = decode_bytes(pcap(timed))
    assert multiset(outcome.exchanges) == script.expected(client, server)


@pytest.mark.slow
@given(st.data())
def test_conversations_are_not_mixed(data: st.DataObject) -> None:
    """Several at once: addresses that XOR alike, ports that differ alone, tunnels that differ."""
    ends = [
        (End("10.0.0.1", 40000), End("10.0.0.2", 10911)),
        (End("10.0.0.2", 40000), End("10.0.0.1", 10911)),
        (End("10.0.0.1", 40001), End("10.0.0.2", 10911)),
        (End("10.0.0.1", 10911), End("10.0.0.2", 10911)),
        (End("10.0.0.3", 40000), End("10.0.0.4", 10911)),
    ]
    chosen = data.draw(st.lists(st.sampled_from(ends), min_size=2, max_size=4, unique=True))
    expected: Counter[tuple[object, ...]] = Counter()
    streams = []
    for client, server in chosen:
        script = data.draw(scripts(max_size=5))
        expected += script.expected(client, server)
        streams.append(data.draw(talks(script, client=client, server=server)))
    mixed: list[Tcp] = []
    while any(streams):
        stream = data.draw(st.sampled_from([one for one in streams if one]))
        mixed.append(stream.pop(0))
    outcome = decode_segments(retimed(mixed))
    assert multiset(outcome.exchanges) == expected
    assert outcome.stats.conversations == len(chosen)


@pytest.mark.slow
@given(st.data())
def test_the_same_ports_again(data: st.DataObject) -> None:
    """Connections one after the other on the same ports, each from its SYN."""
    expected: Counter[tuple[object, ...]] = Counter()
    segments: list[Tcp] = []
    count = data.draw(st.integers(2, 3))
    for _ in range(count):
        script = data.draw(scripts(max_size=5))
        expected += script.expected()
        segments += data.draw(talks(script, opened=True))
    starts = {one.seq for one in segments if one.flags & 2 and one.src == CLIENT}
    outcome = decode_segments(retimed(segments))
    if len(starts) == count:
        assert multiset(outcome.exchanges) == expected
        assert outcome.stats.conversations == count


@pytest.mark.slow
@given(st.data())
def test_several_interfaces(data: st.DataObject) -> None:
    """One conversation, its packets on interfaces of any link type and resolution."""
    script = data.draw(scripts(max_size=6))
    segments = data.draw(talks(script))
    names = [name for name, link in LINKS.items() if link.version != 6]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    resolutions = st.sampled_from([None, 3, 6, 9, 10, 0x80 | 20, 0x80 | 30])
    interfaces = [
        Interface(LINKS[name].linktype, data.draw(resolutions), data.draw(st.integers(-9, 9)))
        for name in chosen
    ]
    timed = []
    for one in segments:
        which = data.draw(st.integers(0, len(chosen) - 1))
        timed.append((one.ts, packets([one], chosen[which])[0][1], which))
    outcome = decode_bytes(pcapng(timed, interfaces, big=data.draw(st.booleans())))
    assert multiset(outcome.exchanges) == script.expected()


# -- loss ---------------------------------------------------------------------------------------


def _identity(who: str, command: Command) -> tuple[str, str]:
    return who, repr(command)


def _header(command: Command) -> str:
    return repr(replace(command, body=b""))


def assert_fewer_never_other(script: Script, outcome: Outcome) -> None:
    """The relation of loss, see above."""
    ends = (str(CLIENT), str(BROKER))
    left: Counter[tuple[str, str]] = Counter(
        _identity(ends[who], command) for who, command in script.said
    )
    bodies: dict[tuple[str, str], list[bytes]] = {}
    for who, command in script.said:
        bodies.setdefault((ends[who], _header(command)), []).append(command.body)
    for pdu in outcome.pdus:
        _assert_was_said(pdu, left, bodies)
    pairs = {
        (ends[who], _header(request), _header(response))
        for who, request, response in script.exchanged
        if request and response
    }
    for one in outcome.exchanges:
        if one.request and one.response:
            request, response = command_of(one.request), command_of(one.response)
            assert (one.client_address, _header(request), _header(response)) in pairs


def _assert_was_said(
    pdu: Pdu, left: Counter[tuple[str, str]], bodies: dict[tuple[str, str], list[bytes]]
) -> None:
    command = command_of(pdu)
    candidates = bodies.get((pdu.src, _header(command)), [])
    for body in candidates:
        known = _identity(pdu.src, replace(command, body=body))
        fits = len(body) == pdu.body_length and body.startswith(pdu.body)
        if fits and (pdu.missing or body == pdu.body) and left[known] > 0:
            assert len(pdu.body) <= len(body) - pdu.missing
            left[known] -= 1
            return
    raise AssertionError(f"never said, or too often: {pdu.src} {command}, missing {pdu.missing}")


@pytest.mark.slow
@given(st.data())
def test_lost_packets(data: st.DataObject) -> None:
    script = data.draw(scripts())
    segments = data.draw(disturbed(data.draw(talks(script)), shuffle=data.draw(st.booleans())))
    kept = [one for one in segments if data.draw(st.integers(0, 4))]
    assert_fewer_never_other(script, decode_segments(retimed(kept, step=1000)))


@pytest.mark.slow
@given(st.data())
def test_one_lost_packet_costs_what_was_in_it(data: st.DataObject) -> None:
    """Without a SYN: the frames that the packet has no byte of are all found, pairs included."""
    script = data.draw(scripts())
    segments = data.draw(talks(script))
    which = data.draw(st.integers(0, len(segments) - 1))
    lost = segments[which]
    outcome = decode_segments(segments[:which] + segments[which + 1 :])
    assert_fewer_never_other(script, outcome)
    found = Counter(_identity(pdu.src, command_of(pdu)) for pdu in outcome.pdus)
    untouched = Counter(
        _identity(str((CLIENT, BROKER)[who]), command)
        for who, command in _said_outside(script, segments, lost)
    )
    assert not untouched - found


def _said_outside(script: Script, segments: list[Tcp], lost: Tcp) -> list[tuple[int, Command]]:
    """The commands without a byte in a segment."""
    found = []
    for side, end in ((0, CLIENT), (1, BROKER)):
        payloads = [one for one in segments if one.src == end and one.payload]
        at = start = end_of = 0
        for one in payloads:
            if one is lost:
                start, end_of = at, at + len(one.payload)
            at += len(one.payload)
        place = 0
        for who, command in script.said:
            if who == side:
                size = len(command.frame)
                if place + size <= start or place >= end_of:
                    found.append((who, command))
                place += size
    return found


@pytest.mark.slow
@given(st.data())
def test_any_snap_length(data: st.DataObject) -> None:
    script = data.draw(scripts())
    segments = data.draw(talks(script))
    snaplen = data.draw(st.integers(0, 200) | st.sampled_from([1000, 1500, 1502]))
    outcome = decode_bytes(pcap_of(segments, snaplen=snaplen))
    assert_fewer_never_other(script, outcome)


@pytest.mark.slow
@given(st.data())
def test_a_capture_that_starts_and_stops_anywhere(data: st.DataObject) -> None:
    script = data.draw(scripts())
    segments = data.draw(talks(script))
    first = data.draw(st.integers(0, len(segments)))
    last = data.draw(st.integers(first, len(segments)))
    capture = pcap_of(segments[first:last])
    cut = data.draw(st.integers(24, len(capture)))
    assert_fewer_never_other(script, decode_bytes(capture[:cut]))


# -- the same by another way --------------------------------------------------------------------


def _several(data: st.DataObject) -> list[Tcp]:
    """Three conversations in turns, one of them disturbed."""
    found: list[Tcp] = []
    for number in range(3):
        client = End(f"10.0.1.{number}", 40000 + number)
        script = data.draw(scripts(max_size=5))
        found += data.draw(talks(script, client=client))
    return retimed(data.draw(disturbed(found, shuffle=data.draw(st.booleans()))), step=1000)


@pytest.mark.slow
@given(st.data())
def test_rows_and_commands_are_those_of_the_exchanges(data: st.DataObject) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(pcap_of(_several(data)))
        file.flush()
        exchanges = decode([file.name]).exchanges
        rows = [row for batch in Decode([file.name]).records() for row in batch]
        seen = [one.pdu for batch in Decode([file.name]).commands() for one in batch]
    assert [_places(one.request, one.response) for one in exchanges] == [
        (row.request_packet, row.response_packet, row.status) for row in rows
    ]
    pdus = [pdu for one in exchanges for pdu in (one.request, one.response) if pdu]
    key = attrgetter("packet", "conversation", "src", "offset")
    assert sorted(map(key, seen)) == sorted(map(key, pdus))
    packets = [pdu.packet for pdu in seen if not pdu.missing]
    assert packets == sorted(packets)


def _places(request: Pdu | None, response: Pdu | None) -> tuple[int | None, int | None, str]:
    if request is None:
        status = "orphan"
    elif response is not None:
        status = "answered"
    else:
        status = "oneway" if request.command.is_oneway else "unanswered"
    return (
        request and packet_number(request.packet),
        response and packet_number(response.packet),
        status,
    )


@pytest.mark.slow
@given(st.data())
def test_any_number_of_shards(data: st.DataObject) -> None:
    """Each process decodes its share; put together by their places they are what one gives."""
    shards = data.draw(st.integers(2, 4))
    with tempfile.NamedTemporaryFile() as file:
        file.write(pcap_of(_several(data)))
        file.flush()
        whole = [row for batch in Decode([file.name]).records() for row in batch]
        parts = []
        for shard in range(shards):
            options = DecodeOptions(shard=shard, shards=shards)
            decode = ShardDecode([file.name], options)
            parts.append(
                [
                    one
                    for places, exchanges in decode.ordered()
                    for one in zip(
                        iter_unpack("<qq", places), decode.rows_of(exchanges), strict=True
                    )
                ]
            )
    assert [row for _, row in merge(*parts, key=itemgetter(0))] == whole


@pytest.mark.slow
@given(st.data())
def test_any_chunks_and_idle_times(data: st.DataObject) -> None:
    """Following a file: bytes come in any pieces, and what waits is given out in between."""
    script = data.draw(scripts())
    capture = pcap_of(data.draw(talks(script)))
    reader = reader_of(0, capture[:24])
    assert reader is not None
    stages = ExchangeStages(frozenset(), KEEP_ALL)
    at = 24
    while at < len(capture):
        size = data.draw(st.sampled_from([1, 16, 100, 1500, 1 << 20]))
        stages.receive(reader.receive(capture[at : at + size]))
        at += size
        if data.draw(st.integers(0, 3)) == 0:
            stages.release_holes()
    stages.receive(reader.finish())
    stages.finish()
    assert not stages.segments.acks_wanted
    assert multiset(stages.take_exchanges()) == script.expected()
    assert all(info.kind.severity < Severity.WARNING for info in stages.take_findings())
