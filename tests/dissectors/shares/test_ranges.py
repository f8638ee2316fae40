"""A file is cut where a packet begins, or not at all, whatever its payloads look like."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dissectors.shares.range_reader import RangeReader
from dissectors.shares.ranges import plan_of
from tests.traffic.captures import Interface, pcap, pcapng
from tests.traffic.talk import MILLISECOND, START

from .shared import records_in

SIZE = 1_500_000
RANGE = 300_000


def _captured(payload: bytes, each: int = 1000) -> list[tuple[int, bytes]]:
    """Return packets with a payload that goes on from one to the next."""
    head = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0" + bytes(40)
    count = SIZE // (each + len(head))
    whole = payload * (SIZE // len(payload) + 1)
    return [
        (START + n * MILLISECOND, head + whole[n * each : (n + 1) * each]) for n in range(count)
    ]


def _record(captured: int) -> bytes:
    return struct.pack("<IIII", START // 10**9, 5, captured, captured)


PAYLOADS = {
    "text": b"some text that is no record ",
    "nothing": bytes(1000),
    "a capture": pcap([(START, bytes(60))] * 50)[24:],
    "blocks": pcapng([(START, bytes(60), 0)] * 50, [Interface()]),
    "a row that leaps over headers": _record(1000 + 54 + 16 - 16) + bytes(1000 - 16),
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("form", ["pcap", "nano", "patched", "pcapng"])
def test_cuts_are_where_packets_begin(payload: bytes, form: str, tmp_path: Path) -> None:
    packets = _captured(payload)
    capture = tmp_path / "x.cap"
    if form == "pcapng":
        capture.write_bytes(pcapng([(ts, data, 0) for ts, data in packets], [Interface()]))
    else:
        capture.write_bytes(pcap(packets, nano=form == "nano", patched=form == "patched"))
    places = records_in(capture.read_bytes())
    ranges = plan_of([str(capture)], RANGE).ranges
    cuts = [one.start for one in ranges[1:]]
    assert set(cuts) <= set(places)
    is_doubtful = payload == PAYLOADS["a row that leaps over headers"] and form != "pcapng"
    size = capture.stat().st_size
    assert len(cuts) == (0 if is_doubtful else len(range(RANGE, size - RANGE // 2, RANGE)))
    read = packets_seen = 0
    for one in ranges:
        reader = RangeReader(one, 1, by_hosts=False)
        for _ in reader.pieces():
            pass
        read += reader.summary().bytes
        packets_seen += reader.summary().packets
    assert read == size
    assert packets_seen == len(packets)


def test_what_cannot_be_cut_is_one_range(tmp_path: Path) -> None:
    import gzip

    whole = pcap(_captured(PAYLOADS["text"]))
    packed = tmp_path / "x.pcap.gz"
    packed.write_bytes(gzip.compress(whole, 1))
    text = tmp_path / "x.txt"
    text.write_bytes(bytes(SIZE))
    for path in (packed, text):
        (one,) = plan_of([str(path)], RANGE).ranges
        assert one.is_whole
