"""Packets as captures: all that a file has; a clock that is set begins another capture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import Finding, FindingKind
from dissectors.live.interface import LiveError, pcap_records
from dissectors.live.packet_ring import RingPacket
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp.formats import reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.source import BytesSource, Source, source_of
from rmqtool.ui.status import CommandError
from rmqtool.watch import feeds
from rmqtool.watch.feeds import LiveFeed, StoredFeed
from tests.expected import SAMPLES, captures

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class Interface:
    """An interface with packets at given times, and a clock that may jump before each batch."""

    def __init__(self, batches: Sequence[Any], linktype: int = 1) -> None:
        self.interface = "eth0"
        self.linktype = linktype
        self.received = self.dropped = 0
        self._batches = iter(batches)

    def fileno(self) -> int:
        return 0

    def receive(self, timeout: float) -> list[RingPacket]:
        batch = next(self._batches, None)
        if isinstance(batch, LiveError):
            raise batch
        if callable(batch):
            batch()
            return []
        return [RingPacket(ts, b"x", 1) for ts in batch or ()]

    def count(self) -> None:
        pass

    def close(self) -> None:
        pass


def fed(feed: LiveFeed, most: int) -> list[bytes]:
    """The chunks of one capture without its head, empty ones left out."""
    chunks = feed.chunks()
    next(chunks)
    return [chunk for _, chunk in zip(range(most), chunks, strict=False) if chunk]


def live_feed(interface: Interface, **settings: Any) -> LiveFeed:
    notice = settings.pop("notice", lambda _name, _why: None)
    return LiveFeed([interface], lambda _: None, notice, **settings)  # type: ignore[list-item]


def records(*times: int) -> bytes:
    return pcap_records([RingPacket(ts, b"x", 1) for ts in times])


@pytest.fixture
def offset(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [0]
    monkeypatch.setattr(feeds, "clock_offset", lambda: now[0])
    return now


@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_clock_that_is_set_begins_another_capture(offset: list[int], jump: int) -> None:
    def set_clock() -> None:
        offset[0] += jump * SECOND

    after = START + jump * SECOND
    feed = live_feed(
        Interface([[START, START + 1], set_clock, [START + 2, after + 3], [after + 4]])
    )
    assert fed(feed, 10) == [records(START, START + 1), records(START + 2)]
    assert feed.jumped == pytest.approx(jump * SECOND, abs=10)
    assert fed(feed, 3) == [records(after + 3), records(after + 4)]
    assert feed.jumped == 0


def test_a_pause_and_a_backlog_are_no_jump(offset: list[int]) -> None:
    later = START + 900 * SECOND
    feed = live_feed(Interface([[START], [later], [later - SECOND], [later + 1]]))
    assert len(fed(feed, 5)) == 4
    assert feed.jumped == 0


def test_a_clock_that_jumps_while_nothing_comes_is_believed_after_a_while(
    offset: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "BOUNDARY", -1.0)

    def set_clock() -> None:
        offset[0] += 3600 * SECOND

    feed = live_feed(Interface([[START], set_clock]))
    assert fed(feed, 5) == [records(START)]
    assert feed.jumped == 3600 * SECOND


def test_interfaces_with_other_packets_are_refused() -> None:
    with pytest.raises(CommandError, match="different link types"):
        LiveFeed(
            [Interface([]), Interface([], 101)],  # type: ignore[list-item]
            lambda _: None,
            lambda _name, _why: None,
        )


# -- files and standard input ---------------------------------------------------------------------


def decoded(source: Source, findings: list[Finding]) -> list[object]:
    """All rows of a capture, and what is wrong with it."""
    decode = Decode([source], DecodeOptions(conversations=True))
    found: list[object] = []
    for rows in decode.records():
        found += [*rows, *decode.take_conversations()]
        findings += decode.take_findings()
        if isinstance(source, StoredFeed):
            findings += source.take_findings()
    return found


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_a_file_that_is_watched_has_all_that_it_has(path: Path) -> None:
    """A pcapng also its TLS secrets and the marks of injected faults."""
    feed = StoredFeed(str(path), lambda _: None)
    of_feed: list[Finding] = []
    of_file: list[Finding] = []
    found = decoded(feed, of_feed)
    feed.end()
    expected = decoded(source_of(str(path)), of_file)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))  # connections end chunk by chunk
    assert {one.kind for one in of_feed} == {one.kind for one in of_file}


def test_secrets_are_still_known_after_a_clock_jump(tmp_path: Path) -> None:
    data = (SAMPLES / "tls13-keys-own-5x.pcapng").read_bytes()
    reader = reader_of(0, data)
    assert reader is not None
    packets, file = [*reader.receive(b""), *reader.finish()], io.BytesIO()
    writer = PcapngWriter(file, packets[0].linktype)
    writer.write_secrets(b"".join(reader.secrets))
    for back in (0, 3600):
        for one in packets:
            writer.write(one.ts - back * SECOND, one.data[one.start : one.end], one.length)
    capture = tmp_path / "twice.pcapng"
    capture.write_bytes(file.getvalue())
    feed = StoredFeed(str(capture), lambda _: None)
    before = decoded(feed, [])
    assert feed.jumped < -3000 * SECOND
    after = decoded(feed, [])
    feed.end()
    whole = decoded(BytesSource("x", data), [])
    assert len(before) == len(after) == len(whole)
    assert any(isinstance(one, ExchangeRecord) for one in whole)


def test_damage_of_a_file_that_is_watched_is_a_finding(tmp_path: Path) -> None:
    data = (SAMPLES / "send-sync-5x.pcap").read_bytes()
    capture = tmp_path / "damaged.pcap"
    capture.write_bytes(data[:5000] + b"\xff" * 2000 + data[7000:])
    findings: list[Finding] = []
    feed = StoredFeed(str(capture), lambda _: None)
    decoded(feed, findings)
    feed.end()
    assert FindingKind.CAPTURE_DAMAGED in {one.kind for one in findings}
