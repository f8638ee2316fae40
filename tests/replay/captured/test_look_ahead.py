"""Outcomes, attempts, transactions and concurrency, as far as the reading is ahead."""

from __future__ import annotations

import pytest

from dissectors.budget import Budget
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ANSWERED, ONEWAY, UNANSWERED
from replay.captured.captured_send import END_TRANSACTION, CapturedSend, Refused, Seen, SkipReason
from replay.captured.look_ahead import MAX_WAIT, MAX_WAITING, LookAhead
from replay.captured.sending_order import CLIENT_WAITS
from replay.message import TransactionState

from ..replayed import MS, SECOND, START, seen

FLUSH_DISK_TIMEOUT = int(ResponseCode.FLUSH_DISK_TIMEOUT)


def answer(ahead: LookAhead, request: Seen, at: int, code: int = 0, remark: str = "") -> None:
    fields = {"queueId": "0", "queueOffset": "5"} if code == 0 else {}
    ahead.response(request.origin.key, START + at, code, remark or None, fields)


def sends(ahead: LookAhead, everything: bool = False) -> list[CapturedSend]:
    return [one for one in ahead.take(everything) if isinstance(one, CapturedSend)]


def end(key: str, state: int, at: int) -> Seen:
    request = seen(at, code=END_TRANSACTION, opaque=at // MS + 500)
    request.command.ext_fields = {"msgId": key, "commitOrRollback": str(state)}
    request.command.flag = 2
    return request


def test_a_send_comes_out_with_its_answer_and_not_before() -> None:
    budget = Budget()
    ahead = LookAhead(budget=budget)
    request = seen()
    ahead.request(request)
    assert ahead.take() == []
    waiting = budget.bounds["bytes of sends that wait"]
    assert waiting.held
    answer(ahead, request, 3 * MS)
    (one,) = sends(ahead)
    assert (one.response.status, one.response.code, one.response.latency_us) == (ANSWERED, 0, 3000)
    assert one.response.queue_offset == 5
    assert not waiting.held


def test_sends_come_out_in_the_order_in_which_they_were_made() -> None:
    ahead = LookAhead()
    first, second = seen(0, key="A"), seen(MS, key="B")
    for request in (first, second):
        ahead.request(request)
    answer(ahead, second, 2 * MS)
    assert sends(ahead) == []
    answer(ahead, first, 3 * MS)
    assert [one.header.unique_key for one in sends(ahead)] == ["A", "B"]


def test_an_answer_is_waited_for_no_longer_than_a_bounded_time() -> None:
    ahead = LookAhead()
    before = seen(-MS, key="K0", opaque=99)
    ahead.request(before)
    answer(ahead, before, 0)
    ahead.request(seen())
    ahead.at(START + MAX_WAIT - 1)
    assert len(sends(ahead)) == 1
    assert sends(ahead) == []
    ahead.at(START + MAX_WAIT)
    (one,) = sends(ahead)
    assert one.response.status == UNANSWERED
    assert one.response.is_failed
    answer(ahead, one.seen, MAX_WAIT + MS)
    assert one.response.is_stored, "a late answer still completes the outcome"


def test_without_any_response_of_its_connection_an_outcome_is_unknown() -> None:
    ahead = LookAhead()
    ahead.request(seen())
    elsewhere = seen(MS, key="K2", conversation=2, opaque=7)
    ahead.request(elsewhere)
    answer(ahead, elsewhere, 2 * MS)
    ahead.at(START + MAX_WAIT)
    one, _ = sends(ahead)
    assert one.response.status == UNANSWERED
    assert one.response.is_unknown
    assert not one.response.is_failed


def test_where_the_capture_ends_before_the_client_gives_up_an_outcome_is_unknown() -> None:
    for silence, unknown in ((CLIENT_WAITS - 1, True), (CLIENT_WAITS, False)):
        ahead = LookAhead()
        before = seen(-MS, key="K0", opaque=99)
        ahead.request(before)
        answer(ahead, before, 0)
        ahead.request(seen())
        ahead.at(START + silence)
        assert [one.response.is_unknown for one in sends(ahead, everything=True)] == [
            False,
            unknown,
        ]


def test_a_message_belongs_to_the_queue_that_stored_it() -> None:
    ahead = LookAhead()
    first = seen(0, broker="broker-b", queue=5)
    again = seen(10 * MS, broker="broker-a", queue=2)
    ahead.request(first)
    answer(ahead, first, 2 * MS, 14, "disk full")
    ahead.request(again)
    ahead.response(again.origin.key, START + 12 * MS, 0, None, {"queueId": "2", "queueOffset": "5"})
    (one,) = sends(ahead)
    assert one.place == ("broker-a", 2)


def test_a_message_that_nobody_stored_belongs_to_its_first_queue() -> None:
    ahead = LookAhead()
    for n, broker in enumerate(("broker-b", "broker-a")):
        request = seen(n * 10 * MS, broker=broker, queue=5 + n)
        ahead.request(request)
        answer(ahead, request, n * 10 * MS + MS, 14, "disk full")
    (one,) = sends(ahead, everything=True)
    assert one.place == ("broker-b", 5)


def test_a_oneway_send_waits_for_nothing() -> None:
    ahead = LookAhead()
    ahead.request(seen(oneway=True))
    (one,) = sends(ahead)
    assert one.response.status == ONEWAY
    assert not one.response.is_failed


def test_further_attempts_are_the_same_message() -> None:
    ahead = LookAhead()
    first = seen(0, broker="broker-b")
    again = seen(10 * MS, broker="broker-a", server_address="10.0.0.2:10911")
    ahead.request(first)
    answer(ahead, first, 2 * MS, 14, "disk full")
    assert sends(ahead) == []
    ahead.request(again)
    answer(ahead, again, 12 * MS)
    one, refused = ahead.take()
    assert isinstance(one, CapturedSend)
    assert isinstance(refused, Refused)
    assert (one.response.attempts, one.response.code, one.response.latency_us) == (2, 0, 2000)
    assert one.response.server_address == "10.0.0.2:10911"
    assert one.header.broker_name == "broker-b"
    assert refused.refusal.why is SkipReason.ANOTHER_ATTEMPT


def test_what_was_not_stored_for_good_is_the_same_message_when_it_is_sent_again() -> None:
    """As by producers with retryAnotherBrokerWhenNotStoreOK, and by proxies for clients of gRPC."""
    ahead = LookAhead()
    codes = (FLUSH_DISK_TIMEOUT, FLUSH_DISK_TIMEOUT, 0, 0)
    requests = [seen(n * 10 * MS) for n in range(len(codes))]
    for n, (request, code) in enumerate(zip(requests, codes, strict=True)):
        ahead.request(request)
        answer(ahead, request, n * 10 * MS + MS, code)
    taken = ahead.take()
    assert [isinstance(one, CapturedSend) for one in taken] == [True, False, False, True]
    (one, _, _, another) = taken
    assert isinstance(one, CapturedSend)
    assert isinstance(another, CapturedSend)
    assert (one.response.attempts, one.response.code) == (3, 0), (
        "the last attempt was stored for good"
    )
    assert another.response.attempts == 1


def test_what_was_not_stored_for_good_is_not_waited_for() -> None:
    ahead = LookAhead()
    request = seen()
    ahead.request(request)
    answer(ahead, request, MS, FLUSH_DISK_TIMEOUT)
    (one,) = sends(ahead)
    again = seen(10 * MS)
    ahead.request(again)
    answer(ahead, again, 12 * MS, 14)
    (refused,) = ahead.take()
    assert isinstance(refused, Refused)
    assert one.response.code == FLUSH_DISK_TIMEOUT, "it was stored, whatever came after"


def test_the_same_message_sent_again_after_it_was_stored_is_another_one() -> None:
    ahead = LookAhead()
    for at in (0, 10 * MS):
        request = seen(at)
        ahead.request(request)
        answer(ahead, request, at + MS)
    assert [one.response.attempts for one in sends(ahead)] == [1, 1]


def test_the_late_answer_to_a_first_attempt_does_not_replace_the_second_ones() -> None:
    ahead = LookAhead()
    first, again = seen(0), seen(4 * SECOND)
    ahead.request(first)
    ahead.request(again)
    answer(ahead, again, 4 * SECOND + MS)
    answer(ahead, first, 5 * SECOND)
    (one,) = sends(ahead)
    assert (one.response.latency_us, one.response.attempts) == (1000, 2)


def test_concurrent_sends_of_a_conversation_are_told_from_those_one_after_another() -> None:
    ahead = LookAhead()
    one_by_one = [seen(n * 10 * MS, key=f"S{n}") for n in range(3)]
    for request in one_by_one:
        ahead.request(request)
        answer(ahead, request, request.origin.time - START + MS)
    assert [one.overlapped for one in sends(ahead)] == [False] * 3
    at_once = [seen(SECOND + n, key=f"A{n}", opaque=100 + n) for n in range(4)]
    for request in at_once:
        ahead.request(request)
    for request in (at_once[2], at_once[0], at_once[3], at_once[1]):
        answer(ahead, request, SECOND + MS)
    assert [one.overlapped for one in sends(ahead)] == [True] * 4


def test_what_is_never_answered_makes_nothing_concurrent() -> None:
    ahead = LookAhead()
    lost = seen(0, key="LOST")
    ahead.request(lost)
    for n in range(1, 4):
        request = seen(n * 10 * MS, key=f"S{n}")
        ahead.request(request)
        answer(ahead, request, n * 10 * MS + MS)
    assert [one.overlapped for one in sends(ahead, everything=True)] == [False] * 4


def test_another_conversation_is_no_concurrency() -> None:
    ahead = LookAhead()
    pair = [seen(n, key=f"K{n}", conversation=n, opaque=1) for n in range(2)]
    for request in pair:
        ahead.request(request)
    for request in pair:
        answer(ahead, request, MS)
    assert [one.overlapped for one in sends(ahead)] == [False, False]


def test_a_half_message_waits_for_its_outcome() -> None:
    ahead = LookAhead()
    half = seen(key="H", sys_flag=4)
    ahead.request(half)
    answer(ahead, half, MS)
    assert ahead.take() == []
    ahead.request(end("H", 8, 2 * MS))
    one, refused = ahead.take()
    assert isinstance(one, CapturedSend)
    assert one.state is TransactionState.COMMIT
    assert isinstance(refused, Refused)
    assert refused.refusal.why is SkipReason.ENDS_TRANSACTION


def test_an_unknown_outcome_is_replaced_by_the_answer_to_the_check() -> None:
    ahead = LookAhead()
    half = seen(key="H", sys_flag=4)
    ahead.request(half)
    answer(ahead, half, MS)
    ahead.request(end("H", 0, 2 * MS))
    ahead.at(START + 2 * MAX_WAIT)
    assert ahead.take() == []
    ahead.request(end("H", 12, 40 * SECOND))
    assert [one.state for one in sends(ahead)] == [TransactionState.ROLLBACK]


@pytest.mark.slow
def test_memory_is_bounded_by_number() -> None:
    ahead = LookAhead()
    given = 0
    for n in range(MAX_WAITING + 500):
        ahead.request(seen(n, key=f"K{n}", opaque=n, conversation=n % 50))
        given += len(ahead.take())
    assert given == 500


def test_the_raw_mode_takes_every_request_as_it_is() -> None:
    ahead = LookAhead(raw=True)
    first, again = seen(0), seen(MS)
    ahead.request(first)
    ahead.request(again)
    ahead.request(end("K1", 8, 2 * MS))
    assert [one.response.attempts for one in sends(ahead, everything=True)] == [1, 1, 1]
