"""Any bytes, and captures that were damaged: the run ends, in bounds, and gives declared types."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.conversation import Pdu
from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.command import RemotingCommand
from dissectors.rows.record import STATUSES, ExchangeRecord
from dissectors.tcp.source import CaptureError
from tests.expected import captures, spread
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import Command, frame, send, sent
from tests.traffic.declared import assert_declared, run
from tests.traffic.decoded import decode_bytes
from tests.traffic.network import TUNNELS, ethernet, fragments, ip, packets
from tests.traffic.talk import BROKER, CLIENT, MICROSECOND, PSH, SECOND, START, SYN, End, Talk, Tcp


def _mixed() -> list[Tcp]:
    talk = Talk(mss=200).open()
    for number in range(6):
        talk.say(0, send(number, bytes(150), binary=number % 2 == 0).frame, acked=True)
        talk.say(1, sent(number).frame)
    other = Talk(End("2001:db8::5", 1), End("2001:db8::1", 2)).say(0, send(1).frame).close()
    return talk.close().segments + other.segments


SEGMENTS = _mixed()
CAPTURES = [
    pcap_of(SEGMENTS),
    pcap_of(SEGMENTS, "sll2", big=True, nano=True),
    pcapng([(ts, data, 0) for ts, data in packets(SEGMENTS)], [Interface(), Interface(113)]),
    pcap([(one.ts, ethernet(TUNNELS["vxlan-in-gre"](ip(one)))) for one in SEGMENTS]),
    pcap(
        [
            (one.ts, ethernet(part))
            for number, one in enumerate(SEGMENTS)
            for part in fragments(one, 64, number)
        ]
    ),
]


@given(st.data())
def test_flipped_cut_and_inserted(data: st.DataObject) -> None:
    capture = bytearray(data.draw(st.sampled_from(CAPTURES)))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(capture) - 1))
        what = data.draw(st.sampled_from(["flip", "set", "cut", "insert", "copy", "end"]))
        if what == "flip":
            capture[at] ^= 1 << data.draw(st.integers(0, 7))
        elif what == "set":
            size = data.draw(st.sampled_from([1, 2, 4]))
            capture[at : at + size] = data.draw(st.sampled_from([b"\0", b"\xff", b"\x7f"])) * size
        elif what == "cut":
            del capture[at : at + data.draw(st.integers(1, 300))]
        elif what == "insert":
            capture[at:at] = data.draw(st.binary(max_size=100))
        elif what == "copy":
            capture[at:at] = capture[at // 2 : at // 2 + 300]
        else:
            del capture[at:]
        if not capture:
            break
    run(bytes(capture))


@given(st.binary(max_size=600), st.sampled_from(range(len(CAPTURES))), st.integers(0, 200))
def test_arbitrary_bytes_behind_a_beginning(junk: bytes, which: int, kept: int) -> None:
    run(CAPTURES[which][:kept] + junk)


@given(st.binary(max_size=3000), st.booleans(), st.integers(1, 700))
def test_arbitrary_payload(payload: bytes, opened: bool, mss: int) -> None:
    """What is sent, in both directions, on a port that is said to be RocketMQ and on another."""
    talk = Talk(mss=mss)
    if opened:
        talk.open()
    talk.say(0, payload).say(1, payload[::-1]).say(0, send(1).frame)
    run(pcap_of(talk.segments))
    run(pcap_of(talk.segments), frozenset((BROKER.port,)))


@pytest.mark.parametrize("path", spread(captures()))
def test_damaged_samples(path: Path) -> None:
    """A few damages of each, the same in every run."""
    rng = random.Random(path.name)
    capture = path.read_bytes()[:100_000]
    for _ in range(4):
        damaged = bytearray(capture)
        for _ in range(30):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        run(bytes(damaged))


def test_the_declared_types(tmp_path: Path) -> None:
    """`assert_declared` sees every kind of value that a run gives."""
    outcome = decode_bytes(CAPTURES[0])
    assert {type(one) for one in outcome.exchanges} == {Exchange}
    assert {type(pdu) for pdu in outcome.pdus} == {Pdu}
    assert {type(pdu.command) for pdu in outcome.pdus} == {RemotingCommand}
    assert_declared(outcome.exchanges, outcome.findings)
    row = ExchangeRecord(*([None] * len(ExchangeRecord.__struct_fields__)))
    with pytest.raises(AssertionError):
        assert_declared([row], [])
    assert set(STATUSES) == {"answered", "unanswered", "oneway", "orphan"}
    assert isinstance(Finding(FindingKind.GAP, "", 0, 0, 0, 0), tuple)
    path = tmp_path / "x"
    path.write_bytes(b"no capture")
    with pytest.raises(CaptureError):
        list(Decode([str(path)], DecodeOptions()).records())


# -- attacks ------------------------------------------------------------------------------------


def _timed(capture: bytes, seconds: float = 30) -> None:
    began = time.process_time()
    run(capture)
    assert time.process_time() - began < seconds


def _single_bytes(data: bytes, order: list[int], isn: int = 1000) -> bytes:
    """A stream of which every byte has a packet of its own."""
    segments = (
        Tcp(CLIENT, BROKER, isn + 1 + at, 1, PSH | 16, data[at : at + 1], START + n * MICROSECOND)
        for n, at in enumerate(order)
    )
    return pcap([(one.ts, ip(one)) for one in segments], 101)


BIG_HEADER = frame(Command(1, 1, ext={"a": "x" * 20_000}).header) + send(2).frame
ORDERS = {
    "in order": list(range(20_000)),
    "backwards": list(range(19_999, -1, -1)),
    "shuffled": random.Random(3).sample(range(20_000), 20_000),
    "every other": list(range(0, 20_000, 2)),
    "again and again": [at for at in range(2000) for _ in range(10)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ORDERS))
def test_single_bytes_of_a_large_header(name: str) -> None:
    _timed(_single_bytes(BIG_HEADER, ORDERS[name]))


PAYLOADS = {
    "false prefixes": struct.pack(">II", 60_000, 50_000) + b"{",
    "nested objects": b'{"code":',
    "deep header": frame(b'{"code":1,"opaque":1,"x":' + b"[" * 30_000),
    "deep ext fields": frame(b'{"code":1,"opaque":1,"extFields":{"a":' + b'{"a":' * 9_000),
    "bad headers": frame(b"{'code':" + b"'" * 3000),
    "many ext fields": Command(1, 1, ext={f"k{n}": "" for n in range(5000)}).frame,
    "many binary ext fields": Command(
        1, 1, ext={f"{n}": "" for n in range(9000)}, binary=True
    ).frame,
    "small frames": Command(1, 1).frame,
    "oneway frames": Command(1, 1, 2, binary=True).frame,
    "responses": Command(1, 1, 1, binary=True).frame,
    "zeros": bytes(1000),
    "newlines": b"\r\n\r\n",
    "HTTP": b"GET " + b"a" * 60,
    "heartbeats": Command(34, 1, body=b"[" * 5000).frame,
    "batches": Command(320, 1, body=b"\0\0\0\x16" + bytes(18) * 300).frame,
    "messages": Command(0, 1, 1, ext={"nextBeginOffset": "1"}, body=bytes(8) * 900).frame,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PAYLOADS))
@pytest.mark.parametrize("opened", [True, False])
def test_hostile_payload(name: str, opened: bool) -> None:
    unit = PAYLOADS[name]
    talk = Talk(mss=1448, step=MICROSECOND)
    if opened:
        talk.open()
    data = (unit * (400_000 // len(unit) + 1))[:400_000]
    talk.say(0, data[:200_000]).say(1, send(1).frame + data[200_000:])
    _timed(pcap_of(talk.segments))


def _many_conversations() -> Iterator[Tcp]:
    for number in range(20_000):
        src = End(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1000)
        yield Tcp(src, BROKER, 1, 1, PSH | 16, BIG_HEADER[:100], START + number * MICROSECOND)


@pytest.mark.slow
def test_many_conversations() -> None:
    _timed(pcap([(one.ts, ip(one)) for one in _many_conversations()], 101))


def _new_connections(count: int) -> Iterator[Tcp]:
    """Many are open and one waits for a hole; then one pair of ports is opened ever anew."""
    yield from (one for one in _many_conversations() if one.ts < START + 12_000 * MICROSECOND)
    talk = Talk(End("10.200.0.1", 1), at=START + SECOND).open()
    yield talk.segments[0]
    yield from talk.say(0, b"lost").say(0, send(1).frame).segments[-1:]
    for number in range(count):
        yield Tcp(CLIENT, BROKER, number * 1000, 1, SYN, b"", START + 2 * SECOND + number)


@pytest.mark.slow
def test_new_connections_while_many_are_open() -> None:
    _timed(pcap([(one.ts, ip(one)) for one in _new_connections(12_000)], 101))


@pytest.mark.slow
def test_memory_of_a_large_hostile_capture() -> None:
    """Small segments behind ever new holes, in several conversations: nothing piles up."""
    segments = []
    for number in range(12_000):
        src = End("10.0.0.5", 1000 + number % 7)
        at = number // 7 * 40 + 1000
        payload = BIG_HEADER[:20]
        segments.append(Tcp(src, BROKER, at, 1, PSH | 16, payload, START + number * MICROSECOND))
    capture = pcap([(one.ts, ip(one)) for one in segments], 101)
    tracemalloc.start()
    run(capture)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 1024 * 1024


@pytest.mark.slow
def test_findings_do_not_pile_up() -> None:
    """A finding for every packet, and nobody who takes them."""
    timed = [(START + n, b"\x45" + bytes(30)) for n in range(130_000)]
    capture = pcap(timed, 101)
    tracemalloc.start()
    run(capture, take=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 128 * 1024 * 1024


def test_a_row_can_be_written_whatever_was_sent() -> None:
    """Texts that are not text: lone surrogates, bad UTF-8, control characters, very long."""
    headers = [
        b'{"code":310,"opaque":1,"extFields":{"b":"\\ud800","a":"\\udfff\\u0000"},"remark":"\\ud83d"}',
        b'{"code":310,"opaque":2,"extFields":{"b":"\xff\xfe"},"language":"\xc3\x28","remark":5}',
        Command(310, 3, ext={"b": "\x1b[2J\x00\x07", "i": "\x01\x02" * 999}, binary=True).header,
    ]
    talk = Talk().open()
    for number, header in enumerate(headers):
        talk.say(0, frame(header, kind=number // 2))
    rows = run(pcap_of(talk.segments))
    assert len(rows) == 3
    for row in rows:
        assert msgspec.json.decode(msgspec.json.encode(row), type=ExchangeRecord) == row
