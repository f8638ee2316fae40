from __future__ import annotations

import pytest

from analytics.diagnosis.names import MAX_NAMED
from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.orderly_lock_lost import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

LOCK = int(RequestCode.LOCK_BATCH_MQ)


def lock(at_ms: float, wanted: int, got: int, client: str = "heir@1") -> ExchangeRecord:
    facts = [f"client={client}", "group=bills", f"queues_asked={wanted}", f"queues_locked={got}"]
    return exchange(at_ms, LOCK, facts=facts)


REFUSED = [lock(20_000 * number, 2, 0) for number in range(5)]


@pytest.mark.parametrize(("generation", "count"), [("4x", 8), ("5x", 97)])
def test_the_heir_of_a_consumer_that_was_killed(generation: str, count: int) -> None:
    (one,) = problems_of_sample(RULE, f"orderly-lock-lost-{generation}.pcap")
    assert one.title.startswith(f"127.0.0.1@heir of lock_group requested locks {count} times in ")
    assert (one.count, one.confidence) == (count, Confidence.LIKELY)
    assert one.details[0] == "others that got locks: 127.0.0.1@killed"


def test_a_consumer_that_asks_in_vain() -> None:
    (one,) = problems(RULE, [*REFUSED, lock(10, 4, 4, "holder@1")])
    assert one.title == (
        "heir@1 of bills requested locks 5 times in 80 s, but 10.0.0.1:10911 did not grant all"
        " of them, so the consumer could not consume the queues without a lock"
    )
    assert (one.count, one.confidence) == (5, Confidence.CERTAIN)
    assert (one.subject.client, one.subject.group) == ("heir@1", "bills")
    assert one.details[0] == "others that got locks: holder@1"


def test_the_brokers_that_are_kept_are_bounded() -> None:
    fold = RULE.new_fold("bills")
    for number in range(2 * MAX_NAMED):
        row = lock(number, 2, 0)
        row.server_address = f"10.0.0.1:{number}"
        fold.add_exchange(row)
    (client,) = fold.clients.values()  # type: ignore[attr-defined]
    assert len(client.brokers) == MAX_NAMED


def test_a_queue_that_changes_hands_is_locked_after_a_while() -> None:
    rows = [lock(at, 2, 0) for at in range(0, 20_000, 1000)]
    assert problems(RULE, [*rows, lock(21_000, 2, 2)]) == []


def test_locks_that_are_won_are_normal() -> None:
    assert problems_of_sample(RULE, "push-orderly-5x.pcap") == []
    assert problems_of_sample(RULE, "push-orderly-4x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, REFUSED)
