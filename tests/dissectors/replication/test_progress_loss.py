"""Replication: whatever the capture does not have, every number that is found is at most the true
one, every offset is one that was there, and what is not replication is never claimed.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.remoting.framing.frame import encode_frame
from tests.dissectors.replication.feeding import Feed, assert_less, fed
from tests.dissectors.replication_traffic import (
    Said,
    Traffic,
    commit_log,
    replicated,
)
from tests.traffic.captures import pcap_of
from tests.traffic.talk import BROKER, CLIENT, Talk, Tcp


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
    assert FindingKind.BAD_REPLICATION not in decode.stats.finding_counts
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
    details = [info.detail for info in feed.findings]
    end = sum(traffic.transfers[-2])
    assert details == [f"offset 99999, expected {end}", f"report of 5 after {end}"]
    assert {info.kind for info in feed.findings} == {FindingKind.BAD_REPLICATION}


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
