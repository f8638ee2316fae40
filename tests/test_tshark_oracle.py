"""tshark sees what we see: packets and times, the bytes of every stream, the packets of PDUs."""

from __future__ import annotations

import gzip
import os
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from dissectors.tcp.capture import packet_number
from dissectors.tcp.formats import PCAP_HEADER, PcapReader, reader_of
from dissectors.tcp.segment import SegmentReader
from dissectors.tcp.source import ByteSource
from tests.expected import captures
from tests.streams import streams_of

pytestmark = pytest.mark.tshark

CAPTURES = captures()
CUT = ("snaplen", "cut-short")
"""samples of which tshark shows less or fills in: the payload that the snap length cut off"""


def tshark(capture: Path, *arguments: str) -> str:
    """What tshark prints for a capture."""
    environment = dict(os.environ, TZ="UTC", WIRESHARK_CONFIG_DIR="/nonexistent")
    done = subprocess.run(
        ["tshark", "-n", "-r", str(capture), "-o", "tcp.reassemble_out_of_order:TRUE", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.stdout or done.returncode == 0, done.stderr
    return done.stdout


FIELDS = ("frame.number", "frame.time_epoch", "frame.len")
TCP_FIELDS = ("tcp.seq_raw", "tcp.flags", "tcp.len")


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_packets_times_and_segments(capture: Path) -> None:
    """Number, time and length of every packet; sequence number, flags and payload of its TCP."""
    source = ByteSource(str(capture))
    data = b"".join(source.chunks())
    source.close()
    reader = reader_of(0, data)
    assert reader is not None
    segments = SegmentReader()
    segments.acks_wanted = True
    ours: list[tuple[object, ...]] = []
    for one in reader.receive(data[PCAP_HEADER:] if isinstance(reader, PcapReader) else data):
        row: tuple[object, ...] = (packet_number(one.packet), one.ts, one.length)
        segment = segments.segment_of(one)
        if segment is not None:
            size = segment.end - segment.start + segment.missing
            row = (*row, segment.seq, segment.flags & 0xFF, size)
        ours.append(row)
    arguments = [part for field in (*FIELDS, *TCP_FIELDS) for part in ("-e", field)]
    theirs: list[tuple[object, ...]] = []
    for line in tshark(capture, "-T", "fields", *arguments).splitlines():
        number, time, length, seq, flags, size = line.split("\t")
        row = (int(number), int(Decimal(time) * 10**9), int(length))
        if seq:
            row = (*row, int(seq), int(flags, 16) & 0xFF, int(size))
        theirs.append(row)
    assert ours == theirs


@pytest.mark.parametrize(
    "capture", [c for c in CAPTURES if not c.name.startswith(CUT)], ids=lambda path: path.name
)
def test_bytes_of_streams(capture: Path) -> None:
    """`follow,tcp,raw` of every stream that starts with a SYN and has no hole."""
    ours = {(s.source, s.destination): s.data for s in streams_of(capture) if s.whole}
    count = len(set(tshark(capture, "-Y", "tcp", "-T", "fields", "-e", "tcp.stream").split()))
    followed = [part for number in range(count) for part in ("-z", f"follow,tcp,raw,{number}")]
    theirs = _followed(tshark(capture, "-q", *followed))
    compared = 0
    for ends, data in ours.items():
        if data:
            assert theirs[ends] == data
            compared += 1
    assert compared == sum(1 for data in ours.values() if data)


def _followed(text: str) -> dict[tuple[str, str], bytes]:
    """The bytes of each direction from tshark's `follow` output."""
    found: dict[tuple[str, str], bytes] = {}
    nodes = ["", ""]
    for line in text.splitlines():
        if line.startswith("Node 0: "):
            nodes[0] = line[8:]
        elif line.startswith("Node 1: "):
            nodes[1] = line[8:]
        elif line and not line.startswith(("=", "Follow", "Filter")):
            second = line.startswith("\t")
            ends = (nodes[1], nodes[0]) if second else (nodes[0], nodes[1])
            found[ends] = found.get(ends, b"") + bytes.fromhex(line.strip())
    return found


def test_compressed_captures_are_among_them() -> None:
    zipped = [capture for capture in CAPTURES if capture.suffix == ".gz"]
    assert zipped
    assert gzip.decompress(zipped[0].read_bytes())
