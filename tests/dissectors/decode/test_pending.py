"""What waits while a capture goes on: requests that become overdue, connections that have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dissectors.decode import pending
from dissectors.decode.pending import LONG_POLL, CaptureClock
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.live.interface import pcap_head, pcap_records
from dissectors.live.packet_ring import RingPacket
from dissectors.rows.record import ExchangeRecord
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send, sent
from tests.traffic.passing import Passing, packets_of
from tests.traffic.talk import SECOND, START, End, Talk, merged

AFTER = 5 * SECOND
PULL = Command(11, 3, ext={"topic": "Orders", "consumerGroup": "readers"})


def passing(*talks: Talk, after: int = 0) -> tuple[Passing, Decode]:
    """These connections as they pass, and what decodes them."""
    source = Passing(packets_of(pcap_of(merged(*talks))), after=after)
    options = DecodeOptions(follow=True, conversations=True, overdue_after=AFTER)
    return source, Decode([source], options, lambda: source.now)


class Seen:
    """What a run gave, each with the seconds of the capture after which it came."""

    def __init__(
        self, source: Passing, decode: Decode, each: Callable[[float], None] = lambda _: None
    ) -> None:
        self.overdue: list[tuple[float, int]] = []
        """opaque of the requests that became overdue"""
        self.settled: list[tuple[float, int, str]] = []
        """opaque and status of the exchanges"""
        self.stayed: list[tuple[int, int | None]] = []
        self.ended: list[tuple[float, str]] = []
        for batch in decode.records():
            at = (source.now - START) / SECOND
            self.settled += [(at, row.opaque, row.status) for row in batch]
            self.stayed += decode.stayed_overdue()
            self.overdue += [(at, row.opaque) for row in decode.take_overdue()]
            self.ended += [(at, row.end) for row in decode.take_conversations()]
            each(at)


def test_a_request_is_overdue_while_it_waits_and_given_once() -> None:
    talk = Talk().open().say(0, send(1).frame)
    seen = Seen(*passing(talk, after=60 * SECOND))
    ((at, opaque),) = seen.overdue
    assert (opaque, 5 <= at < 5.5) == (1, True)
    ((last, *rest),) = seen.settled
    assert (rest, last > 59) == ([1, "unanswered"], True)
    assert seen.stayed == [(0, 4)]


def test_a_response_that_comes_late_gives_the_exchange() -> None:
    talk = Talk().open().say(0, send(1).frame).wait(20 * SECOND).say(1, sent(1).frame)
    seen = Seen(*passing(talk))
    assert [opaque for _, opaque in seen.overdue] == [1]
    assert [(opaque, status) for _, opaque, status in seen.settled] == [(1, "answered")]
    assert seen.stayed == []


def test_what_is_answered_in_time_is_never_overdue() -> None:
    talk = Talk().open()
    for number in range(20):
        talk.say(0, send(number).frame).wait(SECOND).say(1, sent(number).frame)
    seen = Seen(*passing(talk, after=60 * SECOND))
    assert seen.overdue == []
    assert len(seen.settled) == 20


def test_a_long_poll_waits_on_purpose() -> None:
    talk = Talk().open().say(0, PULL.frame)
    ((at, opaque),) = Seen(*passing(talk, after=60 * SECOND)).overdue
    assert (opaque, LONG_POLL / SECOND <= at < LONG_POLL / SECOND + 0.5) == (3, True)


def test_requests_are_unanswered_soon_after_their_connection_ended() -> None:
    """The server's end alone: its client neither acknowledges nor closes."""
    talk = Talk().open().say(0, send(1).frame).say(0, PULL.frame).wait(SECOND).fin(1)
    seen = Seen(*passing(talk, after=20 * SECOND))
    assert [opaque for _, opaque in seen.overdue] == [1, 3]
    assert all(3 <= at < 4 for at, _ in seen.overdue)


def test_a_connection_that_was_reset_ends_by_time_alone() -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame).reset(1)
    seen = Seen(*passing(talk, after=20 * SECOND))
    ((at, end),) = seen.ended
    assert (end, 2 <= at < 3.5) == ("reset", True)


def test_one_connection_that_is_quiet_gives_what_it_has_while_others_go_on() -> None:
    """Its beginning was not captured: until it is quiet, bytes from before may still come."""
    quiet = Talk().say(0, send(1).frame)
    busy = Talk(End("10.0.0.6", 40000)).open()
    for number in range(100):
        busy.say(0, send(number).frame).say(1, sent(number).frame).wait(SECOND // 10)
    source, decode = passing(quiet, busy)
    waiting: list[tuple[float, list[ExchangeRecord]]] = []
    Seen(source, decode, lambda at: waiting.append((at, decode.pending().requests)))
    first = next(at for at, rows in waiting if rows)
    assert 1 <= first < 2
    assert {row.client_address for _, rows in waiting for row in rows} == {"10.0.0.5:51234"}


def test_what_is_pending_is_told_as_rows() -> None:
    talk = Talk().open().say(0, send(1).frame)
    lost = Talk(End("10.0.0.6", 40000))
    lost.segments += Talk(End("10.0.0.6", 40000)).open().segments[:1]  # a SYN alone
    source, decode = passing(talk, lost, after=10 * SECOND)
    found = []
    Seen(source, decode, lambda _: found.append(decode.pending()))
    early, late = found[1], found[-2]
    assert [(row.status, row.end, row.opaque) for row in early.requests] == [
        ("unanswered", "open", 1)
    ]
    assert [row.end for row in early.connections] == ["open"], "the other one may be answered yet"
    assert sorted(row.end for row in late.connections) == ["no_response", "open"]
    assert (late.now - START) // SECOND == 10
    assert found[-1].connections == found[-1].requests == []


def test_rows_of_what_waits_are_bounded_and_of_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MAX_REQUESTS", 10)
    monkeypatch.setattr(pending, "MAX_CONNECTIONS", 3)
    talks = [Talk(End("10.0.0.6", 40000 + place)).open() for place in range(5)]
    for talk in talks:
        for number in range(5):
            talk.say(0, send(number).frame).wait(SECOND // 10)
    source, decode = passing(*talks, after=2 * SECOND)
    found = []
    Seen(source, decode, lambda _: found.append(decode.pending()))
    assert len(found[-2].connections) == 3
    times = [row.request_time or 0 for row in found[-2].requests]
    assert 5 <= len(times) <= 10
    assert (min(times) - START) / SECOND < 0.1
    assert (max(times) - START) / SECOND > 0.3


def test_the_clock_goes_on_only_while_nothing_waits_to_be_read() -> None:
    steady = [0]
    clock = CaptureClock(lambda: steady[0])
    clock.note_idle()
    assert (clock.now, clock.ticked()) == (0, False)
    clock.note(START)
    steady[0] += 10 * SECOND
    assert clock.now == START, "the packets may still be on their way"
    clock.note_idle()
    assert clock.now == START + 10 * SECOND
    clock.note(START + SECOND)
    assert clock.now == START + 10 * SECOND, "it never goes back"
    assert (clock.ticked(), clock.ticked()) == (True, False)


@pytest.mark.parametrize(("age", "expected"), [(0, [1]), (7200 * SECOND, [])])
def test_a_pipe_goes_on_where_its_packets_are_recent(age: int, expected: list[int]) -> None:
    """An old capture through a pipe is decoded as a file is, however slowly it comes."""
    import time

    talk = Talk(at=time.time_ns() - age).open().say(0, send(1).frame)
    source = Passing(packets_of(pcap_of(talk.segments)), after=20 * SECOND)
    decode = Decode([source], DecodeOptions(overdue_after=AFTER), lambda: source.now)
    found = []
    for _ in decode.records():
        found += [row.opaque for row in decode.take_overdue()]
    assert found == expected


class SetBack(Passing):
    """Packets of which the last ones have times of a clock that was set back."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the packets one by one, a second apart."""
        yield pcap_head(1)
        for packet in self._packets:
            self.now += SECOND
            ts = packet.ts - 600 * SECOND if packet.ts - START >= 5 * SECOND else packet.ts
            data = bytes(packet.data[packet.start : packet.end])
            yield pcap_records([RingPacket(ts, data, packet.length)])


def test_requests_after_the_clock_was_set_back_are_not_overdue_at_once() -> None:
    talk = Talk().open()
    for number in range(10):
        talk.say(0, send(number).frame).say(1, sent(number).frame).wait(SECOND)
    source = SetBack(packets_of(pcap_of(talk.segments)))
    options = DecodeOptions(follow=True, overdue_after=AFTER)
    seen = Seen(source, Decode([source], options, lambda: source.now))
    assert len(seen.settled) == 10
    assert seen.overdue == []
