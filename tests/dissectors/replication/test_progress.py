"""Replication: what slaves and masters write is found, exactly."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.replication.progress import (
    AUTO_SWITCH,
    CLASSIC,
    Replication,
)
from tests.dissectors.replication.feeding import Feed, assert_less, fed
from tests.dissectors.replication_traffic import (
    MASTER,
    SLAVE,
    Traffic,
    commit_log,
    replicated,
    stored,
)

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


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
    assert not feed.findings


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
    assert not feed.findings


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
    assert [info.kind for info in feed.findings] == []
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
                ids.setdefault(one.server_address, []).append(int(one.offset_msg_id[16:], 16))
    (empty, begin), (new, went_on) = ids.items()
    size = begin[1] - begin[0]
    first, second = decode.stats.replications
    assert FindingKind.BAD_REPLICATION not in decode.stats.finding_counts
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
        assert not feed.findings


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
        assert not feed.findings


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
        assert not feed.findings


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
