"""Captures in, exchanges out: formats, compressions, several files, folders, pipes, following."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from dissectors.decode.pipeline import CaptureStats, Decode, DecodeOptions
from dissectors.findings import FindingKind
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp.capture import packet_number
from tests.traffic.captures import Interface, pcap_of, pcapng
from tests.traffic.commands import Command, send, sent
from tests.traffic.decoded import decode, records
from tests.traffic.network import LINKS, packets
from tests.traffic.talk import BROKER, CLIENT, SECOND, START, Talk, Tcp

from .captures import COUNT, MANY, SEGMENTS, assert_same, written


@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("nano", [False, True], ids=["us", "ns"])
@pytest.mark.parametrize("link", sorted(LINKS))
def test_pcap_in_every_form(tmp_path: Path, link: str, nano: bool, big: bool) -> None:
    if LINKS[link].version != 6:
        assert_same([written(tmp_path / "x.pcap", pcap_of(SEGMENTS, link, big=big, nano=nano))])


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
    path = written(tmp_path / "x.pcapng", pcapng(timed, interfaces, big=big))
    assert_same([path])
    assert [one.format for one in decode([path]).stats.captures] == ["pcapng"]


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("name", sorted(COMPRESS))
def test_compressed(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "no suffix", COMPRESS[name](pcap_of(SEGMENTS)))
    assert_same([path])
    (stats,) = decode([path]).stats.captures
    assert (stats.compression, stats.bytes) == (name, path.stat().st_size)


@pytest.mark.parametrize("name", sorted(COMPRESS))
def test_compressed_and_cut(tmp_path: Path, name: str) -> None:
    """What stands before the cut is decoded, and the cut is said."""
    packed = COMPRESS[name](MANY)
    path = written(tmp_path / "x", packed[: len(packed) * 3 // 4])
    outcome = decode([path])
    assert outcome.statuses["answered"] > 200
    assert outcome.kinds[FindingKind.CAPTURE_TRUNCATED] == 1
    detail = next(i.detail for i in outcome.findings if i.kind is FindingKind.CAPTURE_TRUNCATED)
    assert detail == f"the {name} stream ends early"


def test_the_statistics_of_a_run(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pcap", pcap_of(SEGMENTS, nano=True))
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
    path = written(tmp_path / "x.pcap", pcap_of(sorted(talk.segments, key=lambda one: one.ts)))

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
    assert (row.conversation, row.client_address, row.server_address) == (
        0,
        str(CLIENT),
        str(BROKER),
    )
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
    assert row.findings == []


def _rows(capture: bytes) -> list[ExchangeRecord]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(capture)
        file.flush()
        return records([file.name]).records


def test_records_and_exchanges_are_the_same_exchanges(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pcap", pcap_of(SEGMENTS))
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
    assert sorted(row.findings) == ["GAP", "UNKNOWN_CODE"]
    assert row.missing_bytes == 500
