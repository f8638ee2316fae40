"""However captures are cut and shared out, the shares find what one process finds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.conversation_table import SWEEP_PACKETS
from dissectors.conversations.handshake import LINGER
from dissectors.shares.range_reader import RangeReader
from dissectors.shares.summary import RunLayout
from dissectors.tcp.segment import RST
from dissectors.tcp.source import CaptureError
from tests.profiles import examples
from tests.traffic.captures import Interface, PcapngWriter, pcap
from tests.traffic.network import ethernet, fragments, packets
from tests.traffic.talk import START, End, Talk, Tcp

from .shared import assert_alike, by_one, by_shares, ranges_at, records_in

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
TOGETHER = [SAMPLES / f"{name}.pcap" for name in ("push-consumer-5x", "midstream-5x", "removed-5x")]
FOREIGN = [SAMPLES / "foreign-5x.pcap", SAMPLES / "format-pcapng-5x.pcapng"]
ENCRYPTED = [SAMPLES / "grpc-tls-keys-5x.pcapng"]


@pytest.mark.parametrize("captures", [TOGETHER, FOREIGN, ENCRYPTED])
@examples(0.2)
@given(data=st.data(), shares=st.integers(1, 4))
def test_cut_anywhere(captures: list[Path], data: st.DataObject, shares: int) -> None:
    cuts = [
        data.draw(st.lists(st.sampled_from(records_in(one.read_bytes())[1:]), max_size=4))
        for one in captures
    ]
    by_hosts = captures is ENCRYPTED
    found = by_shares(ranges_at(captures, cuts), shares, by_hosts)
    assert found[0]
    assert_alike(found, by_one(captures))


@examples(0.3)
@given(cuts=st.lists(st.integers(25, 20_000), min_size=1, max_size=4))
def test_a_range_that_begins_inside_a_record_does_not_count(cuts: list[int]) -> None:
    """The task before it sees it, and reads on."""
    found = by_shares(ranges_at(TOGETHER[:1], [cuts]), 2)
    assert_alike(found, by_one(TOGETHER[:1]))


def test_a_damaged_capture(tmp_path: Path) -> None:
    data = bytearray(TOGETHER[0].read_bytes())
    places = records_in(bytes(data))
    data[places[20] + 8 : places[20] + 12] = b"\xff\xff\xff\x7f"
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(data[:-7])
    found = by_shares(ranges_at([damaged], [[places[10], places[22], places[40]]]), 3)
    assert {"CAPTURE_DAMAGED", "CAPTURE_TRUNCATED"} <= {info.kind.name for info in found[2]}
    assert_alike(found, by_one([damaged]))


def test_connections_end_when_they_end_in_one_process(tmp_path: Path) -> None:
    """Ports are used again without SYN: only the moments of sweeps tell connections apart."""
    step = LINGER // 700
    flows = [(End("10.0.0.1", 1000 + n), End("10.0.0.2", 2000)) for n in range(1000)]
    segments = [
        Tcp(*flows[n % 1000], seq=n, ack=0, flags=RST, payload=b"", ts=START + n * step)
        for n in range(SWEEP_PACKETS + 4000)
    ]
    capture = tmp_path / "resets.pcap"
    capture.write_bytes(pcap(packets(segments)))
    places = records_in(capture.read_bytes())
    found = by_shares(ranges_at([capture], [[places[9_000], places[16_500]]]), 3)
    assert len(found[1]) > len(flows)
    assert_alike(found, by_one([capture]))


def test_fragments_and_interfaces_that_come_later(tmp_path: Path) -> None:
    """Fragments wait over a cut, and belong to one share; some are never complete."""
    talk = Talk(End("10.0.0.1", 4000), mss=1000).open()
    talk.say(0, (TOGETHER[0].read_bytes()[:1400]))
    writer = PcapngWriter()
    writer.interface(Interface())
    for number, segment in enumerate(talk.segments):
        parts = fragments(segment, 64, number) if segment.payload else fragments(segment, 8, number)
        if number == 2:
            writer.interface(Interface(resolution=9))
        for part in parts[: len(parts) - (number == 4)]:
            writer.enhanced(segment.ts, ethernet(part), len(writer.interfaces) - 1)
    capture = tmp_path / "fragments.pcapng"
    capture.write_bytes(writer.bytes())
    places = records_in(capture.read_bytes())
    expected = by_one([capture])
    assert "FRAGMENT_LOST" in {info.kind.name for info in expected[2]}
    for cut in range(1, len(places)):
        assert_alike(by_shares(ranges_at([capture], [[places[cut]]]), 3), expected)


def test_secrets_that_come_late_ask_for_shares_by_hosts(tmp_path: Path) -> None:
    capture = tmp_path / "late.pcapng"
    data = ENCRYPTED[0].read_bytes()
    capture.write_bytes(data)
    reader = RangeReader(ranges_at([capture], [[]])[0], 2, by_hosts=False)
    _read(reader.pieces())
    assert RunLayout([reader.summary()]).is_split_wrongly


def test_what_is_no_capture_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but some lines of text\n")
    with pytest.raises(CaptureError, match="not a pcap"):
        _read(RangeReader(ranges_at([text], [[]])[0], 1, by_hosts=False).pieces())
    both = [text, TOGETHER[0]]
    found = by_shares(ranges_at(both, [[], []]), 2)
    assert_alike(found, by_one(both))


def _read(pieces: Iterable[object]) -> None:
    for _ in pieces:
        pass
