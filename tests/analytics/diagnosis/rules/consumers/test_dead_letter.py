from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.names import MAX_NAMED
from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.consumers.dead_letter import RULE
from analytics.diagnosis.rules.consumers.returns import Returns
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import GROUP, RECONSUME_LIMIT, RECONSUMED, fact
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)
LOCK = int(RequestCode.LOCK_BATCH_MQ)
SEND = int(RequestCode.SEND_MESSAGE_V2)


def back(at_ms: float, place: int, limit: int | None = 2, **values: Any) -> ExchangeRecord:
    chosen = {
        "group": "bills",
        "topic": "orders",
        "unique_key": "K1",
        "queue_offset": place,
        "max_reconsume_times": limit,
    }
    return exchange(at_ms, BACK, **{**chosen, **values})


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_who_returned_which_messages_how_often(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"push-retry-dlq-{generation}.pcap")
    group = f"push_retry_dlq_{generation}_group"
    assert one.title == (
        f"8 messages of {group} failed 3 times and went to %DLQ%{group};"
        " 127.0.0.1@consumer returned them"
    )
    assert (one.count, one.severity) == (8, ProblemSeverity.ERROR)
    assert (one.subject.topic, one.subject.group) == ("RetryTopic", group)
    assert one.subject.client == "127.0.0.1@consumer"


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("push-retry-dlq-5x.pcap").exchanges)


def test_a_message_that_may_be_delivered_again_is_not_dead() -> None:
    assert problems(RULE, [back(0, 1), back(10, 2)]) == []
    (one,) = problems(RULE, [back(0, 1), back(10, 2), back(20, 3)])
    assert one.title.startswith("1 message of bills failed 3 times and went to %DLQ%bills; ")


def test_refused_returns_do_not_count() -> None:
    refused = back(20, 3, answer=int(ResponseCode.SYSTEM_ERROR))
    assert problems(RULE, [back(0, 1), back(10, 2), refused]) == []


def test_both_hops_of_a_relay_are_one_return() -> None:
    hops = [
        back(at, place, server_address=server_address)
        for at, place in ((0, 1), (10, 2))
        for server_address in ("10.0.0.1:10911", "10.0.0.3:8080")
    ]
    assert problems(RULE, hops) == []


def test_a_consumer_may_ask_for_the_dead_letters_at_once() -> None:
    (one,) = problems(RULE, [back(0, 1, limit=0)])
    assert one.title == (
        "1 message of bills failed once and went to %DLQ%bills; 10.0.0.9 returned it"
    )


def sent(at_ms: float, key: str, times: int) -> ExchangeRecord:
    facts = [fact(RECONSUMED, times), fact(RECONSUME_LIMIT, 2)]
    return exchange(at_ms, SEND, topic="%RETRY%bills", unique_key=key, facts=facts)


@pytest.mark.parametrize(("times", "said", "orderly"), [(1, 0, 0), (2, 0, 1), (3, 1, 1)])
def test_a_consumer_that_sends_to_the_retry_topic_itself(
    times: int, said: int, orderly: int
) -> None:
    row, lock = sent(0, "K1", times), exchange(10, LOCK, facts=[fact(GROUP, "bills")])
    assert len(problems(RULE, [row])) == said
    assert len(problems(RULE, [row, lock])) == orderly


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_an_orderly_consumer_whose_messages_fail_too_often(generation: str) -> None:
    """A client of 4.x sends them at the limit, one of 5.x beyond it."""
    (one,) = problems_of_sample(RULE, f"orderly-dead-letters-{generation}.pcap.gz")
    assert one.title.startswith("4 messages of orderly_dead went to %DLQ%orderly_dead; ")


def test_more_messages_than_are_remembered_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Returns, "MAX_MESSAGES", 5)
    (one,) = problems(RULE, [sent(at, f"K{at:02}", 3) for at in range(20)])
    assert one.count == 20
    assert "messages: K00, K01, K02, K03, K04" in one.details


def test_the_clients_that_are_kept_are_bounded() -> None:
    fold = RULE.new_fold("bills")
    for number in range(2 * MAX_NAMED):
        row = sent(number, f"K{number}", 3)
        row.client_address = f"10.0.0.9:{number}"
        fold.add_exchange(row)
    ((*_, part),) = fold._sent.items()  # type: ignore[attr-defined]
    assert (len(part.clients), part.tally.count) == (MAX_NAMED, 2 * MAX_NAMED)


def test_a_consumer_of_grpc_says_itself_how_often_it_failed() -> None:
    """Of the call and what the proxy asks the broker for it, the call counts: by its client."""
    rows = sample("grpc-dead-letters-5x.pcap").exchanges
    (one,) = problems(RULE, rows)
    assert (one.count, one.subject.group) == (2, "refusers")
    assert one.title.startswith("2 messages of refusers failed twice and went to %DLQ%refusers;")
    client = one.subject.client
    assert client is not None
    assert client.startswith("HOST_NAME_NOT_FOUND@")
    # in local mode nothing is seen behind the call
    calls = [row for row in rows if row.request_code is None]
    (alone,) = problems(RULE, calls)
    assert (alone.title, alone.count) == (one.title, one.count)
