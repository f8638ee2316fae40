from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers import consumer_lag
from analytics.diagnosis.rules.consumers.consumer_lag import RULE
from analytics.diagnosis.rules.consumers.pulled import Point
from dissectors.grpc.names import OK
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import (
    BROKER,
    NAMESRV,
    START,
    exchange,
    oneway,
    problems,
    problems_of_sample,
    same_in_any_order,
)

PULL = int(RequestCode.PULL_MESSAGE)
COMMIT = int(RequestCode.UPDATE_CONSUMER_OFFSET)
CLAIM = int(RequestCode.QUERY_CONSUMER_OFFSET)
OF = {"topic": "orders", "group": "bills", "queue_id": 0}


def pull(at_ms: float, following: int, end: int, **values: Any) -> ExchangeRecord:
    facts = [f"offsets={following - 1} {following} 0 {end}"]
    return exchange(at_ms, PULL, **{**OF, "facts": facts, **values})


BEHIND = [pull(1000 * second, 2 * second, 8 * second) for second in range(1, 91)]


@pytest.mark.parametrize(("generation", "most", "left"), [("4x", 81, 69), ("5x", 79, 61)])
def test_a_real_consumer_that_is_too_slow(generation: str, most: int, left: int) -> None:
    (one,) = problems_of_sample(RULE, f"consumer-lag-{generation}.pcap")
    assert one.title.startswith(
        f"lag_group falls behind in LagTopic: from 0 to {most} messages in "
    )
    assert one.title.endswith("/s arrive, 2.0/s are fetched")
    assert (one.count, one.confidence) == (left, Confidence.LIKELY)
    assert (one.subject.client, one.subject.queue) == ("127.0.0.1@slow", 0)


def test_a_group_that_is_slower_than_its_producers() -> None:
    (one,) = problems(RULE, BEHIND)
    assert one.title == (
        "bills falls behind in orders: from 6 to 540 messages in 89 s; 8.0/s arrive, 2.0/s are"
        " fetched"
    )
    assert (one.count, one.confidence) == (540, Confidence.CERTAIN)
    assert (one.subject.group, one.subject.topic, one.subject.queue) == ("bills", "orders", 0)


def test_a_group_that_fetches_all_and_consumes_little() -> None:
    """It holds 1000 messages of a queue in memory, which is no lag of its pulls."""
    pulls = [pull(1000 * second, 8 * second, 8 * second) for second in range(1, 91)]
    commits = [oneway(5000 * at, COMMIT, queue_offset=5 * at, **OF) for at in range(1, 18)]
    (one,) = problems(RULE, [*pulls, *commits])
    assert one.title == (
        "bills falls behind in orders: from 19 to 579 messages in 80 s; 8.0/s arrive, 1.0/s are"
        " consumed"
    )
    assert one.evidence[0].what == "queue 0: consumed up to 5 of 24, 19 behind"
    assert same_in_any_order(RULE, [*pulls, *commits])
    in_time = [oneway(5000 * at, COMMIT, queue_offset=39 * at, **OF) for at in range(1, 18)]
    assert problems(RULE, [*pulls, *in_time]) == []


def test_many_queues_are_not_looked_at_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    at = consumer_lag._at

    def counting(points: list[Point], time: int) -> Point:
        nonlocal looks
        looks += 1
        return at(points, time)

    monkeypatch.setattr(consumer_lag, "_at", counting)
    queues = range(50)
    rows = [
        pull(1000 * second + queue, 2 * second, 8 * second, queue_id=queue)
        for second in range(1, 61)
        for queue in queues
    ]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("bills falls behind in orders: from 300 to 18,000 messages in 59 s")
    assert looks <= 10 * len(queues)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=9),
        min_size=1,
        max_size=5,
    )
)
def test_the_lag_at_each_time_is_that_of_the_latest_pulls(queues: list[list[Any]]) -> None:
    series = [
        [Point(time, 0, lag, "c", 1, 0, "") for time, lag in sorted(points)] for points in queues
    ]
    times = sorted({point.time for points in series for point in points})
    behind = [sum(consumer_lag._at(points, time).lag for points in series) for time in times]
    assert consumer_lag._lags(series) == (times, behind)


def test_a_short_while_says_less() -> None:
    (one,) = problems(RULE, BEHIND[:15])
    assert one.confidence is Confidence.LIKELY
    assert problems(RULE, BEHIND[:8]) == []


def test_a_backlog_that_gets_smaller_is_normal() -> None:
    rows = [pull(1000 * second, 50 * second, 10_000 + 2 * second) for second in range(60)]
    assert problems(RULE, rows) == []


def test_a_burst_that_is_worked_off_is_normal() -> None:
    rows = [
        pull(1000 * second, 32 * second, max(32 * second, 1500 if second > 20 else 0))
        for second in range(60)
    ]
    assert problems(RULE, rows) == []


def test_both_hops_of_a_relay_are_one() -> None:
    inner = [
        pull(1000 * second, 2 * second, 8 * second, server_address="10.0.0.3:8080", broker_name="b")
        for second in range(1, 91)
    ]
    outer = [
        pull(1000 * second, 2 * second, 8 * second, broker_name="b") for second in range(1, 91)
    ]
    (one,) = problems(RULE, inner + outer)
    assert one.count == 540


def test_a_group_of_that_name_in_another_cluster_hides_no_lag() -> None:
    second, code = "10.1.0.1:10911", int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    routes = [
        exchange(
            0,
            code,
            server_address=NAMESRV,
            topic="orders",
            brokers=[f"broker-a={address}"],
            facts=["route=6 4 4 0 broker-a"],
        )
        for address in (BROKER, second)
    ]
    healthy = [pull(500 * at, 4 * at, 4 * at) for at in range(1, 181)]
    behind = [pull(1000 * at, 2 * at, 8 * at, server_address=second) for at in range(1, 91)]
    (one,) = problems(RULE, [*routes, *healthy, *behind])
    assert one.title.startswith("bills falls behind in orders: from 6 to 540 messages in 89 s")


def test_members_of_a_broadcasting_group_each_have_their_own_place() -> None:
    rows = [
        pull(
            1000 * second + number,
            (8 - 6 * number) * second,
            8 * second,
            client_address=client_address,
        )
        for second in range(1, 91)
        for number, client_address in enumerate(("10.0.0.7:1", "10.0.0.8:1"))
    ]
    assert problems(RULE, rows) == []


def test_a_queue_that_moves_to_another_member_is_still_followed() -> None:
    rows = [
        pull(1000 * second, 2 * second, 8 * second, client_address=f"10.0.0.{1 + second // 45}:1")
        for second in range(1, 91)
    ]
    assert len(problems(RULE, rows)) == 1


def test_a_queue_that_moves_there_and_back_is_still_followed() -> None:
    """A new member takes the queue and leaves: the first one pulls during the whole time."""
    pulls = [
        pull(
            1000 * second,
            2 * second,
            8 * second,
            client_address=f"10.0.0.{2 if 30 <= second < 60 else 1}:1",
        )
        for second in range(1, 91)
    ]
    claims = [
        exchange(1000 * second - 5, CLAIM, client_address=f"10.0.0.{host}:1", **OF)
        for host, second in ((1, 1), (2, 30), (1, 60))
    ]
    (one,) = problems(RULE, [*pulls, *claims])
    assert one.count == 540
    assert same_in_any_order(RULE, [*pulls, *claims])


def test_the_message_that_holds_a_queue_up_is_named() -> None:
    commits = [oneway(5000 * number, COMMIT, queue_offset=7, **OF) for number in range(20)]
    blocking = pull(0, 20, 20, queue_offset=7)
    blocking.facts = [*blocking.facts, "first_key=0A00000A1F9018B4AAC2000000000007"]
    rows = [blocking, *commits]
    (one,) = problems(RULE, rows)
    assert "queue 0 of orders at message 0A00000A1F9018B4AAC2000000000007: its" in one.title
    assert same_in_any_order(RULE, rows)
    lock = exchange(0, int(RequestCode.LOCK_BATCH_MQ), 0, facts=["group=bills"])
    (one,) = problems(RULE, [*rows, lock])
    assert one.details[0].startswith("the group is orderly")


def test_a_queue_that_stands_still() -> None:
    commits = [oneway(5000 * number, COMMIT, queue_offset=7, **OF) for number in range(20)]
    (one,) = problems(RULE, [pull(0, 20, 20), *commits])
    assert one.title == (
        "bills is stuck in queue 0 of orders at offset 7: its committed offset has not moved for"
        " 95 s although 13 messages are behind it"
    )
    assert one.details == [
        "13 of these messages were fetched: a concurrent consumer may have consumed them, and gets"
        " them again after a restart"
    ]
    assert problems(RULE, [pull(0, 7, 7), *commits]) == []


def test_healthy_consumers_do_not_lag() -> None:
    for name in ("push-consumer-5x.pcap", "push-orderly-5x.pcap", "lite-pull-5x.pcap"):
        assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, BEHIND)


def test_a_queue_that_stood_still_and_moved_on() -> None:
    before = [oneway(1000 + 5000 * number, COMMIT, queue_offset=3, **OF) for number in range(3)]
    stood = [oneway(20_000 + 5000 * number, COMMIT, queue_offset=7, **OF) for number in range(20)]
    after = [oneway(150_000 + 5000 * number, COMMIT, queue_offset=20, **OF) for number in range(3)]
    rows = [pull(15_000, 20, 20), *before, *stood, *after]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "bills was stuck in queue 0 of orders at offset 7: its committed offset did not move for"
        " 95 s although 13 messages were behind it, and then moved on"
    )
    assert one.state == "ended"
    assert same_in_any_order(RULE, rows)
    (other,) = problems(RULE, [*rows[:1], *before, *stood])
    assert other.title.startswith("bills is stuck in queue 0 of orders")


def test_messages_that_get_older_but_are_all_acknowledged() -> None:
    rows = []
    for second in range(90):
        for late, name in ((0, "ReceiveMessage"), (100, "AckMessage")):
            row = exchange(1000 * second + late, 0, OK, group="bills", topic="orders")
            row.request_code, row.request_name, row.message_count = None, name, 10
            if name == "ReceiveMessage":
                row.facts = [f"stored_ms={START // 1_000_000 + 500 * second}"]
            rows.append(row)
    (one,) = problems(RULE, rows)
    assert one.title.startswith("bills falls behind in orders: the messages that it receives get")
    assert one.impact == {}, "none waits unacknowledged"
