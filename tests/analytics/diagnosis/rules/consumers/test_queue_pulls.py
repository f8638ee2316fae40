"""Queues that two clients pulled in turn, or none: the state of rules and of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.context import Context
from analytics.diagnosis.rules.consumers import queue_pulls
from analytics.diagnosis.rules.consumers.queue_pulls import (
    MAX_SPANS,
    PulledQueues,
    QueuePulls,
    Spans,
)
from dissectors.remoting.row_facts.routes import RoutedBroker

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.4:10911"
ONE, OTHER, THIRD = "10.0.0.9:40000", "10.0.0.10:40000", "10.0.0.10:50000"
"""the last two are of one host, which is all that is known of them"""
CLAIM: Final = -1.0
"""instead of a duration"""
S: Final = 1_000_000_000
Pull = tuple[float, str, float | None]
"""seconds of the request; client; seconds until the response, None without one, or CLAIM"""


@dataclass
class Pulled:
    """The pulls of queue 0 of Orders."""

    pulls: Sequence[Pull]
    end: float = 0
    server: str = MASTER
    state: QueuePulls = field(default_factory=QueuePulls)

    def seen(self) -> PulledQueues:
        for at, client, lasts in self.pulls:
            of_queue = self.state.of("Orders", self.server, 0, client)
            assert of_queue is not None
            time = int(at * S)
            if lasts == CLAIM:
                of_queue.claims.add(time, time)
            else:
                of_queue.add(time, None if lasts is None else time + int(lasts * S))
        end = max(self.end, *(at for at, *_ in self.pulls))
        return self.state.seen(Context(first_time=0, last_row_time=int(end * S)))


def shared(pulls: Sequence[Pull]) -> list[tuple[tuple[str, str], float, float]]:
    return [
        (period.clients, period.first / S, period.last / S)
        for period in Pulled(pulls).seen().shared()
    ]


def unpulled(pulls: Sequence[Pull], end: float = 0) -> list[tuple[str, str | None, float, float]]:
    return [
        (period.before, period.after, period.first / S, period.last / S)
        for period in Pulled(pulls, end).seen().unpulled()
    ]


def polls(client: str, *times: float, lasts: float = 10) -> list[Pull]:
    return [(at, client, lasts) for at in times]


BOTH: Final = ("10.0.0.10", "10.0.0.9")


def test_two_clients_share_a_queue_as_long_as_both_pull_it() -> None:
    pulls = polls(ONE, 0, 10, 20, 30, 40, 50) + polls(OTHER, 12.5, 22.5, 32.5)
    assert shared(pulls) == [(BOTH, 12.5, 32.5)]


def test_clients_that_pull_all_the_time() -> None:
    pulls = [
        *((at / 10, ONE, 0.1) for at in range(200)),
        *((at / 10 + 0.03, OTHER, 0.1) for at in range(100, 300)),
    ]
    assert shared(pulls) == [(BOTH, 10.03, 19.9)]


@pytest.mark.parametrize(
    "pulls",
    [
        polls(ONE, 0, 10) + polls(OTHER, 11, 21, 31),  # handed over, a long poll is open
        polls(ONE, 0, 10, 20) + polls(OTHER, 11),  # a new client that does not stay
        # Handed over and back.
        [*polls(ONE, 0, 10), *polls(OTHER, 11, 21), (24, ONE, CLAIM), *polls(ONE, 25, 35)],
        [*polls(ONE, 0, 10), *polls(OTHER, 11, 21), *polls(ONE, 80, 90)],  # after a pause
        # Both claim it each time.
        [
            pull
            for at in range(0, 100, 10)
            for client in (ONE, OTHER)
            for pull in ((at + 0.1, client, CLAIM), (at + 0.2, client, 0.1))
        ],
    ],
)
def test_no_sharing(pulls: Sequence[Pull]) -> None:
    assert shared(pulls) == []


def test_two_clients_with_one_id_share_a_queue() -> None:
    pulls = polls(OTHER, 0, 10, 20) + polls(THIRD, 5, 15, 25)
    (period,) = Pulled(pulls).seen().shared()
    assert (period.one_id, period.first, period.last) == (True, 5 * S, 20 * S)
    assert period.clients == ("10.0.0.10 from 10.0.0.10:40000", "10.0.0.10 from 10.0.0.10:50000")


def test_a_client_with_connections_to_master_and_slave_is_one_client() -> None:
    pulled = Pulled(polls(OTHER, 0, 10, 20))
    pulled.seen()
    context = Context()
    for server in (MASTER, SLAVE):
        context.broker_names.add_requested(server, "broker-a", 1, True)
    Pulled(polls(THIRD, 5, 15, 25), server=SLAVE, state=pulled.state).seen()
    assert list(pulled.state.seen(context).shared()) == []


@pytest.mark.parametrize(
    ("pulls", "end", "expected"),
    [
        (polls(ONE, 0, 10) + polls(OTHER, 25), 35, [("10.0.0.9", "10.0.0.10", 20, 25)]),
        (polls(ONE, 0, 10) + polls(OTHER, 15), 40, [("10.0.0.10", None, 25, 40)]),
        (polls(ONE, 0, 10.9), 20.9, []),  # under a second
        # Nobody knows of a response.
        ([(0, ONE, None), (90, OTHER, 10)], 100, [("10.0.0.9", "10.0.0.10", 60, 90)]),
        ([(0, ONE, None), (20, OTHER, 10)], 30, []),
        ([(0, ONE, None)], 30, []),
        # It claims the queue, but the other one's poll ends later.
        ([(0, ONE, 10), (9, OTHER, 0.5), (12, OTHER, 1)], 13, [("10.0.0.10", "10.0.0.10", 10, 12)]),
    ],
)
def test_queues_that_nobody_pulls(
    pulls: Sequence[Pull], end: float, expected: list[tuple[str, str | None, float, float]]
) -> None:
    assert unpulled(pulls, end) == expected


def test_a_client_that_left_waits_no_longer() -> None:
    queues = Pulled([(0, ONE, None), (50, OTHER, 10)], end=60).seen()
    (period,) = queues.unpulled({"10.0.0.9": [20 * S]})
    assert (period.first, period.last) == (20 * S, 50 * S)


def test_queues_of_the_route() -> None:
    context = Context()
    context.routes["Orders"] = [
        RoutedBroker(6, 2, 2, ("0",), "broker-a"),
        RoutedBroker(2, 2, 2, ("0",), "write-only"),
    ]
    context.broker_names.add_requested(MASTER, "broker-a", 1, True)
    pulled = Pulled(polls(ONE, 0, 10))
    pulled.seen()
    queues = pulled.state.seen(context)
    used, unused = queues.of_route("Orders")
    assert [place.number for place in used] == [0]
    assert [(place.broker, place.number) for place in unused] == [("broker-a", 1)]
    assert queues.of_route("Orders", since=11 * S)[0] == []


def test_beyond_the_limit_nothing_is_said_of_unpulled_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_pulls, "MAX_PULLED", 1)
    state = QueuePulls()
    assert state.of("Orders", MASTER, 0, ONE) is not None
    assert state.of("Orders", MASTER, 1, ONE) is None
    context = Context()
    context.routes["Orders"] = [RoutedBroker(6, 2, 2, ("0",), "broker-a")]
    assert state.seen(context).of_route("Orders")[1] == []


TIMES: Final = st.integers(0, 400).map(lambda tenths: tenths / 2)
PULLS: Final = st.lists(
    st.tuples(
        TIMES,
        st.sampled_from((ONE, OTHER, THIRD)),
        st.sampled_from((None, CLAIM, 0.1, 5.0, 30.0)),
    ),
    min_size=1,
    max_size=60,
)


@given(PULLS, st.randoms(use_true_random=False))
def test_the_order_of_pulls_does_not_matter(pulls: list[Pull], random: object) -> None:
    other = list(pulls)
    random.shuffle(other)  # type: ignore[attr-defined]
    assert shared(sorted(pulls, key=str)) == shared(other)
    assert unpulled(sorted(pulls, key=str)) == unpulled(other)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=40))
def test_spans_are_those_of_the_times_that_they_cover(spans: list[tuple[int, int]]) -> None:
    kept = Spans()
    for first, length in spans:
        kept.add(first * S // 2, (first + length) * S // 2)
    # Half seconds with a time: neighbors are less than a second apart.
    covered = sorted({at for first, length in spans for at in range(first, first + length + 1)})
    starts = [at for at in covered if at - 1 not in covered]
    ends = [at for at in covered if at + 1 not in covered]
    assert list(kept) == [
        (first * S // 2, last * S // 2) for first, last in zip(starts, ends, strict=True)
    ]


def test_the_earlier_half_of_many_spans_is_forgotten() -> None:
    spans = Spans()
    for at in range(MAX_SPANS + 1):
        spans.add(2 * at * S, 2 * at * S)
    assert next(iter(spans)) == (MAX_SPANS * S, MAX_SPANS * S)
    for at in range(MAX_SPANS):
        spans.add(-2 * at * S, -2 * at * S)
    assert len(list(spans)) == MAX_SPANS
