"""broker-hung: frozen brokers, slow single requests, long polls, waits for a slave."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.network.broker_hung import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import (
    connection,
    exchange,
    problems,
    problems_of_sample,
    refused_connect,
    same_in_any_order,
    sample,
)

SEND = int(RequestCode.SEND_MESSAGE_V2)
PULL = int(RequestCode.PULL_MESSAGE)


@pytest.mark.parametrize(
    ("name", "count", "confidence", "title"),
    [
        (
            "fault-freeze-5x.pcap",
            1,
            Confidence.LIKELY,
            "broker-a (127.77.0.61:10911) hung from 08:32:43 to 08:32:44 UTC (at least 1.5 s): 1"
            " request unanswered",
        ),
        (
            "fault-freeze-plain-5x.pcap",
            13,
            Confidence.CERTAIN,
            "broker-a (127.77.0.61:10911) hung from 03:09:30 to 03:09:35 UTC (5.01 s): 11 requests"
            " unanswered, 2 answered late",
        ),
        (
            "fault-freeze-43.pcap",
            1,
            Confidence.CERTAIN,
            "broker-a (127.77.0.61:10911) hung from 04:06:25 to 04:06:29 UTC (4.21 s): 1 request"
            " answered late",
        ),
    ],
)
def test_frozen_brokers(name: str, count: int, confidence: Confidence, title: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert (one.title, one.count, one.confidence) == (title, count, confidence)
    assert one.subject == Subject(broker="broker-a")


@pytest.mark.parametrize(
    "name",
    [
        "ha-replication-5x.pcap",  # sends wait 3 s for a slave
        "push-consumer-5x.pcap",  # long polls
        "registration-5x.pcap",  # a broker asks a broker that starts
        "fault-kill-5x.pcap",
        "one-direction-5x.pcap",
        "removed-5x.pcap",
    ],
)
def test_silent_where_waiting_is_something_else(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("fault-freeze-plain-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_one_slow_request_among_quick_ones_is_no_silence() -> None:
    slow = exchange(0, SEND, latency_ms=5000, broker_name="broker-a")
    also = exchange(5, SEND, latency_ms=4500, broker_name="broker-a")
    assert problems(RULE, [slow, also], [connection(0, 9000)])
    quick = [exchange(at, SEND, broker_name="broker-a") for at in range(100, 5000, 400)]
    assert problems(RULE, [slow, also, *quick], [connection(0, 9000)]) == []


@pytest.mark.parametrize(("answered", "hung"), [(None, 1), (2, 0)])
def test_a_server_that_answers_something_else_at_once_does_not_hang(
    answered: int | None, hung: int
) -> None:
    """A broker of 3.2 never answers a batch, and a heartbeat that comes with it at once."""
    rows = [exchange(0, SEND, None, broker_name="broker-a")]
    if answered is not None:
        beat = exchange(answered, int(RequestCode.HEART_BEAT), latency_ms=1)
        rows.append(replace(beat, broker_name="broker-a"))
    given_up = connection(0, 3000, ended_by="client")
    assert len(problems(RULE, rows, [given_up])) == hung


def test_answers_that_say_that_the_broker_waited_for_its_slave_are_none() -> None:
    late = int(ResponseCode.FLUSH_SLAVE_TIMEOUT)
    rows = [exchange(at, SEND, late, 3000, broker_name="broker-a") for at in (0, 3100, 6200)]
    assert problems(RULE, rows, [connection(0, 9300)]) == []


def test_requests_that_wait_when_the_capture_ends() -> None:
    rows = [exchange(at, SEND, None, broker_name="broker-a") for at in (0, 100)]
    rows.append(exchange(4000, PULL, 19, server_address="10.0.0.3:10911", broker_name="broker-b"))
    (one,) = problems(RULE, rows, [connection(0, 4000, end="open", ended_by=None)])
    assert one.confidence is Confidence.POSSIBLE


def test_a_broker_that_hangs_at_its_start_and_again_later() -> None:
    """The first silence follows from the restart, the second one does not."""
    rows = [
        exchange(0, SEND, 0, 1, conversation=1),
        exchange(10_000, SEND, None, conversation=2, end="closed"),
        exchange(10_001, PULL + 1000, None, conversation=2, end="closed"),
        exchange(15_000, SEND, 0, 1, conversation=3),
        exchange(30_000, SEND, 0, 3000, conversation=3),
        exchange(50_000, SEND, 0, 4000, conversation=3),
    ]
    connections = [
        connection(0, 5000, 1),
        *(refused_connect(at, 10 + at, client_address="10.0.0.9:1") for at in (6000, 9500)),
        connection(9900, 1500, 2),
        connection(14_000, 50_000, 3),
    ]
    start, later = sorted(problems(RULE, rows, connections), key=lambda one: one.first_time)
    assert "right after its start: " in start.title
    assert later.title.endswith("(4 s), and once more: 2 requests answered late")
    assert later.details[-1] == (
        "all times: from 11:07:10 to 11:07:13 UTC (3 s), from 11:07:30 to 11:07:34 UTC (4 s)"
    )


def test_what_waited_through_a_silence_is_answered_one_after_the_other() -> None:
    """A broker that goes on works off what is in its sockets: the last answer comes later."""
    rows = [exchange(0, SEND, 0, 1, conversation=1)]
    rows += [
        exchange(10_000 + at, SEND, 0, 5000 + 40 * at, conversation=1, opaque=at)
        for at in range(20)
    ]
    rows.append(exchange(14_900, SEND, 0, 500, conversation=1))  # hardly waited
    rows.append(exchange(16_000, SEND, 0, 600, conversation=1))  # is slow by itself
    (one,) = problems(RULE, rows, [connection(0, 30_000, 1)])
    assert one.title.endswith("UTC (5.04 s): 20 requests answered late")
