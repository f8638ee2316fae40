"""One TCP connection, as captures have it: probes, resets, half-closed ends, reuse, holes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dissectors.conversations.conversation import HALF_LINGER, LINGER
from dissectors.conversations.conversation_table import SWEEP_PACKETS
from dissectors.findings import FindingKind, Severity
from dissectors.remoting.framing.frame import encode_frame
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, route_query, send, sent
from tests.traffic.decoded import Outcome, decode_bytes, decode_segments
from tests.traffic.talk import (
    ACK,
    BROKER,
    CLIENT,
    MICROSECOND,
    PSH,
    SECOND,
    SYN,
    End,
    Talk,
    Tcp,
    merged,
    retimed,
)


def _quiet(outcome: Outcome) -> bool:
    return all(info.kind.severity < Severity.WARNING for info in outcome.findings)


def test_keep_alives_and_zero_window_probes_are_no_data() -> None:
    talk = Talk(mss=300).open().say(0, send(1).frame)
    for byte in (b"", b"\0", b"\xff"):
        talk.wait(15 * SECOND).keep_alive(1, byte).ack(0).keep_alive(0, byte).ack(1)
    half = sent(1).frame
    talk.say(1, half[:50])
    for _ in range(4):  # the window is shut: the next byte is sent again and again
        probe = Tcp(BROKER, CLIENT, talk.next[1], talk.next[0], ACK, half[50:51], talk.now)
        talk.segments.append(probe)
        talk.wait(5 * SECOND)
    talk.say(1, half[50:]).wait(15 * SECOND).keep_alive(1, b"\0").ack(0)
    talk.say(0, send(2).frame).say(1, sent(2).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 2}
    assert _quiet(outcome)
    assert outcome.stats.gaps == 0


def test_keep_alives_before_anything_else() -> None:
    """The capture starts while the connection is idle: the probe's byte is not part of a frame."""
    talk = Talk()
    for _ in range(3):
        talk.keep_alive(0, b"\0").ack(1).wait(15 * SECOND)
    talk.say(0, send(1).frame).say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 1}
    assert _quiet(outcome)


def test_a_reset_is_said_once_and_its_text_is_no_data() -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame[:30])
    talk.reset(1, b"bad request, go away").reset(1, b"bad request, go away").reset(0)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"unanswered": 1}
    assert outcome.kinds == {FindingKind.RESET: 1, FindingKind.FRAME_CUT: 1}
    assert outcome.findings[0].detail == f"by {BROKER}"


def test_a_half_closed_end_still_gets_its_answer() -> None:
    """One end has closed; the other one answers long after, and is the same conversation."""
    talk = Talk().open().say(0, send(1).frame).fin(0).ack(1)
    talk.wait(HALF_LINGER // 2)
    noise = Talk(End("10.9.9.9", 1), at=talk.now - SECOND, step=MICROSECOND).open()
    for _ in range(2 * SWEEP_PACKETS):
        noise.ack(0)
    talk.say(1, sent(1).frame).fin(1)
    outcome = decode_segments(merged(talk, noise))
    assert outcome.statuses == {"answered": 1}
    assert outcome.stats.conversations == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["both", "reset", "half"])
def test_a_closed_conversation_ends_after_a_while(how: str) -> None:
    """Its unanswered request is given out then, not at the end of the capture."""
    talk = Talk().open().say(0, send(1).frame)
    if how == "both":
        talk.close()
    elif how == "reset":
        talk.reset(1)
    else:
        talk.fin(0)
    linger = HALF_LINGER if how == "half" else LINGER
    late = Talk(End("10.9.9.9", 1), at=talk.now + linger + SECOND, step=1).open()
    for _ in range(SWEEP_PACKETS + 3000):
        late.ack(0)
    late.say(0, send(9).frame).say(1, sent(9).frame)
    first, second = decode_segments(merged(talk, late)).exchanges
    assert (first.status, second.status) == ("unanswered", "answered")
    soon = Talk(End("10.9.9.9", 1), at=talk.now + linger - SECOND, step=1).open()
    for _ in range(SWEEP_PACKETS + 3000):
        soon.ack(0)
    soon.say(0, send(9).frame).say(1, sent(9).frame)
    first, second = decode_segments(merged(talk, soon)).exchanges
    assert (first.status, second.status) == ("answered", "unanswered")


def test_the_same_ports_again_is_another_conversation() -> None:
    """A SYN with another number: what waited is not paired with what the new one says."""
    first = Talk(isn=(1000, 2000)).open().say(0, send(1, b"first").frame)
    second = Talk(isn=(900_000, 800_000), at=first.now + 1000).open()
    second.say(1, sent(1).frame).say(0, send(2).frame).say(1, sent(2).frame)
    outcome = decode_segments(first.segments + second.segments)
    assert outcome.stats.conversations == 2
    assert [(one.conversation, one.status) for one in outcome.exchanges] == [
        (0, "unanswered"),
        (1, "answered"),
        (1, "orphan"),
    ]


def test_a_syn_that_is_sent_again_is_the_same_conversation() -> None:
    talk = Talk()
    talk.add(0, SYN)
    talk.add(0, SYN)
    talk.next[0] += 1
    talk.add(1, SYN | ACK)
    talk.add(1, SYN | ACK)
    talk.next[1] += 1
    talk.say(0, send(1).frame).say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.stats.conversations == 1
    assert outcome.statuses == {"answered": 1}


def test_data_with_the_syn() -> None:
    talk = Talk()
    talk.add(0, SYN, send(1).frame)
    talk.next[0] += 1 + len(send(1).frame)
    talk.add(1, SYN | ACK)
    talk.next[1] += 1
    talk.say(1, sent(1).frame).say(0, send(2).frame).say(1, sent(2).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 2}
    assert _quiet(outcome)


def test_the_syn_is_captured_after_the_first_data() -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame)
    order = [talk.segments[index] for index in (3, 0, 4, 1, 2)]
    outcome = decode_segments(retimed(order))
    assert outcome.stats.conversations == 1
    assert outcome.statuses == {"answered": 1}


def test_data_with_the_fin() -> None:
    talk = Talk().open().say(0, send(1).frame)
    answer = sent(1).frame
    talk.add(1, PSH | ACK | 1, answer)
    talk.next[1] += len(answer) + 1
    outcome = decode_segments(talk.fin(0).segments)
    assert outcome.statuses == {"answered": 1}


def test_what_was_lost_is_counted_to_the_byte() -> None:
    talk = Talk(mss=500).open()
    for number in range(30):
        talk.say(0, send(number, bytes(1400)).frame, acked=True).say(1, sent(number).frame)
    data = [one for one in talk.segments if len(one.payload) == 500 and one.src == CLIENT]
    lost = {id(one) for one in data[4::9]}
    assert len(lost) > 3
    outcome = decode_segments([one for one in talk.segments if id(one) not in lost])
    assert outcome.stats.gaps == len(lost)
    assert outcome.stats.gap_bytes == 500 * len(lost)
    missing = sum(pdu.missing for pdu in outcome.pdus)
    assert 0 < missing <= 500 * len(lost)
    assert all(
        (pdu.missing > 0) == any(info.kind is FindingKind.GAP for info in pdu.findings or [])
        for pdu in outcome.pdus
    )


@pytest.mark.parametrize("snaplen", [54, 68, 96, 128, 200, 400])
@pytest.mark.parametrize("opened", [True, False])
def test_snap_lengths(snaplen: int, opened: bool) -> None:
    """Every exchange of which the headers were captured is found, bodies are missing."""
    talk = Talk()
    if opened:
        talk.open()
    for number in range(100, 160):
        talk.say(0, Command(34, number, body=bytes(2000)).frame)
        talk.say(1, Command(0, number, 1).frame)
    capture = pcap_of(talk.segments, snaplen=snaplen)
    outcome = decode_bytes(capture)
    header = 54 + 8 + len(Command(34, 100).header)
    if snaplen >= header:
        assert outcome.statuses == {"answered": 60}
        there = snaplen - header + snaplen - 54  # of the first packet, of the second
        assert {pdu.missing for pdu in outcome.pdus} == {0, 2000 - there}
    else:
        assert outcome.statuses.get("answered", 0) == 0
    assert outcome.kinds[FindingKind.GAP] == 0
    assert outcome.kinds[FindingKind.PACKET_TRUNCATED] <= 2
    assert all(info.kind.severity < Severity.ERROR for info in outcome.findings)


def test_many_answers_before_the_first_request_is_known() -> None:
    """Without a SYN both directions wait a little; they are given out in the order of packets."""
    talk = Talk(mss=60_000, step=MICROSECOND)
    for batch in range(8):
        numbers = range(batch * 150, batch * 150 + 150)
        talk.say(1, b"".join(sent(n - 150).frame for n in numbers))
        talk.say(0, b"".join(route_query(n).frame for n in numbers))
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 7 * 150, "orphan": 150, "unanswered": 150}


def test_only_acknowledgements_open_no_conversation() -> None:
    talk = Talk()
    for _ in range(10):
        talk.ack(0).ack(1)
    outcome = decode_segments(talk.segments)
    assert outcome.stats.conversations == 0


def test_the_first_copy_of_a_frame_counts() -> None:
    """A retransmission with other bytes changes nothing and is said where both are there."""
    talk = Talk().open().say(0, send(1, b"right").frame)
    wrong = replace(talk.segments[-1], payload=send(1, b"WRONG").frame)
    outcome = decode_segments([*talk.segments, wrong])
    assert [pdu.body for pdu in outcome.pdus] == [b"right"]
    early = replace(wrong, payload=wrong.payload[100:], seq=wrong.seq + 100)
    late = retimed([*talk.segments[:3], early, talk.segments[3]])
    outcome = decode_segments(late)
    assert [pdu.body for pdu in outcome.pdus] == [b"WRONG"]
    assert outcome.kinds[FindingKind.OVERLAP_MISMATCH] == 1


def test_a_bad_header_costs_its_frame_alone() -> None:
    bad = b"\0\0\0\x0c\0\0\0\x08{brokenX"
    talk = Talk().open().say(0, send(1).frame + bad + send(2).frame)
    talk.say(1, sent(1).frame + sent(2).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 2}
    assert outcome.kinds == {FindingKind.BAD_HEADER: 1}
    assert outcome.findings[0].offset == len(send(1).frame)
    assert (outcome.stats.frames, outcome.stats.commands) == (5, 4)


def with_header(text: bytes, body: bytes = b"") -> bytes:
    """A frame with any text as its header."""
    return encode_frame(0, text, body)


@pytest.mark.parametrize("blank", [b"\n  ", b"\t", b"\r\n", b"  \n\t"])
@pytest.mark.parametrize("mss", [1460, 1])
def test_blanks_before_the_header(blank: bytes, mss: int) -> None:
    odd = with_header(blank + b'{"code":310,"opaque":1,"version":453}', b"hello")
    talk = Talk(mss=mss).open().say(0, odd + odd.replace(b'"opaque":1', b'"opaque":2'))
    talk.say(1, sent(1).frame + sent(2).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 2}
    assert _quiet(outcome)


@pytest.mark.parametrize("blank", [b"\xef\xbb\xbf", b"/*x*/", b"\x0b", b"\0 \n"])
def test_what_else_may_stand_before_a_header(blank: bytes) -> None:
    """Where a frame is known to begin; `test_odd_header` has what releases make of it."""
    odd = with_header(blank + b'{"code":310,"opaque":1}', b"hello")
    talk = Talk().open().say(0, send(7).frame + odd).say(1, sent(7).frame + sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 2}
    assert outcome.kinds.keys() <= {FindingKind.RELEASES_DIFFER}


@pytest.mark.parametrize("cut", [1, 30])
@pytest.mark.parametrize("mss", [1460, 1])
def test_blanks_before_the_header_that_is_looked_for(cut: int, mss: int) -> None:
    """The capture begins inside a frame; the next one begins with white space."""
    odd = with_header(b'\n  {"code":310,"opaque":1}', b"hello")
    talk = Talk(mss=mss)
    talk.say(0, send(1).frame[cut:] + odd + send(3).frame)
    outcome = decode_segments(talk.segments)
    assert [pdu.opaque for pdu in outcome.pdus] == [1, 3]


def test_blanks_alone_are_no_header() -> None:
    talk = Talk().open().say(0, send(1).frame + with_header(b" " * 40) + send(2).frame)
    outcome = decode_segments(talk.segments)
    assert [pdu.opaque for pdu in outcome.pdus] == [1, 2]
    assert FindingKind.BAD_FRAME in outcome.kinds


def test_a_header_that_releases_read_differently() -> None:
    text = b'{"Code":310,"ExtFields":{"a":"G"},"Language":"DOTNET","Opaque":1,"Version":453}'
    talk = Talk().open().say(0, with_header(text)).say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 1}
    assert outcome.kinds == {FindingKind.RELEASES_DIFFER: 1}
    assert outcome.findings[0].detail == (
        "RocketMQ 5.4 and later (fastjson2) ignores Code, ExtFields, Language, Opaque, Version"
    )


def test_a_number_that_is_none_pairs_nothing() -> None:
    bad = with_header(b'{"code":0,"flag":1,"opaque":"abc"}')
    talk = Talk().open().say(0, send(0).frame).say(1, bad).say(1, sent(0).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 1}
    assert outcome.kinds == {FindingKind.BAD_HEADER: 1}


def test_numbers_of_packets_are_those_that_completed_the_frame() -> None:
    talk = Talk(mss=50).open().say(0, send(1, bytes(500)).frame)
    frames = len(send(1, bytes(500)).frame)
    outcome = decode_segments(talk.segments)
    (pdu,) = outcome.pdus
    assert pdu.packet == 3 + -(-frames // 50)
    assert pdu.ts == talk.segments[-1].ts
    assert pdu.offset == 0


def test_a_header_that_was_let_go_is_decoded_again() -> None:
    outcome = decode_segments(Talk().open().say(0, send(1).frame).segments)
    (pdu,) = outcome.pdus
    before = pdu.command
    pdu.forget_fields()
    assert pdu.command is not before
    assert pdu.command == before
