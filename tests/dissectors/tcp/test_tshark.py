"""tshark as the oracle: the same packets and times, the same bytes in every stream.

Of every sample and of captures made here: `frame.number`, `frame.time_epoch`, lengths of each
packet; `follow,tcp,raw` of each stream against the pieces of our reassembly. Of every sample: the
round trip of each handshake (`tcp.analysis.initial_rtt`) and windows of zero.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.tcp.capture import Packet, packet_number
from dissectors.tcp.formats import reader_of
from dissectors.tcp.reassembly import Data, Piece, StreamReassembler
from dissectors.tcp.segment import ACK, RST, SYN, Segment, reversed_key, source_of
from dissectors.tcp.segment_reader import SegmentReader
from dissectors.tcp.source import FileSource
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import send, sent
from tests.traffic.joined import Joined, Part, Together
from tests.traffic.network import LINKS, TUNNELS, ethernet, fragments, ip, packets
from tests.traffic.talk import MILLISECOND, End, Talk, Tcp, retimed

pytestmark = pytest.mark.tshark

SAMPLES = sorted(
    path
    for path in (Path(__file__).resolve().parents[3] / "samples").glob("*.pcap*")
    if path.suffix in (".pcap", ".pcapng") and ".expected" not in path.name
)
MISSING = re.compile(rb"\[\d+ bytes missing in capture file\]\0")
"""what tshark writes for a hole"""
FRAME_FIELDS = ("frame.number", "frame.time_epoch", "frame.len", "frame.cap_len")
TCP_FIELDS = (
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.flags",
    "tcp.analysis.initial_rtt",
    "tcp.window_size_value",
)
Stream = tuple[bytes, bytes]
"""what the first and the second of two ends, in order of their names, have said"""


@dataclass
class Seen:
    """A capture as one of the two sees it."""

    packets: list[tuple[int, int, int, int]] = field(default_factory=list)
    """number, nanoseconds, length on the wire, captured length"""
    streams: dict[tuple[str, str], list[Stream]] = field(default_factory=lambda: defaultdict(list))
    """by the names of both ends, those that say nothing left out"""
    order: list[Stream] = field(default_factory=list)
    """the same by appearance, of both ends as they appeared; our side only"""
    connections: int = 0
    """as many as our side sees, those that say nothing too"""
    handshakes: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """by client and server: microseconds of the round trip, windows of zero"""


# -- tshark -------------------------------------------------------------------------------------


Follow = tuple[int, tuple[str, str], Stream]
"""number of a stream, the names of its ends, what each said"""


def by_tshark(path: Path, streams: int) -> Seen:
    """What tshark sees; `streams` is how many it is asked for."""
    lines, follows = _run_tshark(path, streams)
    return _seen_in(lines, follows)


def by_tshark_at_once(joined: Joined) -> dict[Path, Seen]:
    """What it sees in each of several captures."""
    lines, follows = _run_tshark(joined.path, joined.streams)
    lines_of: dict[Path, list[list[str]]] = defaultdict(list)
    for line in lines:
        lines_of[joined.part_of(int(line[0])).path].append(line)
    follows_of: dict[Path, list[Follow]] = defaultdict(list)
    for follow in follows:
        if any(follow[2]):
            follows_of[joined.part_at(follow[1][0]).path].append(follow)
    return {
        part.path: _seen_in(lines_of[part.path], follows_of[part.path], part)
        for part in joined.parts
    }


def _run_tshark(path: Path, streams: int) -> tuple[list[list[str]], list[Follow]]:
    """Fields of each packet, and what was said in each stream."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=l"]
    command += ["-o", "tcp.desegment_tcp_streams:FALSE"]
    for name in (*FRAME_FIELDS, *TCP_FIELDS):
        command += ["-e", name]
    for number in range(streams):
        command += ["-z", f"follow,tcp,raw,{number}"]
    out = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    head, *follows = re.split(r"\n?={67}\nFollow: tcp,raw\n", out)
    return [line.split("\t") for line in head.splitlines()], [_follow(text) for text in follows]


def _seen_in(lines: list[list[str]], follows: list[Follow], part: Part | None = None) -> Seen:
    """What was seen in one capture, or in the part of several that it is."""
    end, number_in = (str, int) if part is None else (part.end, part.number)
    earlier = 0 if part is None else part.earlier
    seen = Seen()
    seen.handshakes = {
        (end(client), end(server)): found for (client, server), found in _handshakes(lines).items()
    }
    for number, time, length, captured, *_ in lines:
        seconds, fraction = time.split(".")
        stamp = (int(seconds) + earlier) * 10**9 + int(fraction)
        seen.packets.append((number_in(int(number)), stamp, int(length), int(captured)))
    for _, (a, b), stream in sorted(follows, key=lambda one: one[0]):
        if any(stream):
            ends, said = _in_order(end(a), end(b), *stream)
            seen.streams[ends].append(said)
    return seen


def _handshakes(lines: Iterable[list[str]]) -> dict[tuple[str, str], tuple[float, int]]:
    """Return whole handshakes: tshark takes a refusal, too, for the end of a round trip.

    It takes a round trip of zero for none and goes on to the next packet: a handshake whose ACK has
    the time of the SYN, as a proxy records it, has no round trip and is left out here.
    """
    begins: dict[str, str] = {}
    ends: dict[str, tuple[str, str]] = {}
    syns: dict[str, int] = {}
    accepted: set[str] = set()
    unmeasured: set[str] = set()
    rtts: dict[str, float] = {}
    zeros: dict[str, int] = {}
    for line in lines:
        stream, a4, a6, a_port, b4, b6, b_port, flags, rtt, window = line[len(FRAME_FIELDS) :]
        bits = int(flags, 16) if flags else 0
        a = f"[{a6}]:{a_port}" if a6 else f"{a4}:{a_port}"
        b = f"[{b6}]:{b_port}" if b6 else f"{b4}:{b_port}"
        if bits & (SYN | ACK) == SYN:
            ends[stream] = (a, b)
            begins[stream] = line[1]
            syns[stream] = syns.get(stream, 0) + 1
        elif bits & SYN:
            accepted.add(stream)
        elif line[1] == begins.get(stream) and ends[stream] == (a, b) and stream in accepted:
            unmeasured.add(stream)
        if rtt:
            rtts[stream] = float(rtt) * 1e6
        zeros[stream] = zeros.get(stream, 0) + (window == "0" and not bits & RST)
    return {
        ends[stream]: (rtt, zeros[stream])
        for stream, rtt in rtts.items()
        if syns.get(stream) == 1 and stream in accepted and stream not in unmeasured
    }


def _follow(text: str) -> Follow:
    number = int(re.search(r"tcp\.stream eq (\d+)", text)[1])  # type: ignore[index]
    ends = re.findall(r"Node [01]: (.*)", text)
    said = [b"", b""]
    for line in text.split("\n")[3:]:
        if line.startswith("="):
            break
        side = int(line.startswith("\t"))
        said[side] += bytes.fromhex(line.strip())
    return number, (ends[0], ends[1]), (said[0], said[1])


def _in_order(a: str, b: str, of_a: bytes, of_b: bytes) -> tuple[tuple[str, str], Stream]:
    return ((a, b), (of_a, of_b)) if a < b else ((b, a), (of_b, of_a))


# -- ours ---------------------------------------------------------------------------------------


class _Side:
    def __init__(self, key: bytes) -> None:
        self.name = source_of(key)
        self.machine = StreamReassembler(0, [])
        self.isn = -1
        self.pieces: list[Piece] = []

    @property
    def said(self) -> bytes:
        found = b""
        for piece in self.pieces:
            if isinstance(piece, Data):
                found += piece.data[piece.start : piece.end]
            else:
                found += b"[%d bytes missing in capture file]\0" % piece.length
        return found


def by_us(path: Path) -> Seen:
    """What our reader and our reassembly see."""
    seen = Seen()
    sides: dict[bytes, _Side] = {}
    order: list[tuple[_Side, _Side]] = []
    reader = SegmentReader()
    reader.acks_wanted = True
    for packet in _packets(path):
        captured = packet.end - packet.start
        seen.packets.append((packet_number(packet.packet), packet.ts, packet.length, captured))
        segment = reader.segment_of(packet)
        if segment is None:
            continue
        side = sides.get(segment.key)
        if side is None or (segment.flags & SYN and side.isn not in (-1, segment.seq)):
            side = sides[segment.key] = _Side(segment.key)
            other = sides[reversed_key(segment.key)] = _Side(reversed_key(segment.key))
            order.append((side, other))
        _receive(segment, side, sides[reversed_key(segment.key)])
    seen.connections = len(order)
    for first, second in order:
        first.machine.finish(first.pieces)
        second.machine.finish(second.pieces)
        seen.order.append((first.said, second.said))
        ends, stream = _in_order(first.name, second.name, first.said, second.said)
        if any(stream):
            seen.streams[ends].append(stream)
    return seen


def _receive(segment: Segment, side: _Side, other: _Side) -> None:
    if segment.flags & SYN:
        side.isn = segment.seq
        side.machine.synchronize(segment, side.pieces)
        segment.seq = (segment.seq + 1) & 0xFFFFFFFF
    if segment.flags & RST == 0 and (segment.end > segment.start or segment.missing):
        side.machine.receive(segment, side.pieces)
    if other.machine.waiting and segment.flags & ACK:
        other.machine.acknowledge(segment, other.pieces)


def _packets(path: Path) -> Iterator[Packet]:
    source = FileSource(str(path))
    data = b"".join(source.chunks())
    source.close()
    reader = reader_of(0, data)
    assert reader is not None
    yield from reader.receive(b"")


# -- compared -----------------------------------------------------------------------------------


def seen_by_both(path: Path) -> tuple[Seen, Seen]:
    """What we see, and what tshark does."""
    ours = by_us(path)
    return ours, by_tshark(path, ours.connections * 2 + 10)


def assert_same(ours: Seen, theirs: Seen) -> None:
    assert ours.packets == theirs.packets
    assert set(ours.streams) == set(theirs.streams)
    # tshark says nothing where the snap length cut a packet off.
    cut = any(captured < length for _, _, length, captured in ours.packets)
    for ends, streams in ours.streams.items():
        expected = theirs.streams[ends]
        if cut:
            streams, expected = _without_holes(streams), _without_holes(expected)
        assert streams == expected, ends


def _without_holes(streams: list[Stream]) -> list[Stream]:
    return [(MISSING.sub(b"", one), MISSING.sub(b"", other)) for one, other in streams]


@pytest.fixture(autouse=True, scope="module")
def _tshark() -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")


class Sample(NamedTuple):
    """A sample as both see it."""

    path: Path
    ours: Seen
    theirs: Seen


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together[Seen]:
    """What tshark sees in samples; it reads many at once."""
    return Together(SAMPLES, tmp_path_factory.mktemp("joined"), by_tshark_at_once)


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda path: path.name)
def sample(request: pytest.FixtureRequest, together: Together[Seen]) -> Sample:
    """Of a module, so that tshark runs once for all tests of a sample."""
    path: Path = request.param
    theirs = together.get(path)
    return (
        Sample(path, *seen_by_both(path)) if theirs is None else Sample(path, by_us(path), theirs)
    )


def test_samples(sample: Sample) -> None:
    assert_same(sample.ours, sample.theirs)


def test_round_trips_and_windows_of_zero(sample: Sample) -> None:
    decode = Decode([str(sample.path)], DecodeOptions(conversations=True))
    rows = [row for _ in decode.records() for row in decode.take_conversations()]
    with_handshake = {
        (row.client_address, row.server_address): row for row in rows if row.rtt_us is not None
    }
    wanted = sample.theirs.handshakes
    assert with_handshake.keys() == wanted.keys()
    for ends, row in with_handshake.items():
        rtt, zero_windows = wanted[ends]
        assert row.rtt_us is not None
        assert abs(row.rtt_us - rtt) <= 1, ends
        assert row.client_zero_windows + row.server_zero_windows == zero_windows, ends


def _said() -> Talk:
    talk = Talk(mss=700, step=MILLISECOND).open()
    for number in range(12):
        talk.say(0, send(number, bytes(range(256)) * 5).frame, acked=True)
        talk.say(1, sent(number).frame, acked=True)
    return talk


def _disturbed() -> list[Tcp]:
    """Late, repeated and overlapping segments, probes."""
    talk = _said()
    found = talk.segments
    for index in range(5, len(found) - 4, 7):
        found[index], found[index + 1] = found[index + 1], found[index]
    for index in range(10, len(found) - 4, 11):
        found.insert(index + 3, found[index])
    talk.keep_alive(0, b"\0").ack(1).close()
    return retimed(found, step=MILLISECOND)


def _without(segments: list[Tcp], every: int) -> list[Tcp]:
    sizes = [i for i, one in enumerate(segments) if one.payload]
    lost = set(sizes[3::every])
    return [one for i, one in enumerate(segments) if i not in lost]


def _v6() -> list[Tcp]:
    talk = Talk(End("2001:db8::5", 1), End("2001:db8::1", 2), isn=(2**32 - 300, 2**32 - 2))
    return talk.open().say(0, send(1, bytes(900)).frame).say(1, sent(1).frame).close().segments


GENERATED = {
    "in order": lambda: pcap_of(_said().segments),
    "disturbed": lambda: pcap_of(_disturbed(), nano=True),
    "big-endian": lambda: pcap_of(_said().segments, big=True),
    "lost": lambda: pcap_of(_without(_said().segments, 9)),
    "cut off": lambda: pcap_of(_said().segments, snaplen=400),
    "IPv6 and a wrap": lambda: pcap_of(_v6()),
    "tunnel": lambda: pcap([(one.ts, ethernet(TUNNELS["gre-key"](ip(one)))) for one in _v6()]),
    "fragments": lambda: pcap(
        [
            (one.ts, ethernet(part))
            for number, one in enumerate(_said().segments)
            for part in fragments(one, 512, number)
        ]
    ),
    "pcapng": lambda: pcapng(
        [
            (one.ts, packets([one], ("ethernet", "sll2")[i % 2])[0][1], i % 2)
            for i, one in enumerate(_said().segments)
        ],
        [Interface(1, 9), Interface(276)],
    ),
    **{
        f"link {name}": lambda name=name: pcap_of(_said().segments[:20], name)  # type: ignore[misc]
        for name, link in LINKS.items()
        if link.version != 6 and name not in ("raw-bsd", "raw-openbsd", "null-big")
    },
}


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(GENERATED[name]())
    assert_same(*seen_by_both(path))
