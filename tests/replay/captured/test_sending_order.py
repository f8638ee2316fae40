"""Which sends wait for others: what requests and responses of a capture show of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from replay.captured.captured_send import CapturedSend, Seen
from replay.captured.sending_order import CLIENT_WAITS, MOST, SendingOrder

from ..replayed import MS, START, captured, seen

Timed = tuple[int, int, int]
"""sent, answered, queue; times in ms"""


def told(sends: Iterable[Timed], **more: object) -> list[CapturedSend]:
    """Sends as they are once all responses came."""
    requests = [
        (at, end, captured(seen(at * MS, key=f"K{n}", queue=queue, opaque=n, **more)))  # type: ignore[arg-type]
        for n, (at, end, queue) in enumerate(sends)
    ]
    order = SendingOrder()
    events = [(at, 1, n) for n, (at, _, _) in enumerate(requests)]
    events += [(end, 0, n) for n, (_, end, _) in enumerate(requests)]
    for at, is_request, n in sorted(events):
        one = requests[n][2]
        if is_request:
            order.request(one)
        else:
            order.response(one, one.seen.origin, START + at * MS)
    return [one for _, _, one in requests]


def test_one_after_the_other_is_not_concurrent() -> None:
    sends = told((n * 10, n * 10 + 5, n % 4) for n in range(8))
    assert not any(one.concurrent or one.in_turn for one in sends)


def test_sends_that_overlap_are_concurrent_and_so_are_those_that_follow() -> None:
    sends = told([(0, 5, 0), (1, 6, 1), (20, 25, 2), (40, 45, 3)])
    assert all(one.concurrent for one in sends)


def test_two_sends_in_one_packet_overlap() -> None:
    assert all(one.concurrent for one in told([(0, 5, 0), (0, 6, 1)]))


def test_a_client_is_its_host_and_group_on_any_connection() -> None:
    order = SendingOrder()

    def overlapping(other: Seen) -> bool:
        pair = captured(seen(0, opaque=1)), captured(other)
        for one in pair:
            order.request(one)
        for one in pair:
            order.response(one, one.seen.origin, START + 9 * MS)
        return pair[1].concurrent

    another = seen(
        MS, conversation=2, opaque=1, client_address="10.0.0.5:77", server_address="10.0.0.2:1"
    )
    assert overlapping(another)
    order = SendingOrder()
    assert not overlapping(seen(MS, conversation=2, opaque=1, client_address="10.0.0.6:77"))


def test_who_gave_up_waiting_is_not_concurrent() -> None:
    late = CLIENT_WAITS // MS
    assert not any(one.concurrent for one in told([(0, late + 2000, 0), (late, late + 5, 1)]))


def test_a_queue_that_is_chosen_again_shows_a_selector() -> None:
    sends = told([(0, 5, 3), (10, 15, 3), (20, 25, 1), (30, 35, 3)])
    assert [one.in_turn for one in sends] == [False, True, True, True]


def test_sends_that_overlap_on_a_queue_show_none() -> None:
    sends = told([(0, 5, 3), (10, 15, 3), (20, 29, 3), (25, 30, 3), (40, 45, 3), (50, 55, 3)])
    assert [one.in_turn for one in sends] == [False, True, False, False, False, False]


def test_round_robin_shows_none_however_fast_the_broker_is() -> None:
    sends = told((n * 3, n * 3 + 1, n % 8) for n in range(100))
    assert not any(one.in_turn for one in sends)


def test_memory_is_bounded_by_number() -> None:
    def size_after(count: int) -> int:
        order = SendingOrder()
        for n in range(count):
            order.request(captured(seen(n, opaque=n, topic=f"T{n}", client_address=f"{n}:1")))
        return len(pickle.dumps(order))

    half, whole = size_after(MOST // 2), size_after(MOST)
    assert whole > 1.9 * half
    assert size_after(MOST + MOST // 2) < 1.02 * whole
