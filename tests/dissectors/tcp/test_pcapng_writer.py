"""The pcapng writer: read back by our reader, tshark, capinfos and scapy."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.tcp.capture import MAX_PACKET
from dissectors.tcp.pcapng import MAX_TIME
from dissectors.tcp.pcapng_writer import PcapngWriter
from tests.traffic.captures import pcap
from tests.traffic.network import packets
from tests.traffic.talk import START, Talk

from .readers import Seen, read

_RANDOM = random.Random(8)
PACKETS = [
    (START + index * 1_234_567_891, _RANDOM.randbytes(size))
    for index, size in enumerate([0, 1, 2, 3, 4, 54, 1514, 65535])
]


def written(*, linktype: int = 1, snaplen: int = 0, cut: int = 0) -> bytes:
    """The packets as a file; each is said to be `cut` bytes longer on the wire."""
    file = io.BytesIO()
    writer = PcapngWriter(file, linktype, snaplen)
    for ts, data in PACKETS:
        writer.write(ts, data, len(data) + cut if cut else None)
    return file.getvalue()


@pytest.mark.parametrize("cut", [0, 1000])
@pytest.mark.parametrize("linktype", [0, 1, 101, 113, 276])
def test_our_reader_reads_it_back(linktype: int, cut: int) -> None:
    seen, findings = read(written(linktype=linktype, cut=cut))
    assert findings == []
    assert seen == [
        Seen(number, ts, linktype, data, len(data) + cut)
        for number, (ts, data) in enumerate(PACKETS, 1)
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, MAX_TIME - 1), st.binary(max_size=200), st.integers(0, 1 << 20)),
        max_size=20,
    )
)
def test_whatever_is_written_is_read(written_packets: list[tuple[int, bytes, int]]) -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file, 1)
    for ts, data, more in written_packets:
        writer.write(ts, data, len(data) + more)
    writer.write_statistics(writer.last_ts, len(written_packets), 0)
    seen, findings = read(file.getvalue())
    assert findings == []
    assert [(one.ts, one.data, one.length - len(one.data)) for one in seen] == written_packets
    assert writer.packets == len(written_packets)


@given(
    st.lists(st.tuples(st.integers(0, MAX_TIME - 1), st.binary(max_size=99), st.integers(0, 200)))
)
def test_packets_at_once_are_the_packets_one_by_one(
    written_packets: list[tuple[int, bytes, int]],
) -> None:
    files = io.BytesIO(), io.BytesIO()
    one_by_one, at_once = (PcapngWriter(file, 1) for file in files)
    for ts, data, length in written_packets:
        one_by_one.write(ts, data, length)
    bad = [(-1, b"", 0), (0, bytes(MAX_PACKET + 1), 0)]
    assert at_once.write_all([*bad, *written_packets, *bad]) == 4
    assert files[0].getvalue() == files[1].getvalue()
    assert (at_once.packets, at_once.last_ts) == (one_by_one.packets, one_by_one.last_ts)


def test_a_file_that_is_cut_off_has_the_packets_before_the_cut() -> None:
    whole = written()
    for size in range(100, len(whole), 997):
        seen, findings = read(whole[:size])
        assert [one.data for one in seen] == [data for _, data in PACKETS[: len(seen)]]
        assert all(info.kind.name == "CAPTURE_TRUNCATED" for info in findings)


def test_what_no_reader_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="65535"):
        PcapngWriter(io.BytesIO(), 65536)
    writer = PcapngWriter(io.BytesIO(), 1)
    for ts, data in ((-1, b""), (MAX_TIME, b""), (0, bytes(MAX_PACKET + 1))):
        with pytest.raises(ValueError, match="cannot be written"):
            writer.write(ts, data)
    assert writer.packets == 0


@pytest.mark.tshark
def test_tshark_sees_the_same_packets_and_times(tmp_path: Path) -> None:
    timed = [(ts + index, data) for index, (ts, data) in enumerate(packets(Talk().open().segments))]
    ours, theirs = tmp_path / "ours.pcapng", tmp_path / "theirs.pcap"
    with ours.open("wb") as file:
        writer = PcapngWriter(file, 1, 262144, interface="eth7", filter_text="port 10911")
        for ts, data in timed:
            writer.write(ts, data)
        writer.write_statistics(timed[-1][0], 77, 7)
    theirs.write_bytes(pcap(timed, nano=True))
    assert _tshark(ours) == _tshark(theirs)
    assert [line.split("\t")[1] for line in _tshark(ours)] == [
        f"{ts // 10**9}.{ts % 10**9:09d}" for ts, _ in timed
    ]
    fields = ("-e", "frame.interface_name")
    assert set(_tshark(ours, *fields)) == {"eth7"}


@pytest.mark.skipif(shutil.which("capinfos") is None, reason="capinfos is not installed")
def test_capinfos_reads_the_head(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file, 113, 4096, interface="any", filter_text="tcp")
        for ts, data in PACKETS:
            writer.write(ts, data)
        writer.write_statistics(writer.last_ts, 100, 3)
    text = subprocess.run(["capinfos", path], capture_output=True, text=True, check=True).stdout
    said = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "File encapsulation: Linux cooked-mode capture v1",
        "File timestamp precision: nanoseconds (9)",
        "Capture application: rmqtool",
        "Name = any",
        "Filter string = tcp",
        "Capture length = 4096",
        f"Number of packets: {len(PACKETS)}",
        "Number of stat entries = 1",
    ):
        assert line in said, text


def test_scapy_reads_it(tmp_path: Path) -> None:
    utils = pytest.importorskip("scapy.utils")
    path = tmp_path / "a.pcapng"
    path.write_bytes(written(cut=9))
    with utils.RawPcapNgReader(str(path)) as reader:
        read_back = [
            ((meta.tshigh << 32) | meta.tslow, data, meta.wirelen) for data, meta in reader
        ]
    assert read_back == [(ts, data, len(data) + 9) for ts, data in PACKETS]


def _tshark(path: Path, *fields: str) -> list[str]:
    wanted = fields or (*("-e", "frame.number"), *("-e", "frame.time_epoch"), *("-e", "tcp.seq"))
    command = ["tshark", "-r", str(path), "-T", "fields", *wanted]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
