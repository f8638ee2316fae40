"""Decoding of several files, of pipes, of growing files, of any source."""

from __future__ import annotations

import gzip
import io
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from dissectors.decode import pipeline
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import FindingKind
from dissectors.processes.choice import decode_of
from dissectors.processes.shared_decode import SharedDecode
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp import source
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.tcp.source import HEAD, BytesSource, CaptureError, FileSource
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import sent
from tests.traffic.decoded import decode, multiset, records
from tests.traffic.network import packets

from .captures import COUNT, MANY, SEGMENTS, WHOLE, assert_same, sends_of, written


def _split(tmp_path: Path, count: int) -> list[Path]:
    """The capture in so many files, as rotation leaves them."""
    size = -(-len(SEGMENTS) // count)
    return [
        written(
            tmp_path / f"x.pcap{index or ''}", pcap_of(SEGMENTS[index * size : (index + 1) * size])
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("count", [2, 5, 12, len(SEGMENTS)])
def test_a_conversation_goes_on_from_one_file_to_the_next(tmp_path: Path, count: int) -> None:
    files = _split(tmp_path, count)
    assert_same(files)
    assert_same([tmp_path])  # the folder: the same files in the same order
    outcome = decode(files)
    for one in outcome.exchanges:
        for pdu in (one.request, one.response):
            assert pdu is not None
            index = next(i for i, s in enumerate(SEGMENTS) if s.ts == pdu.ts and s.payload)
            size = -(-len(SEGMENTS) // count)
            assert (capture_index(pdu.packet), packet_number(pdu.packet) - 1) == divmod(index, size)
    assert sum(one.packets for one in outcome.stats.captures) == len(SEGMENTS)
    assert outcome.stats.conversations == 1


def test_the_same_packets_twice_are_the_same_bytes(tmp_path: Path) -> None:
    """Two files that overlap, as captures of two machines do: nothing is given out twice."""
    third = len(SEGMENTS) // 3
    first = written(tmp_path / "1.pcap", pcap_of(SEGMENTS[: 2 * third]))
    second = written(tmp_path / "2.pcap", pcap_of(SEGMENTS[third:]))
    for files in ([first, second], [first, first, second, second]):
        outcome = decode(files)
        assert multiset(outcome.exchanges) == multiset(WHOLE.exchanges)
        assert set(outcome.kinds) == {FindingKind.RETRANSMISSION}


def test_records_name_the_capture_that_completed_them(tmp_path: Path) -> None:
    files = _split(tmp_path, 3)
    found = records(files).records
    assert len(found) == COUNT
    assert [one.request_packet for one in found if one.capture == str(files[0])] != []
    assert {one.capture for one in found} == {str(path) for path in files}
    assert [one.response_time for one in found] == sorted(one.response_time or 0 for one in found)


def test_files_of_different_formats(tmp_path: Path) -> None:
    third = len(SEGMENTS) // 3
    first, second, rest = SEGMENTS[:third], SEGMENTS[third : 2 * third], SEGMENTS[2 * third :]
    names = [
        written(tmp_path / "1.pcap", pcap_of(first, "sll2", nano=True, big=True)),
        written(
            tmp_path / "2.pcapng.gz",
            gzip.compress(pcapng([(t, d, 0) for t, d in packets(second)], [Interface()])),
        ),
        written(tmp_path / "3.pcap.zst", zstandard.compress(pcap_of(rest, "raw"))),
    ]
    assert_same(names)
    assert_same([tmp_path])


def test_a_damaged_file_among_others(tmp_path: Path) -> None:
    """What is in it is lost, the conversation goes on; a file that is not a capture is said."""
    files = _split(tmp_path, 4)
    files[1].write_bytes(b"this was a capture once, but not any more")
    files[2].write_bytes(files[2].read_bytes()[:-7])
    outcome = decode(files)
    assert outcome.kinds[FindingKind.CAPTURE_DAMAGED] == 1
    assert outcome.kinds[FindingKind.CAPTURE_TRUNCATED] == 1
    assert outcome.kinds[FindingKind.GAP] >= 2
    assert COUNT // 2 < outcome.statuses["answered"] < COUNT
    assert not multiset(one for one in outcome.exchanges if one.status == "answered") - multiset(
        WHOLE.exchanges
    )
    assert [one.format for one in outcome.stats.captures] == ["pcap", "", "pcap", "pcap"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"\xd4\xc3\xb2\xa1", "pcap is cut short within its header: 4 bytes"),
        (b"\xd4\xc3\xb2\xa1" + bytes(16), "pcap is cut short within its header: 20 bytes"),
        (b"\x0a\x0d\x0d\x0a" + bytes(6), "pcapng is cut short within its header: 10 bytes"),
        (b"hello world, this is text", "not a pcap"),
        (b'{"capture":"x"}' * 3, "JSON"),
        (b"PAR1" + bytes(40), "Parquet"),
        (b"PK\x03\x04" + bytes(40), "zip"),
        (b"BZh9" + bytes(40), "bzip2"),
        (b"snoop\0\0\0" + bytes(40), "snoop"),
        (gzip.compress(b"x" * 100, mtime=0), "not a pcap"),
        (gzip.compress(b"x" * 100, mtime=0)[:12], "ends early"),
    ],
)
def test_what_is_no_capture_is_an_error(tmp_path: Path, content: bytes, reason: str) -> None:
    path = written(tmp_path / "x", content)
    with pytest.raises(CaptureError, match=reason) as caught:
        decode([path])
    assert caught.value.hint


def test_a_capture_of_nothing(tmp_path: Path) -> None:
    outcome = decode([written(tmp_path / "x.pcap", pcap([]))])
    assert (outcome.exchanges, outcome.findings) == ([], [])
    assert outcome.stats.captures[0].first_ts is None


class _Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (pcap_of(SEGMENTS), gzip.compress(pcap_of(SEGMENTS))):
        monkeypatch.setattr(sys, "stdin", _Stdin(data))
        run = Decode(["-"])
        assert run.bytes_total is None
        found = [one for batch in run.records() for one in batch]
        assert len(found) == COUNT
        assert {one.capture for one in found} == {"-"}


class _Halves:
    """A source of a program's own: a capture in two chunks."""

    compression = None
    problem = None
    size = None

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.bytes_read = 0
        self.closed = False
        self._data = data

    def chunks(self) -> Iterator[bytes]:
        half = len(self._data) // 2
        for part in (self._data[:half], self._data[half:]):
            self.bytes_read += len(part)
            yield part

    def close(self) -> None:
        self.closed = True


def test_any_source_gives_the_rows_of_the_file(tmp_path: Path) -> None:
    data = pcap_of(SEGMENTS)
    by_name = Decode([str(written(tmp_path / "x", data))])
    expected = [one for batch in by_name.records() for one in batch]
    own = _Halves(by_name.sources[0], data)
    for one in (own, BytesSource(own.name, data), BytesSource(own.name, gzip.compress(data))):
        run = decode_of([one], jobs=2)
        assert not isinstance(run, SharedDecode)  # another process cannot read it
        assert [row for batch in run.records() for row in batch] == expected
        assert run.bytes_total == one.size
        assert run.bytes_read == run.stats.captures[0].bytes == one.bytes_read > 0
    assert own.closed


def test_a_conversation_goes_on_from_one_source_to_the_next(tmp_path: Path) -> None:
    head, tail = pcap_of(SEGMENTS[:3]), pcap_of(SEGMENTS[3:])
    path = written(tmp_path / "x", head)
    run = Decode([str(path), _Halves("y", tail)])
    rows = [row for batch in run.records() for row in batch]
    assert len(rows) == COUNT
    assert run.bytes_total is None
    assert run.sources == [str(path), "y"]
    assert {row.capture for row in rows} <= {str(path), "y"}
    assert run.stats.conversations == 1


def test_a_source_that_is_no_capture() -> None:
    with pytest.raises(CaptureError, match="not a capture but JSON"):
        list(Decode([BytesSource("memory", b'{"a": 1}' + bytes(20))]).records())


def test_following(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exchanges are given as the file grows, also where a packet is written in two parts; what
    waits for a lost packet is given when nothing comes."""
    monkeypatch.setattr(source, "FOLLOW_INTERVAL", 0.01)
    talk = sends_of(4)
    lost = next(i for i, one in enumerate(talk.segments) if one.payload == sent(2, 2).frame)
    del talk.segments[lost]
    capture = pcap_of(talk.segments)
    path = tmp_path / "x.pcap"
    path.write_bytes(b"")

    def grow() -> None:
        for at in range(0, len(capture), 333):
            with path.open("ab") as file:
                file.write(capture[at : at + 333])
            time.sleep(0.002)

    writer = threading.Thread(target=grow)
    writer.start()
    run = Decode([str(path)], DecodeOptions(follow=True))
    found: list[ExchangeRecord] = []
    idle = 0
    for batch in run.records():
        found += batch
        idle = 0 if batch else idle + 1
        if idle > 3 * pipeline.IDLE_LOOKS and not writer.is_alive():
            break
    writer.join()
    assert [one.opaque for one in found] == [0, 1, 3]
    assert run.stats.commands == 0 or run.stats.commands == 7
    assert FindingKind.GAP in {info.kind for info in run.take_findings()}


def test_stopping(tmp_path: Path) -> None:
    """What was read by then is given out; the files behind are not looked at."""
    paths = [str(written(tmp_path / f"{index}.pcap", MANY)) for index in range(3)]
    for after in (1, 2, 3):
        run = Decode(paths)
        found = 0
        for number, batch in enumerate(run.exchanges()):
            found += len(batch)
            if number == after:
                run.stop()
        assert found < 600
        assert run.take_findings() == []


def test_what_was_read_before_the_stop_is_decoded(tmp_path: Path) -> None:
    """Ctrl-C may come between reading and decoding; a file behind is not opened."""
    path = written(tmp_path / "one.pcap", MANY)

    class Stopping(FileSource):
        def chunks(self) -> Iterator[bytes]:
            for chunk in super().chunks():
                if len(chunk) > HEAD:
                    run.stop()
                yield chunk

    run = Decode([Stopping(str(path)), str(path)])
    found = [exchange for batch in run.exchanges() for exchange in batch]
    assert 0 < len(found) < len(records([path]).records)
    assert [one.name for one in run.stats.captures] == [str(path)]
