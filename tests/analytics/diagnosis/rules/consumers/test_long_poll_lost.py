"""long-poll-lost: pulls without a response on connections that get others."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.consumers.long_poll_lost import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL, BEAT = int(RequestCode.PULL_MESSAGE), int(RequestCode.HEART_BEAT)


def pull(at_ms: float, queue: int = 1, answer: int | None = None) -> ExchangeRecord:
    return exchange(
        at_ms, PULL, answer, topic="T", group="cg", queue_id=queue, broker_name="broker-a"
    )


def beats(until_ms: int, conversation: int = 0) -> list[ExchangeRecord]:
    return [exchange(at, BEAT, 0, conversation=conversation) for at in range(0, until_ms, 30_000)]


def test_a_pull_that_is_never_answered() -> None:
    rows = [pull(1000), *beats(180_000)]
    (one,) = problems(RULE, rows)
    assert one.title.startswith(
        "broker-a never responded to 1 pull of group cg for queue 1 of T: no response for 2 min 29"
        " s"
    )
    assert one.title.endswith(", while the connection got other responses")
    assert same_in_any_order(RULE, rows)


def test_what_is_none() -> None:
    assert problems(RULE, [pull(1000), *beats(38_000)]) == [], "not long enough"
    assert problems(RULE, [pull(1000), *beats(180_000, conversation=5)]) == []
    assert problems(RULE, [pull(1000, answer=0), *beats(180_000)]) == []
    assert problems(RULE, [pull(170_000), *beats(180_000)]) == [], "it waits still"


@pytest.mark.parametrize(("held", "until", "found"), [(5000, 31_000, 1), (30_000, 31_000, 0)])
def test_how_long_the_pull_may_be_held(held: int, until: int, found: int) -> None:
    row = exchange(
        1000,
        PULL,
        None,
        topic="T",
        group="cg",
        queue_id=1,
        broker_name="broker-a",
        facts=["offsets=0 - - -", f"suspend_ms={held}"],
    )
    assert len(problems(RULE, [row, *beats(until)])) == found


def test_a_response_that_a_relay_swallowed() -> None:
    (one,) = problems_of_sample(RULE, "long-poll-lost-5x.pcap.gz")
    assert one.title.startswith(
        "broker-a never responded to 2 pulls of group lost_group for queues 0 and 1 of PollTopic"
    )
    rows = sample("long-poll-lost-5x.pcap.gz")
    assert same_in_any_order(RULE, rows.exchanges)


@pytest.mark.parametrize("name", ["push-consumer-5x.pcap", "consumer-killed-5x.pcap"])
def test_silent_of_long_polls_that_end(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
