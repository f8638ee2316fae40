"""response-unreadable: connections that a consumer ends when a response arrives."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.consumers.response_unreadable import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...made_rows import connection, exchange, problems, problems_of_sample, same_in_any_order

PULL = int(RequestCode.PULL_MESSAGE)
LEAVES = int(RequestCode.UNREGISTER_CLIENT)


def pull(number: int, offset: int = 7) -> ExchangeRecord:
    return exchange(
        number * 1000,
        PULL,
        conversation=number,
        topic="T",
        group="cg",
        queue_id=0,
        queue_offset=offset,
        response_bytes=20_000,
        broker_name="broker-a",
    )


def ended(number: int, after_ms: float = 10, **values: str) -> ConversationRecord:
    return connection(number * 1000, 1 + after_ms, number, **values)


def test_the_same_offset_is_pulled_again_and_again() -> None:
    rows, connections = [pull(one) for one in range(3)], [ended(one) for one in range(3)]
    (one,) = problems(RULE, rows, connections)
    assert one.title == (
        "10.0.0.9 of group cg closes its connection to broker-a when the response to its pull of"
        " queue 0 of T arrives (20,000 bytes), and pulls offset 7 again: 3 times"
    )
    assert same_in_any_order(RULE, rows, connections)


def test_what_is_none() -> None:
    rows = [pull(one) for one in range(3)]
    assert problems(RULE, rows[:1], [ended(0)]) == [], "once: it was stopped"
    late = [ended(one, after_ms=5000) for one in range(3)]
    assert problems(RULE, rows, late) == [], "long after the response"
    by_broker = [ended(one, ended_by="server") for one in range(3)]
    assert problems(RULE, rows, by_broker) == []
    other = [pull(one, offset=one) for one in range(3)]
    assert problems(RULE, other, [ended(one) for one in range(3)]) == [], "it goes on"
    leaves = [exchange(one * 1000 + 2, LEAVES, conversation=one) for one in range(3)]
    assert problems(RULE, [*rows, *leaves], [ended(one) for one in range(3)]) == []


@pytest.mark.parametrize("name", ["consumer-killed-5x.pcap", "lite-pull-5x.pcap"])
def test_silent_of_consumers_that_stop(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
