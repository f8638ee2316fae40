"""What is written of connections: read back by us and by tshark, byte by byte."""

from __future__ import annotations

import errno
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode
from replay.config import ProducerConfig
from replay.message import Message, MessageQueue
from replay.sending.send_request import SendEncoder
from replay.unique_id import UniqueIds
from replay.wire_capture import WireCapture
from tests.replay.java_sends import SAMPLES
from tests.streams import streams_of

TS = 1_700_000_000_000_000_000
V4 = ("127.0.0.1:50000", "127.77.0.11:10911")
V6 = ("[::1]:50000", "[fd00::11]:10911")
MIXED = ("192.0.2.1:50000", "[fd00::11]:10911")
tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def _tshark(path: Path, *arguments: str) -> list[str]:
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    command = ["tshark", "-n", "-r", str(path), *options, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


@given(
    talk=st.lists(st.tuples(st.booleans(), st.binary(max_size=4000)), max_size=8),
    ends=st.sampled_from([V4, V6, MIXED]),
)
def test_bytes_are_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    talk: list[tuple[bool, bytes]],
    ends: tuple[str, str],
) -> None:
    path = tmp_path_factory.mktemp("wire") / "wire.pcapng"
    with WireCapture(str(path)) as capture:
        connection = capture.opened(TS, *ends)
        for number, (ours, data) in enumerate(talk):
            put = connection.sent if ours else connection.received
            put(TS + number * 1000, data)
        connection.closed(TS + 10_000_000)
    streams = streams_of(path)
    assert [stream.whole for stream in streams] == [True, True]
    written = [b"".join(data for ours, data in talk if ours is side) for side in (True, False)]
    assert [stream.data for stream in streams] == written


def _two_connections(path: Path) -> int:
    encoder = SendEncoder(ProducerConfig("g"), UniqueIds("192.0.2.10", 1, 1))
    sent = 0
    with WireCapture(str(path)) as capture:
        for ends in (V4, V6):
            connection = capture.opened(TS, *ends)
            for number in range(5):
                message = Message("T", bytes(number * 700 + 1))
                queue = MessageQueue("T", "broker-a", number)
                request = encoder.request(encoder.prepare(message, 0), queue, 0)
                connection.sent(TS + number * 1_000_000, request.encode(number))
                header = b'{"code":0,"flag":1,"language":"JAVA","opaque":%d,"version":1}' % number
                prefix = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
                connection.received(TS + number * 1_000_000 + 500_000, prefix + header)
                sent += 1
            connection.closed(TS + 9_000_000, by_peer=ends is V6)
            connection.sent(TS + 9_500_000, b"after the end")
            connection.closed(TS + 9_500_000)
    return sent


def test_our_own_decode_sees_the_exchanges(tmp_path: Path) -> None:
    path = tmp_path / "wire.pcapng"
    sent = _two_connections(path)
    run = Decode([str(path)])
    rows = [row for batch in run.records() for row in batch]
    assert [row.status for row in rows] == ["answered"] * sent
    assert {row.latency_us for row in rows} == {500}
    assert {row.client_address for row in rows} == {V4[0], V6[0]}
    assert {row.server_address for row in rows} == {V4[1], V6[1]}
    assert all(row.findings == [] for row in rows)
    assert run.stats.conversations == 2


@pytest.mark.tshark
@tshark
def test_tshark_finds_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "wire.pcapng"
    _two_connections(path)
    bad = "_ws.malformed || tcp.analysis.flags || _ws.expert.severity > 0x400000"
    wrong = "tcp.checksum.status == 0 || ip.checksum.status == 0"
    assert _tshark(path, "-Y", f"{bad} || {wrong}") == []
    good = _tshark(path, "-Y", "tcp.checksum.status == 1")
    assert len(good) == len(_tshark(path))
    assert _tshark(
        path, "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0", "-T", "fields", "-e", "ip.src"
    ) == ["127.0.0.1", ""]
    flags = _tshark(path, "-Y", "tcp.flags.fin == 1", "-T", "fields", "-e", "tcp.srcport")
    assert flags == ["50000", "10911", "10911", "50000"]
    lengths = _tshark(path, "-T", "fields", "-e", "frame.len")
    assert max(map(int, lengths)) <= 1500


@pytest.mark.tshark
@tshark
def test_tshark_follows_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "wire.pcapng"
    stream = next(s for s in streams_of(SAMPLES / "send-sync-5x.pcap") if b"SyncTopic" in s.data)
    with WireCapture(str(path)) as capture:
        connection = capture.opened(TS, *V4)
        connection.sent(TS, stream.data)
        connection.closed(TS, reset=True)
    lines = _tshark(path, "-q", "-z", "follow,tcp,raw,0")
    data = bytes.fromhex("".join(line.strip() for line in lines[6:-1]))
    assert data == stream.data
    assert len(_tshark(path, "-Y", "tcp.flags.reset == 1")) == 1


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "wire.pcapng"
    path.write_bytes(b"kept")
    with pytest.raises(FileExistsError):
        WireCapture(str(path))
    assert path.read_bytes() == b"kept"


class _Disk(io.BytesIO):
    full = False

    def write(self, data: Any) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_full_disk_ends_the_capture_and_nothing_else() -> None:
    disk = _Disk()
    capture = WireCapture("wire.pcapng", disk)
    connection = capture.opened(TS, *V4)
    disk.full = True
    connection.sent(TS, b"x" * 100_000)
    assert isinstance(capture.error, OSError)
    assert capture.error.errno == errno.ENOSPC
    connection.closed(TS)
    capture.close()
    assert capture.error.errno == errno.ENOSPC


@pytest.mark.parametrize("address", ["", "nowhere", "host:1", "1.2.3.4", "[::1%lo]:5"])
def test_addresses_of_any_kind_are_written(tmp_path: Path, address: str) -> None:
    path = tmp_path / "wire.pcapng"
    with WireCapture(str(path)) as capture:
        capture.opened(TS, address, V4[1]).sent(TS, b"data")
        assert capture.packets == 4
    assert [stream.data for stream in streams_of(path)] == [b"data", b""]
