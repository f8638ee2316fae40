"""Captures in, exchanges out: formats, compressions, several files, folders, pipes, following."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from dissectors.decode import pipeline
from dissectors.decode.pipeline import CaptureStats, Decode, DecodeOptions
from dissectors.decode.shards import SharedDecode, decode_of
from dissectors.expert import ExpertKind
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp import source
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.tcp.source import BytesSource, CaptureError
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import Command, send, sent
from tests.traffic.decoded import decode, decode_bytes, multiset, records
from tests.traffic.network import LINKS, packets
from tests.traffic.talk import BROKER, CLIENT, MILLISECOND, SECOND, START, Talk, Tcp

COUNT = 40


def _talk(count: int = COUNT, size: int = 20) -> Talk:
    talk = Talk(mss=300, step=MILLISECOND).open()
    for number in range(count):
        talk.say(0, send(number, bytes(number * size)).frame, acked=True)
        talk.say(1, sent(number, number).frame, acked=True)
    return talk


SEGMENTS = _talk().segments
MANY = pcap_of(_talk(600, 0).segments)
WHOLE = decode_bytes(pcap_of(SEGMENTS))


def _same(sources: list[Path]) -> None:
    outcome = decode(sources)
    assert multiset(outcome.exchanges) == multiset(WHOLE.exchanges)
    assert outcome.experts == []


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("nano", [False, True], ids=["us", "ns"])
@pytest.mark.parametrize("link", sorted(LINKS))
def test_pcap_in_every_form(tmp_path: Path, link: str, nano: bool, big: bool) -> None:
    if LINKS[link].version != 6:
        _same([_write(tmp_path / "x.pcap", pcap_of(SEGMENTS, link, big=big, nano=nano))])


@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
def test_pcapng_with_several_interfaces(tmp_path: Path, big: bool) -> None:
    names = [name for name in sorted(LINKS) if LINKS[name].version != 6]
    resolutions = [None, 9, 6, 3, 0x80 | 30]
    interfaces = [
        Interface(LINKS[name].linktype, resolutions[index % 5], index)
        for index, name in enumerate(names)
    ]
    timed = [
        (one.ts, packets([one], names[index % len(names)])[0][1], index % len(names))
        for index, one in enumerate(SEGMENTS)
    ]
    path = _write(tmp_path / "x.pcapng", pcapng(timed, interfaces, big=big))
    _same([path])
    assert [one.format for one in decode([path]).stats.captures] == ["pcapng"]


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("name", sorted(COMPRESS))
def test_compressed(tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / "no suffix", COMPRESS[name](pcap_of(SEGMENTS)))
    _same([path])
    (stats,) = decode([path]).stats.captures
    assert (stats.compression, stats.bytes) == (name, path.stat().st_size)


@pytest.mark.parametrize("name", sorted(COMPRESS))
def test_compressed_and_cut(tmp_path: Path, name: str) -> None:
    """What stands before the cut is decoded, and the cut is said."""
    packed = COMPRESS[name](MANY)
    path = _write(tmp_path / "x", packed[: len(packed) * 3 // 4])
    outcome = decode([path])
    assert outcome.statuses["answered"] > 200
    assert outcome.kinds[ExpertKind.CAPTURE_TRUNCATED] == 1
    detail = next(i.detail for i in outcome.experts if i.kind is ExpertKind.CAPTURE_TRUNCATED)
    assert detail == f"the {name} stream ends early"


def test_the_statistics_of_a_run(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.pcap", pcap_of(SEGMENTS, nano=True))
    run = Decode([str(path)])
    assert (run.bytes_total, run.bytes_read) == (path.stat().st_size, 0)
    assert sum(len(batch) for batch in run.exchanges()) == COUNT
    stats = run.stats
    assert stats.captures == [
        CaptureStats(
            name=str(path),
            format="pcap",
            packets=len(SEGMENTS),
            bytes=path.stat().st_size,
            first_ts=SEGMENTS[0].ts,
            last_ts=SEGMENTS[-1].ts,
        )
    ]
    assert (stats.conversations, stats.rocketmq_conversations) == (1, 1)
    assert (stats.frames, stats.commands, stats.gaps) == (2 * COUNT, 2 * COUNT, 0)
    assert run.bytes_read == path.stat().st_size
    with pytest.raises(RuntimeError, match="iterated once"):
        list(run.records())


# -- several files ------------------------------------------------------------------------------


def _split(tmp_path: Path, count: int) -> list[Path]:
    """The capture in so many files, as rotation leaves them."""
    size = -(-len(SEGMENTS) // count)
    return [
        _write(
            tmp_path / f"x.pcap{index or ''}", pcap_of(SEGMENTS[index * size : (index + 1) * size])
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("count", [2, 5, 12, len(SEGMENTS)])
def test_a_conversation_goes_on_from_one_file_to_the_next(tmp_path: Path, count: int) -> None:
    files = _split(tmp_path, count)
    _same(files)
    _same([tmp_path])  # the folder: the same files in the same order
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
    first = _write(tmp_path / "1.pcap", pcap_of(SEGMENTS[: 2 * third]))
    second = _write(tmp_path / "2.pcap", pcap_of(SEGMENTS[third:]))
    for files in ([first, second], [first, first, second, second]):
        outcome = decode(files)
        assert multiset(outcome.exchanges) == multiset(WHOLE.exchanges)
        assert set(outcome.kinds) == {ExpertKind.RETRANSMISSION}


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
        _write(tmp_path / "1.pcap", pcap_of(first, "sll2", nano=True, big=True)),
        _write(
            tmp_path / "2.pcapng.gz",
            gzip.compress(pcapng([(t, d, 0) for t, d in packets(second)], [Interface()])),
        ),
        _write(tmp_path / "3.pcap.zst", zstandard.compress(pcap_of(rest, "raw"))),
    ]
    _same(names)
    _same([tmp_path])


def test_a_damaged_file_among_others(tmp_path: Path) -> None:
    """What is in it is lost, the conversation goes on; a file that is no capture is said."""
    files = _split(tmp_path, 4)
    files[1].write_bytes(b"this was a capture once, but not any more")
    files[2].write_bytes(files[2].read_bytes()[:-7])
    outcome = decode(files)
    assert outcome.kinds[ExpertKind.CAPTURE_DAMAGED] == 1
    assert outcome.kinds[ExpertKind.CAPTURE_TRUNCATED] == 1
    assert outcome.kinds[ExpertKind.GAP] >= 2
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
    path = _write(tmp_path / "x", content)
    with pytest.raises(CaptureError, match=reason) as caught:
        decode([path])
    assert caught.value.hint


def test_a_capture_of_nothing(tmp_path: Path) -> None:
    outcome = decode([_write(tmp_path / "x.pcap", pcap([]))])
    assert (outcome.exchanges, outcome.experts) == ([], [])
    assert outcome.stats.captures[0].first_ts is None


# -- pipes and following ------------------------------------------------------------------------


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
    by_name = Decode([str(_write(tmp_path / "x", data))])
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
    path = _write(tmp_path / "x", head)
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
    talk = _talk(4)
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
    assert ExpertKind.GAP in {info.kind for info in run.take_experts()}


def test_stopping(tmp_path: Path) -> None:
    """What was read by then is given out; the files behind are not looked at."""
    paths = [str(_write(tmp_path / f"{index}.pcap", MANY)) for index in range(3)]
    for after in (1, 2, 3):
        run = Decode(paths)
        found = 0
        for number, batch in enumerate(run.exchanges()):
            found += len(batch)
            if number == after:
                run.stop()
        assert found < 600
        assert run.take_experts() == []


# -- time ---------------------------------------------------------------------------------------


def test_since_and_until(tmp_path: Path) -> None:
    """An exchange belongs to the time of its request, an orphan to that of its response."""
    talk = Talk(step=0).open()
    for number in range(10):
        talk.now = START + number * SECOND
        talk.say(0, send(number).frame)
        talk.now += SECOND * 3 // 2
        talk.say(1, sent(number).frame)
    talk.now = START + 20 * SECOND
    talk.say(1, sent(77).frame)
    path = _write(tmp_path / "x.pcap", pcap_of(sorted(talk.segments, key=lambda one: one.ts)))

    def opaques(since: int | None, until: int | None) -> list[int]:
        options = DecodeOptions(
            since=None if since is None else START + since,
            until=None if until is None else START + until,
        )
        return sorted(one.opaque for one in records([path], options).records)

    everything = [*range(10), 77]
    assert opaques(None, None) == everything
    assert opaques(3 * SECOND, None) == everything[3:]
    assert opaques(3 * SECOND + 1, None) == everything[4:]
    assert opaques(None, 3 * SECOND) == everything[:3]
    assert opaques(2 * SECOND, 5 * SECOND) == [2, 3, 4]
    assert opaques(15 * SECOND, 30 * SECOND) == [77]


# -- what a row says ----------------------------------------------------------------------------


def test_a_row_of_an_exchange() -> None:
    request, answer = send(7, b"12345"), sent(7, 42)
    talk = Talk().open().say(0, request.frame).say(1, answer.frame)
    with_rows = pcap_of(talk.segments)
    (row,) = _rows(with_rows)
    assert (row.conversation, row.requester, row.responder) == (0, str(CLIENT), str(BROKER))
    assert (row.status, row.request_packet, row.response_packet) == ("answered", 4, 5)
    assert (row.request_time, row.latency_us) == (talk.segments[3].ts, 100)
    assert (row.opaque, row.request_code, row.response_code) == (7, 310, 0)
    assert (row.request_name, row.response_name) == ("SEND_MESSAGE_V2", "SUCCESS")
    assert (row.topic, row.group, row.queue_id) == ("Orders", "producers", 2)
    assert (row.unique_key, row.tags) == ("0A000005" + f"{7:024X}", "created")
    assert (row.body_bytes, row.missing_bytes, row.message_count) == (5, 0, 1)
    assert (row.request_bytes, row.response_bytes) == (len(request.frame), len(answer.frame))
    assert (row.queue_offset, row.offset_msg_id) == (42, "0A00000100002A9F00000000000000FF")
    assert (row.language, row.version, row.serialize_type) == ("JAVA", 401, "JSON")
    assert row.expert == []


def _rows(capture: bytes) -> list[ExchangeRecord]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(capture)
        file.flush()
        return records([file.name]).records


def test_records_and_exchanges_are_the_same_exchanges(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.pcap", pcap_of(SEGMENTS))
    rows = records([path]).records
    exchanges = decode([path]).exchanges
    assert [(row.opaque, row.status, row.request_packet, row.response_packet) for row in rows] == [
        (
            one.request.command.opaque,
            one.status,
            packet_number(one.request.packet),
            packet_number(one.response.packet),
        )
        for one in exchanges
        if one.request and one.response
    ]
    assert [row.body_bytes for row in rows] == [
        len(one.request.body) for one in exchanges if one.request
    ]


def test_findings_about_frames_are_in_their_rows() -> None:
    talk = (
        Talk(mss=500).open().say(0, Command(9999, 1, body=bytes(2000)).frame).say(1, sent(1).frame)
    )
    segments: list[Tcp] = [one for i, one in enumerate(talk.segments) if i != 5]
    (row,) = _rows(pcap_of(segments))
    assert sorted(row.expert) == ["GAP", "UNKNOWN_CODE"]
    assert row.missing_bytes == 500
