"""Exchanges where very many requests or responses wait: memory is bounded."""

from __future__ import annotations

import pytest

from dissectors.decode.exchange import (
    MAX_EARLY,
    MAX_REQUESTS,
    MAX_WAIT,
    MAX_WAITING,
    MAX_WAITING_BYTES,
)
from dissectors.findings import FindingKind
from tests.traffic.commands import route_query, send, sent
from tests.traffic.decoded import decode_segments
from tests.traffic.talk import CLIENT, MICROSECOND, SECOND, End, Talk

from .exchanges import opaques


def _requests(talk: Talk, first: int, count: int) -> None:
    """Requests, many in a segment."""
    frames = [route_query(number).frame for number in range(first, first + count)]
    for at in range(0, count, 10):
        talk.say(0, b"".join(frames[at : at + 10]))


def test_the_limit_of_unanswered_requests_of_one_end() -> None:
    talk = Talk(step=MICROSECOND).open()
    _requests(talk, 0, MAX_REQUESTS + 5)
    for number in (0, 4, 5, MAX_REQUESTS + 4):
        talk.say(1, sent(number).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.kinds == {FindingKind.PAIRING_LIMIT: 5}
    given_up = [one.request.command.opaque for one in outcome.exchanges[:5] if one.request]
    assert given_up == [0, 1, 2, 3, 4]
    assert outcome.statuses == {"unanswered": MAX_REQUESTS + 3, "answered": 2, "orphan": 2}


def test_the_limit_of_all_unanswered_requests() -> None:
    """The oldest of all are given up: a conversation that is answered goes on being paired."""
    deaf = [Talk(End("10.0.0.5", 40000 + n), step=MICROSECOND) for n in range(4)]
    for talk in deaf:
        _requests(talk.open(), 0, MAX_WAITING // 4)
    good = Talk(at=deaf[0].now + SECOND, step=MICROSECOND).open()
    for number in range(50):
        good.say(0, send(number).frame).say(1, sent(number).frame)
    segments = [one for talk in deaf for one in talk.segments] + good.segments
    outcome = decode_segments(segments)
    assert outcome.statuses == {"unanswered": MAX_WAITING, "answered": 50}
    assert outcome.kinds == {FindingKind.PAIRING_LIMIT: MAX_WAITING // 8 + 1}


def test_the_limit_of_early_responses() -> None:
    talk = Talk(step=MICROSECOND).open()
    answers = [sent(number).frame for number in range(MAX_EARLY + 3)]
    for at in range(0, len(answers), 10):
        talk.say(1, b"".join(answers[at : at + 10]))
    for number in (2, 3):
        talk.say(0, send(number).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"orphan": MAX_EARLY + 2, "answered": 1, "unanswered": 1}
    assert [one.response.command.opaque for one in outcome.exchanges[:3] if one.response] == [
        0,
        1,
        2,
    ]


@pytest.mark.slow
def test_the_limit_of_all_that_waits() -> None:
    """Responses to requests that nobody has captured, in several conversations."""
    mute = [Talk(End("10.0.0.5", 40000 + n), step=MICROSECOND) for n in range(5)]
    for talk in mute:
        talk.open()
        answers = [sent(number).frame for number in range(MAX_EARLY)]
        for at in range(0, len(answers), 10):
            talk.say(1, b"".join(answers[at : at + 10]))
    good = Talk(at=mute[0].now + SECOND, step=MICROSECOND).open()
    for number in range(50):
        good.say(0, send(number).frame).say(1, sent(number).frame)
    segments = [one for talk in mute for one in talk.segments] + good.segments
    outcome = decode_segments(segments)
    assert outcome.statuses == {"orphan": 5 * MAX_EARLY, "answered": 50}
    assert outcome.findings == []


@pytest.mark.slow
def test_the_limit_of_bytes_that_wait() -> None:
    """Bodies are kept here: unanswered sends of a megabyte each are given up by their size."""
    size = 1 << 20
    count = MAX_WAITING_BYTES // size + 3
    body = bytes(size)
    talk = Talk(step=MICROSECOND, mss=60_000).open()
    for number in range(count):
        talk.say(0, send(number, body).frame)
    talk.say(1, sent(count - 1).frame).say(1, sent(0).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"unanswered": count - 1, "answered": 1, "orphan": 1}
    assert 3 <= outcome.kinds[FindingKind.PAIRING_LIMIT] <= count // 4


def test_a_lost_packet_costs_what_was_in_it_and_no_pairs() -> None:
    """Many frames a packet: the answers come while the requests still wait behind the hole."""
    talk = Talk(mss=65_000, step=50 * MICROSECOND).open()
    for batch in range(60):
        numbers = range(batch * 100, batch * 100 + 100)
        talk.say(0, b"".join(route_query(number).frame for number in numbers))
        talk.say(1, b"".join(sent(number).frame for number in numbers))
    lost = [i for i, one in enumerate(talk.segments) if one.payload and one.src == CLIENT][20]
    outcome = decode_segments([one for i, one in enumerate(talk.segments) if i != lost])
    assert outcome.statuses == {"answered": 5900, "orphan": 100}


def test_a_request_does_not_wait_forever() -> None:
    talk = Talk().open().say(0, send(1).frame).wait(MAX_WAIT + SECOND)
    talk.say(0, send(2).frame).say(1, sent(2).frame).say(1, sent(1).frame)
    assert opaques(talk.segments)[0] == ("unanswered", 1, None)
    assert sorted(status for status, _, _ in opaques(talk.segments)) == [
        "answered",
        "orphan",
        "unanswered",
    ]
