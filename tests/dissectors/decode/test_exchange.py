"""Pairing: every status, both ends as requesters, early responses, numbers used again, limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.decode.command_order import MOST_HELD, CommandOrder
from dissectors.decode.exchange import EARLY_TOLERANCE, names_of
from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from tests.traffic.captures import pcap_of
from tests.traffic.commands import (
    GET_ROUTEINFO,
    NOTIFY_CONSUMER_IDS_CHANGED,
    POP_MESSAGE,
    PULL_MESSAGE,
    UPDATE_CONSUMER_OFFSET,
    Command,
    route_query,
    send,
    sent,
)
from tests.traffic.decoded import command_of, decode_segments
from tests.traffic.talk import BROKER, CLIENT, MICROSECOND, MILLISECOND, SECOND, End, Talk, retimed

from .exchanges import opaques


def test_a_request_and_its_response() -> None:
    talk = Talk().open().say(0, send(7).frame).wait(3 * MILLISECOND).say(1, sent(7).frame)
    (one,) = decode_segments(talk.segments).exchanges
    assert (one.status, one.client_address, one.server_address) == (
        "answered",
        str(CLIENT),
        str(BROKER),
    )
    assert one.latency == 3 * MILLISECOND + talk.step
    assert one.request is not None
    assert one.response is not None
    assert command_of(one.request) == send(7)
    assert command_of(one.response) == sent(7)
    assert names_of(one) == ("SEND_MESSAGE_V2", "SUCCESS")
    assert (one.request.packet, one.response.packet) == (4, 5)
    assert (one.request.frame_bytes, one.response.frame_bytes) == (
        len(send(7).frame),
        len(sent(7).frame),
    )
    assert (one.request.src, one.request.dst) == (str(CLIENT), str(BROKER))
    assert (one.response.src, one.response.dst) == (str(BROKER), str(CLIENT))
    assert (one.conversation, one.request.findings, one.response.findings) == (0, None, None)


def test_the_same_number_in_both_directions() -> None:
    """Brokers count for themselves: a check of theirs and a send may have the same opaque."""
    check = Command(39, 5, ext={"msgId": "x"})
    notify = Command(NOTIFY_CONSUMER_IDS_CHANGED, 6, 2)
    talk = Talk().open()
    talk.say(0, send(5).frame).say(1, check.frame).say(0, check.answer(0).frame)
    talk.say(1, notify.frame).say(1, sent(5).frame).say(0, send(6).frame).say(1, sent(6).frame)
    found = decode_segments(talk.segments).exchanges
    assert [(one.client_address, one.status, names_of(one)[0]) for one in found] == [
        (str(BROKER), "answered", "CHECK_TRANSACTION_STATE"),
        (str(BROKER), "oneway", "NOTIFY_CONSUMER_IDS_CHANGED"),
        (str(CLIENT), "answered", "SEND_MESSAGE_V2"),
        (str(CLIENT), "answered", "SEND_MESSAGE_V2"),
    ]


def test_oneway_is_given_out_at_once_and_is_never_paired() -> None:
    commit = Command(UPDATE_CONSUMER_OFFSET, 3, 2, ext={"topic": "Orders"})
    talk = Talk().open().say(0, commit.frame).say(1, sent(3).frame).say(0, send(3).frame)
    talk.say(1, sent(3).frame)
    assert sorted(status for status, _, _ in opaques(talk.segments)) == [
        "answered",
        "oneway",
        "orphan",
    ]
    assert opaques(talk.segments)[0] == ("oneway", 3, None)


def test_a_oneway_flag_on_a_response_is_a_response() -> None:
    answer = replace(sent(3), flag=3)
    talk = Talk().open().say(0, send(3).frame).say(1, answer.frame)
    assert opaques(talk.segments) == [("answered", 3, 3)]


def test_answers_in_any_order() -> None:
    talk = Talk().open()
    for number in range(6):
        talk.say(0, Command(PULL_MESSAGE, number).frame)
    for number in (3, 0, 5, 1):
        talk.say(1, sent(number).frame)
    talk.wait(20 * SECOND).say(1, Command(19, 4, 1).frame)
    assert opaques(talk.segments) == [
        *(("answered", number, number) for number in (3, 0, 5, 1, 4)),
        ("unanswered", 2, None),
    ]
    latencies = [one.latency for one in decode_segments(talk.segments).exchanges]
    assert latencies[4] is not None
    assert latencies[4] > 20 * SECOND


def test_orphans_and_unanswered() -> None:
    talk = Talk().open().say(1, sent(1).frame).say(0, send(2).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"orphan": 1, "unanswered": 1}
    orphan = next(one for one in outcome.exchanges if one.status == "orphan")
    assert (orphan.client_address, orphan.server_address) == (str(CLIENT), str(BROKER))
    assert orphan.latency is None
    assert names_of(orphan) == (None, "SUCCESS")


def test_a_response_before_its_request_in_the_capture() -> None:
    """Captured a little out of order: the pair is found, its latency may be a little negative."""
    talk = Talk(step=10 * MICROSECOND).open().say(0, send(1).frame).say(1, sent(1).frame)
    swapped = [*talk.segments[:3], talk.segments[4], talk.segments[3]]
    (one,) = decode_segments(swapped).exchanges
    assert (one.status, one.latency) == ("answered", 10 * MICROSECOND)
    late = replace(talk.segments[3], ts=talk.segments[4].ts + EARLY_TOLERANCE)
    (one,) = decode_segments([*talk.segments[:3], talk.segments[4], late]).exchanges
    assert (one.status, one.latency) == ("answered", -EARLY_TOLERANCE)
    later = replace(late, ts=late.ts + 1000)
    statuses = decode_segments([*talk.segments[:3], talk.segments[4], later]).statuses
    assert statuses == {"orphan": 1, "unanswered": 1}


# -- numbers used again -------------------------------------------------------------------------


def test_a_number_may_come_again_when_it_was_answered() -> None:
    talk = Talk().open()
    for _ in range(5):
        talk.say(0, send(0).frame).say(1, sent(0).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 5}
    assert outcome.findings == []


def test_a_number_that_comes_again_unanswered_is_said() -> None:
    talk = Talk().open().say(0, send(1, b"first").frame).say(0, send(1, b"second").frame)
    talk.say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    first, second = outcome.exchanges
    assert (first.status, second.status) == ("unanswered", "answered")
    assert first.request is not None
    assert second.request is not None
    assert (first.request.body, second.request.body) == (b"first", b"second")
    assert outcome.kinds == {FindingKind.OPAQUE_REUSED: 1}
    assert [info.kind for info in first.request.findings or []] == [FindingKind.OPAQUE_REUSED]
    assert "again in packet 5" in outcome.findings[0].detail


def test_an_answer_out_of_a_hole_is_not_paired_with_a_later_request() -> None:
    """The first answer waits for a lost packet while its number is used again."""
    talk = Talk().open().say(0, send(1, b"first").frame)
    talk.say(1, b"\0" * 100).say(1, sent(1, 1).frame)  # the first of these is lost
    talk.wait(SECOND // 4).say(0, send(1, b"second").frame)
    lost = next(index for index, one in enumerate(talk.segments) if len(one.payload) == 100)
    outcome = decode_segments(talk.segments[:lost] + talk.segments[lost + 1 :])
    for one in outcome.exchanges:
        if one.request and one.response:
            assert one.request.body == b"first"
            assert one.latency is not None
            assert one.latency >= 0


def test_requests_stay_in_their_order_when_a_response_fits_none() -> None:
    """Pending requests are looked for from the oldest on."""
    talk = Talk().open().say(1, sent(1).frame)
    talk.wait(SECOND).say(0, send(1).frame).say(0, send(2).frame)
    response = talk.segments[3]
    segments = [*talk.segments[:3], *talk.segments[4:], response]
    assert opaques(segments) == [
        ("orphan", None, 1),
        ("unanswered", 1, None),
        ("unanswered", 2, None),
    ]


# -- codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
def test_codes_over_16_bits(binary: bool) -> None:
    request = Command(POP_MESSAGE, 9, ext={"topic": "Orders"}, binary=binary)
    talk = Talk().open().say(0, request.frame).say(1, request.answer(210).frame)
    (one,) = decode_segments(talk.segments).exchanges
    assert one.request is not None
    assert one.request.command.code == POP_MESSAGE
    assert names_of(one) == ("POP_MESSAGE", "POLLING_TIMEOUT")


def test_a_conversation_of_both_serializations() -> None:
    talk = Talk().open()
    for number in range(4):
        request = replace(route_query(number), binary=number % 2 == 0)
        answer = Command(0, number, 1, binary=number < 2, body=b"{}")
        talk.say(0, request.frame).say(1, answer.frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 4}
    types = [
        (one.request.command.serialize_type, one.response.command.serialize_type)
        for one in outcome.exchanges
        if one.request and one.response
    ]
    assert types == [
        ("ROCKETMQ", "ROCKETMQ"),
        ("JSON", "ROCKETMQ"),
        ("ROCKETMQ", "JSON"),
        ("JSON", "JSON"),
    ]


def test_an_unknown_code_is_a_number_with_a_name() -> None:
    talk = Talk().open().say(0, Command(9999, 1).frame).say(1, Command(8888, 1, 1).frame)
    outcome = decode_segments(talk.segments)
    (one,) = outcome.exchanges
    assert names_of(one) == ("UNKNOWN(9999)", "UNKNOWN(8888)")
    assert outcome.kinds == {FindingKind.UNKNOWN_CODE: 1}
    assert one.request is not None
    assert [info.kind for info in one.request.findings or []] == [FindingKind.UNKNOWN_CODE]


# -- a hole -------------------------------------------------------------------------------------


def test_answers_after_a_gap() -> None:
    """A lost packet costs what was in it; what follows is paired again."""
    talk = Talk().open()
    for number in range(40):
        talk.say(0, route_query(number).frame, acked=True)
        talk.say(1, Command(0, number, 1, body=b"{}").frame, acked=True)
    queries = [one for one in talk.segments if one.payload and one.src == CLIENT]
    answers = [one for one in talk.segments if one.payload and one.src == BROKER]
    lost = {id(queries[3]), id(answers[7])}
    outcome = decode_segments([one for one in talk.segments if id(one) not in lost])
    assert outcome.statuses == {"answered": 38, "orphan": 1, "unanswered": 1}
    assert outcome.kinds[FindingKind.GAP] == 2
    by_status = {one.status: one for one in outcome.exchanges}
    orphan, unanswered = by_status["orphan"].response, by_status["unanswered"].request
    assert (orphan and orphan.command.opaque, unanswered and unanswered.command.opaque) == (3, 7)
    assert outcome.stats.gaps == 2
    assert outcome.stats.gap_bytes == len(queries[3].payload) + len(answers[7].payload)


# -- the other views ----------------------------------------------------------------------------


def test_commands_are_in_the_order_of_packets_where_a_direction_waits(tmp_path: Path) -> None:
    """The requests' direction has no SYN and waits; another connection goes on meanwhile."""
    first = Talk().open()
    first.segments.clear()
    other = Talk(End("10.0.0.6", 50000)).open()
    segments = other.segments[:]
    for number in range(40):
        mark = len(first.segments), len(other.segments)
        first.say(0, send(number).frame).say(1, sent(number).frame)
        other.say(0, send(number).frame).say(1, sent(number).frame)
        segments += first.segments[mark[0] :] + other.segments[mark[1] :]
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap_of(retimed(segments)))
    seen = [one for batch in Decode([str(path)]).commands() for one in batch]
    packets = [one.pdu.packet for one in seen]
    assert packets == sorted(packets)
    assert len(packets) == 160
    for one in seen:
        if one.pdu.flag & 1:
            assert one.request is not None
            assert one.request.packet < one.pdu.packet


def test_what_is_held_for_the_order_is_bounded() -> None:
    pdus = decode_segments(
        Talk(mss=60_000).open().say(0, b"".join(send(n).frame for n in range(500))).segments
    ).pdus
    order = CommandOrder()
    for number in range(MOST_HELD + 1000):
        order.add(pdus[number % 500])
    assert len(order.take(0)) == 1000
    assert order.take(0) == []
    watched = CommandOrder(patience=1)
    talk = Talk().open().say(0, send(1).frame).say(0, send(2).frame)
    for pdu in decode_segments(talk.segments).pdus:
        watched.add(pdu)
    assert len(watched.take(0)) == 1
    assert len(watched.finish()) == 1


def test_commands_are_given_in_the_order_seen(tmp_path: object) -> None:
    talk = Talk().open()
    for number in range(5):
        talk.say(0, send(number).frame)
    for number in (2, 0, 1, 4):
        talk.say(1, sent(number).frame)
    talk.say(1, Command(NOTIFY_CONSUMER_IDS_CHANGED, 1, 2).frame).say(1, sent(77).frame)
    path = f"{tmp_path}/x.pcap"
    with open(path, "wb") as file:
        file.write(pcap_of(talk.segments))
    seen = [one for batch in Decode([path]).commands() for one in batch]
    assert [(one.pdu.command.code, one.pdu.command.opaque) for one in seen] == [
        *((310, number) for number in range(5)),
        *((0, number) for number in (2, 0, 1, 4)),
        (NOTIFY_CONSUMER_IDS_CHANGED, 1),
        (0, 77),
    ]
    for one in seen:
        if one.request is not None:
            assert one.request.command.opaque == one.pdu.command.opaque
            assert one.latency == one.pdu.ts - one.request.ts
    assert [one.request is not None for one in seen] == [False] * 5 + [True] * 4 + [False] * 2
    assert GET_ROUTEINFO not in {one.pdu.command.code for one in seen}
