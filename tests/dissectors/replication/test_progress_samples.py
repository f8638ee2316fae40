"""Replication in recorded traffic: against arithmetic on the bytes of both streams."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissectors.decode.decoded_log import read_manifest
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import FindingKind
from dissectors.processes.choice import decode_of
from dissectors.replication.progress import (
    CLASSIC,
)
from tests.dissectors.replication.feeding import Feed
from tests.dissectors.replication_traffic import (
    MASTER,
    SLAVE,
)
from tests.rmqtool.command import rmqtool
from tests.streams import Stream, segments_of, streams_of

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HA_SAMPLES = sorted(SAMPLES.glob("*ha-replication-*.pcap"))
OTHER_SAMPLES = sorted(SAMPLES.glob("p*-5x.pcap")) + sorted(SAMPLES.glob("foreign-*.pcap"))


def conversations_of(path: Path) -> Iterator[tuple[Stream, Stream]]:
    streams = {(one.source, one.destination): one for one in streams_of(path)}
    for (source, destination), one in streams.items():
        if source < destination:
            yield one, streams.get((destination, source), Stream(destination, source, b"", False))


@pytest.mark.parametrize("path", OTHER_SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("started", [False, True])
def test_real_traffic_of_others_is_never_claimed(path: Path, started: bool) -> None:
    for pair in conversations_of(path):
        feed = Feed(started=started)
        for at in range(0 if started else 777, 65536, 1448):
            for side in (SLAVE, MASTER):
                if part := pair[side].data[at : at + 1448]:
                    feed.data(side, part)
        assert feed.found() is None, pair[0][:2]


def raw(path: Path) -> tuple[Stream, Stream]:
    """The streams of the HA port: slave's, master's."""
    streams = streams_of(path)
    (slave,) = (one for one in streams if one.destination.endswith(":10912"))
    (master,) = (one for one in streams if one.source.endswith(":10912"))
    assert slave.whole
    assert master.whole
    return slave, master


@pytest.mark.parametrize("path", HA_SAMPLES, ids=lambda path: path.stem)
def test_samples(path: Path) -> None:
    """Against plain arithmetic on the bytes of both streams."""
    slave, master = raw(path)
    reports = [one for (one,) in struct.iter_unpack(">q", slave.data)]
    headers: list[tuple[int, int]] = []
    at = 0
    while at < len(master.data):
        headers.append(struct.unpack_from(">qi", master.data, at))
        at += 12 + headers[-1][1]
    assert at == len(master.data)
    sizes = [size for _, size in headers if size]
    decode = Decode([str(path)])
    assert sum(map(len, decode.records())) > 0
    (found,) = decode.stats.replications
    assert (found.kind, found.slave, found.master) == (CLASSIC, slave.source, master.source)
    assert (found.transfers, found.largest_transfer) == (len(sizes), max(sizes))
    assert found.bytes == len(master.data) - 12 * len(headers) == sum(sizes)
    assert found.heartbeats == len(headers) - len(sizes)
    assert found.first_offset == next(offset for offset, size in headers if size)
    assert found.last_offset == sum(headers[-1])
    assert (found.reports, found.acknowledged) == (len(reports), reports[-1])
    assert (found.missing, found.gaps, found.lag_bytes) == (0, 0, 0)
    assert FindingKind.BAD_REPLICATION not in decode.stats.finding_counts
    assert decode.stats.replication_conversations == 1
    assert decode.stats.not_decoded == {}
    times = [one.ts for one in segments_of(path) if _is_between(one.key, 10912) and one.flags & 8]
    assert min(times) == found.first_time
    assert max(times) >= found.last_time


def _is_between(key: bytes, port: int) -> bool:
    return port in struct.unpack(">HH", key[8:12])


@pytest.mark.parametrize("path", HA_SAMPLES, ids=lambda path: path.stem)
@pytest.mark.slow
def test_several_processes_find_the_same(path: Path) -> None:
    one = Decode([str(path)])
    two = decode_of([str(path)], DecodeOptions(), 2)
    assert list(map(len, one.records())) is not None
    for _ in two.records():
        pass
    assert one.stats.replications == two.stats.replications
    assert one.stats.replication_conversations == two.stats.replication_conversations
    assert one.stats.rocketmq_conversations == two.stats.rocketmq_conversations


def test_summary_and_manifest_list_it(tmp_path: Path) -> None:
    path = SAMPLES / "ha-replication-4x.pcap"
    _, master = raw(path)
    text = rmqtool("decode", "pcap", path, "--summary")
    assert text.status == 0
    assert ", 1 replication" in text.out
    start = text.out.index("\nReplication\n")
    section = text.out[start : text.out.index("\n\n", start)]
    assert master.source in section
    done = rmqtool("decode", "pcap", path, "--format", "parquet", "-o", tmp_path / "log")
    assert done.status == 0
    manifest = read_manifest(tmp_path / "log")
    assert manifest.replication_conversations == 1
    assert [one.master for one in manifest.replications] == [master.source]
