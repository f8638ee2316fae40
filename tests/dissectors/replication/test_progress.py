"""Replication: found in what slaves and masters write, and in nothing else.

The relation of loss: whatever the capture does not have, every number that is found is at most
the true one, every offset is one that was there, and nothing is said to be wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.decoded_log import read_manifest
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.shards import decode_of
from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.remoting.framing.layout import encode_frame
from dissectors.replication.progress import (
    AUTO_SWITCH,
    CLASSIC,
    Reading,
    Replication,
    ReplicationFinder,
)
from tests.dissectors.replication_traffic import (
    MASTER,
    SLAVE,
    Said,
    Traffic,
    commit_log,
    replicated,
    stored,
)
from tests.rmqtool.command import rmqtool
from tests.streams import Stream, segments_of, streams_of
from tests.traffic.captures import pcap_of
from tests.traffic.talk import BROKER, CLIENT, Talk, Tcp

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HA_SAMPLES = sorted(SAMPLES.glob("*ha-replication-*.pcap"))
OTHER_SAMPLES = sorted(SAMPLES.glob("p*-5x.pcap")) + sorted(SAMPLES.glob("foreign-*.pcap"))
MICROSECOND = 1000


class Feed:
    """Both directions of a conversation, given to the finder and then to its reading."""

    def __init__(self, started: bool = True, swapped: bool = False) -> None:
        self.finder = ReplicationFinder(7)
        self.reading: Reading | None = None
        self.experts: list[ExpertInfo] = []
        self.offsets = [0, 0]
        self.packet = 0
        self._started = started
        self._swapped = swapped

    def data(self, side: int, data: bytes) -> None:
        self.packet += 1
        first = (side == SLAVE) != self._swapped
        where = (first, data, self.offsets[side], self.packet, self.packet * MICROSECOND)
        self.offsets[side] += len(data)
        if self.reading is None:
            self.reading = self.finder.receive(*where, self._started)
            if self.reading is not None:
                self.reading.experts = self.experts
        else:
            self.reading.receive(*where, False)

    def gap(self, side: int, length: int) -> None:
        target = self.reading or self.finder
        target.receive_gap((side == SLAVE) != self._swapped, length)
        self.offsets[side] += length

    def found(self) -> Replication | None:
        if self.reading is None:
            return None
        ends = ("m:1", "s:1") if self._swapped else ("s:1", "m:1")
        return self.reading.value(*ends)


def fed(said: list[Said], size: int = 1 << 30, *, swapped: bool = False) -> Feed:
    feed = Feed(swapped=swapped)
    for side, data in said:
        for at in range(0, len(data), size):
            feed.data(side, data[at : at + size])
    return feed


def is_true(found: Replication, traffic: Traffic) -> None:
    """Everything is found, exactly."""
    sizes = [size for _, size in traffic.transfers]
    assert found.kind == (AUTO_SWITCH if traffic.auto_switch else CLASSIC)
    assert (found.master, found.slave, found.conversation) == ("m:1", "s:1", 7)
    assert (found.transfers, found.largest_transfer) == (len(sizes), max(sizes))
    assert (found.bytes, found.missing, found.gaps) == (sum(sizes), 0, 0)
    assert found.first_offset == traffic.transfers[0][0]
    assert found.last_offset == sum(traffic.transfers[-1])
    assert (found.heartbeats, found.reports) == (traffic.heartbeats, len(traffic.reports))
    assert found.acknowledged == traffic.reports[-1]


@pytest.mark.parametrize("auto_switch", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("size", [1 << 30, 1448, 13, 2, 1])
def test_any_size_of_pieces(auto_switch: bool, swapped: bool, size: int) -> None:
    traffic = replicated(auto_switch, 5000, 40, 700, beats=(1, 2, 3))
    feed = fed(traffic.said, size, swapped=swapped)
    found = feed.found()
    assert found is not None
    is_true(found, traffic)
    assert found.lag_bytes == 0
    assert found.largest_lag_bytes == 700
    assert found.lags == len(traffic.transfers)
    assert not feed.experts


@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    auto_switch = data.draw(st.booleans())
    beats = tuple(data.draw(st.lists(st.integers(0, 9), max_size=4)))
    start = data.draw(st.sampled_from([0, 91, 1 << 30, (1 << 40) + 77]))
    traffic = replicated(auto_switch, start, 12, data.draw(st.integers(60, 900)), beats)
    feed = Feed(swapped=data.draw(st.booleans()))
    for side, said in traffic.said:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=4)))
        for low, high in zip([0, *cuts], [*cuts, len(said)], strict=True):
            feed.data(side, said[low:high])
    found = feed.found()
    assert found is not None
    is_true(found, traffic)
    assert not feed.experts


def test_a_slave_that_has_nothing_is_not_behind_by_the_files_before() -> None:
    traffic = Traffic()
    traffic.report(0)
    traffic.transfer(1 << 30, commit_log(1 << 30, 3))
    size = traffic.transfers[0][1]
    found = fed(traffic.said).found()
    assert found is not None
    assert (found.acknowledged, found.lag_bytes, found.lags) == (0, size, 0)
    traffic.report((1 << 30) + size)
    found = fed(traffic.said).found()
    assert found is not None
    assert (found.lag_bytes, found.largest_lag_bytes, found.lags) == (0, size, 1)


def test_the_lag_is_from_the_last_byte_to_the_report_that_covers_it() -> None:
    traffic = replicated(False, 0, 1, 1000)
    first = sum(traffic.transfers[-1])
    traffic.transfer(first, stored(first))
    second = sum(traffic.transfers[-1])
    traffic.transfer(second, stored(second))
    traffic.report(second)  # packet 9; the transfers ended in 3, 6 and 8
    found = fed(traffic.said).found()
    assert found is not None
    assert (found.lags, found.lag_p50_us, found.largest_lag_us) == (2, 1, 3)
    assert found.lag_bytes == len(stored(second))


def test_auto_switch_says_epochs_confirm_offset_and_slave() -> None:
    traffic = Traffic(auto_switch=True, epoch=5, epoch_start=300)
    traffic.handshake([(2, 0), (4, 100), (5, 300)], 900, broker=3)
    feed = fed(traffic.said)
    found = feed.found()
    assert found is not None  # the handshake is enough
    assert (found.kind, found.slave_id, found.state) == (AUTO_SWITCH, "3", "HANDSHAKE")
    assert (found.first_offset, found.lag_bytes, found.confirm_offset) == (None, None, None)
    traffic.report(300)
    traffic.transfer(300, commit_log(300, 2), confirm=250)
    found = fed(traffic.said).found()
    assert found is not None
    assert found.epochs == ((2, 0), (4, 100), (5, 300))
    assert (found.confirm_offset, found.state) == (250, "TRANSFER")
    assert found.lag_bytes == found.bytes


def test_a_master_with_an_empty_log_beats_at_minus_one() -> None:
    traffic = Traffic(auto_switch=True, epoch=1, epoch_start=0)
    traffic.handshake([(1, 0)], 0)
    for _ in range(3):
        traffic.report(0)
        traffic.transfer(-1, b"")
    log = commit_log(0, 4)
    traffic.transfer(0, log, len(log))
    traffic.report(len(log))
    feed = fed(traffic.said)
    found = feed.found()
    assert found is not None
    assert [info.kind for info in feed.experts] == []
    assert (found.heartbeats, found.transfers, found.bytes, found.missing) == (3, 1, len(log), 0)
    assert (found.first_offset, found.last_offset) == (0, len(log))
    assert found.epochs == ((1, 0),)


def test_an_empty_master_that_was_recorded_and_the_one_that_took_its_place() -> None:
    """Where the log ends is told by the brokers themselves: by the ids in their answers."""
    decode = Decode([str(SAMPLES / "master-switched-5x.pcap")])
    ids: dict[str, list[int]] = {}
    for records in decode.records():
        for one in records:
            if one.offset_msg_id:
                ids.setdefault(one.responder, []).append(int(one.offset_msg_id[16:], 16))
    (empty, begin), (new, went_on) = ids.items()
    size = begin[1] - begin[0]
    first, second = decode.stats.replications
    assert ExpertKind.BAD_REPLICATION not in decode.stats.expert_counts
    assert (first.kind, second.kind) == (AUTO_SWITCH, AUTO_SWITCH)
    assert [ha.master.split(":")[0] for ha in (first, second)] == [
        broker.split(":")[0] for broker in (empty, new)
    ]
    assert (first.first_offset, first.last_offset, first.acknowledged) == (
        begin[0],
        begin[-1] + size,
        begin[-1] + size,
    )
    assert first.heartbeats == 3, "one of them at -1, before there was a message"
    assert (second.first_offset, second.last_offset) == (went_on[0], went_on[-1] + size)
    assert second.epochs == ((1, 0), (2, went_on[0]))
    assert (first.confirm_offset, second.confirm_offset) == (went_on[0], went_on[-1] + size)
    assert (first.missing, first.gaps, second.missing, second.gaps) == (0, 0, 0, 0)


def test_auto_switch_of_5_0_0() -> None:
    for size in (1 << 30, 1):
        traffic = Traffic(auto_switch=True, epoch=5, epoch_start=300)
        traffic.old_handshake([(2, 0), (5, 300)], 900, b"10.0.0.2:10911")
        traffic.report(300)
        traffic.transfer(300, commit_log(300, 2))
        feed = fed(traffic.said, size)
        found = feed.found()
        assert found is not None
        is_true(found, traffic)
        assert found.slave_id == "10.0.0.2:10911"
        assert found.epochs == ((2, 0), (5, 300))
        assert not feed.experts


@pytest.mark.parametrize("auto_switch", [False, True])
def test_an_idle_pair_is_recognised_by_what_agrees(auto_switch: bool) -> None:
    traffic = Traffic(auto_switch)
    for _ in range(3):
        traffic.report(4711)
        traffic.transfer(4711, b"", 4711)
    feed = Feed(started=False)
    for side, said in traffic.said:
        feed.data(side, said)
    found = feed.found()
    assert found is not None
    assert (found.transfers, found.first_offset, found.acknowledged) == (0, None, 4711)
    assert (found.lag_bytes, found.reports) == (0, 3)


@pytest.mark.parametrize("auto_switch", [False, True])
def test_nothing_agrees_at_zero(auto_switch: bool) -> None:
    traffic = Traffic(auto_switch)
    for _ in range(50):
        traffic.report(0)
        traffic.transfer(0, b"")
    assert fed(traffic.said).found() is None


@pytest.mark.parametrize("auto_switch", [False, True])
@pytest.mark.parametrize("batch", [130, 800, 32768])
def test_midstream(auto_switch: bool, batch: int) -> None:
    """From any write on: found, and only what was there."""
    traffic = replicated(auto_switch, 1 << 20, 400, batch)
    for skip in range(2, min(len(traffic.said) - 12, 40)):
        feed = Feed(started=False)
        for side, said in traffic.said[skip:]:
            for at in range(0, len(said), 1448):
                feed.data(side, said[at : at + 1448])
        found = feed.found()
        if found is None:
            assert batch == 32768
            continue
        assert_less(found, traffic)
        assert not feed.experts


@pytest.mark.parametrize("auto_switch", [False, True])
@pytest.mark.parametrize("start", [0, 5000, 1 << 40])
def test_midstream_where_headers_begin_no_packet(auto_switch: bool, start: int) -> None:
    """A slave catches up: large transfers, cut anywhere by TCP and by the batch."""
    traffic = replicated(auto_switch, start, 2000, 32768)
    master = b"".join(said for side, said in traffic.said if side == MASTER)
    for begin in (333, 20_000, 40_001):
        feed = Feed(started=False)
        for at in range(begin, len(master), 1448):
            feed.data(MASTER, master[at : at + 1448])
        found = feed.found()
        assert found is not None
        assert_less(found, traffic)
        assert found.transfers >= len(traffic.transfers) - 3
        assert not feed.experts


def assert_less(found: Replication, traffic: Traffic) -> None:
    """The relation of loss."""
    sizes = [size for _, size in traffic.transfers]
    assert found.kind == (AUTO_SWITCH if traffic.auto_switch else CLASSIC)
    assert found.transfers <= len(sizes)
    assert found.largest_transfer in {0, *sizes}
    assert found.heartbeats <= traffic.heartbeats
    assert found.reports <= len(traffic.reports)
    assert found.acknowledged in {None, *traffic.reports}
    assert found.bytes <= sum(sizes)
    if found.first_offset is not None:
        assert found.last_offset is not None
        assert found.first_offset in {offset for offset, _ in traffic.transfers}
        assert found.last_offset <= sum(traffic.transfers[-1])
        assert found.bytes + found.missing == found.last_offset - found.first_offset
    else:
        assert (found.bytes, found.transfers) == (0, 0)


def talk_of(traffic: Traffic) -> Talk:
    talk = Talk().open()
    for side, said in traffic.said:
        talk.say(side, said, acked=True)
    return talk.close()


def decoded(segments: list[Tcp], tmp: Path) -> Decode:
    path = tmp / "a.pcap"
    path.write_bytes(pcap_of(segments))
    decode = Decode([str(path)])
    assert not [one for batch in decode.records() for one in batch]
    return decode


@given(data=st.data())
def test_loss_removes_and_never_alters(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    auto_switch = data.draw(st.booleans())
    traffic = replicated(auto_switch, 1 << 33, 60, data.draw(st.integers(80, 3000)), (2, 5))
    segments = talk_of(traffic).segments
    lost = data.draw(st.sets(st.integers(0, len(segments) - 1), max_size=30))
    left = [one for number, one in enumerate(segments) if number not in lost]
    decode = decoded(left, tmp_path_factory.mktemp("loss"))
    assert ExpertKind.BAD_REPLICATION not in decode.stats.expert_counts
    for found in decode.stats.replications:
        assert_less(found, traffic)
        assert (found.slave, found.master) == (str(CLIENT), str(BROKER))
        assert (found.largest_lag_us or 0) <= 100 * len(segments)


def test_a_hole_in_the_data_of_a_transfer_loses_no_boundary() -> None:
    traffic = replicated(False, 0, 60, 3000)
    feed = Feed()
    for number, (side, said) in enumerate(traffic.said):
        if number == 5:
            feed.data(side, said[:100])
            feed.gap(side, 1000)
            feed.data(side, said[1100:])
        else:
            feed.data(side, said)
    found = feed.found()
    assert found is not None
    assert (found.missing, found.gaps, found.transfers) == (1000, 1, len(traffic.transfers))
    assert found.bytes + 1000 == sum(size for _, size in traffic.transfers)
    assert found.reports == len(traffic.reports)


def test_a_transfer_that_does_not_follow_is_said() -> None:
    traffic = replicated(False, 0, 5, 200)
    traffic.transfer(99_999, commit_log(99_999, 1))
    traffic.report(5)
    feed = fed(traffic.said)
    details = [info.detail for info in feed.experts]
    end = sum(traffic.transfers[-2])
    assert details == [f"offset 99999, expected {end}", f"report of 5 after {end}"]
    assert {info.kind for info in feed.experts} == {ExpertKind.BAD_REPLICATION}


@given(
    st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=200)), max_size=30),
    st.booleans(),
)
def test_random_bytes_are_never_claimed(said: list[Said], started: bool) -> None:
    feed = Feed(started=started)
    for side, data in said:
        feed.data(side, data)
        if len(data) % 7 == 3:
            feed.gap(side, len(data))
    assert feed.found() is None


words = st.one_of(
    st.sampled_from([0, 1, 2, 12, 91, 0xFFFFFFFF, 0x7B22636F]), st.integers(0, 0xFFFFFFFF)
).map(lambda number: struct.pack(">I", number))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 1), st.lists(words, max_size=12).map(b"".join)), max_size=40),
    st.booleans(),
)
def test_small_numbers_are_never_claimed(said: list[Said], started: bool) -> None:
    feed = Feed(started=started)
    for side, data in said:
        feed.data(side, data)
    assert feed.found() is None


@given(st.data(), st.booleans())
def test_frames_are_never_claimed(data: st.DataObject, started: bool) -> None:
    feed = Feed(started=started)
    log = commit_log(data.draw(st.integers(0, 1 << 40)), 20)
    for number in range(8):
        header = b'{"code":11,"flag":%d,"opaque":%d}' % (number % 2, number)
        frame = encode_frame(0, header, log if number % 2 else b"")
        cut = data.draw(st.integers(0, len(frame)))
        feed.data(number % 2, frame[:cut])
        feed.data(number % 2, frame[cut:])
    assert feed.found() is None


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
    assert ExpertKind.BAD_REPLICATION not in decode.stats.expert_counts
    assert decode.stats.replication_conversations == 1
    assert decode.stats.not_decoded == {}
    times = [one.ts for one in segments_of(path) if _is_between(one.key, 10912) and one.flags & 8]
    assert min(times) == found.first_time
    assert max(times) >= found.last_time


def _is_between(key: bytes, port: int) -> bool:
    return port in struct.unpack(">HH", key[8:12])


@pytest.mark.parametrize("path", HA_SAMPLES, ids=lambda path: path.stem)
def test_several_processes_find_the_same(path: Path) -> None:
    one = Decode([str(path)])
    two = decode_of([str(path)], DecodeOptions(), 2)
    assert list(map(len, one.records())) is not None
    for _ in two.records():
        pass
    assert one.stats.replications == two.stats.replications
    assert one.stats.replication_conversations == two.stats.replication_conversations
    assert one.stats.rocketmq_conversations == two.stats.rocketmq_conversations


def test_what_is_held_does_not_grow() -> None:
    feed = Feed()
    traffic = Traffic()
    traffic.report(0)
    at = 0
    log = commit_log(0, 1)
    for _ in range(500):
        traffic.transfer(at, log if at == 0 else b"\0" * len(log))
        at += len(log)
    for side, said in traffic.said:
        feed.data(side, said)
    found = feed.found()
    assert found is not None
    assert (found.transfers, found.lag_bytes) == (500, at)
    feed.data(SLAVE, struct.pack(">q", at))
    found = feed.found()
    assert found is not None
    assert (found.lags, found.lag_bytes, found.largest_lag_bytes) == (64, 0, at)


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
