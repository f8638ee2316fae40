from __future__ import annotations

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.consumers.reconsume_growth import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample
from .test_dead_letter import back

AGAIN = [back(10 * place, place, limit=16) for place in range(1, 5)]


def test_a_message_that_is_returned_again_and_again() -> None:
    (one,) = problems(RULE, AGAIN)
    assert one.title == (
        "bills failed to consume message K1 4 times; the broker keeps redelivering it"
    )
    assert (one.count, one.subject.message, one.subject.topic) == (1, "K1", "orders")


def test_two_returns_are_no_problem() -> None:
    assert problems(RULE, AGAIN[:2]) == []


def pop(at_ms: float, again: int, key: str = "K1") -> ExchangeRecord:
    facts = [f"first_key={key}", f"reconsumed={again}"]
    code = int(RequestCode.POP_MESSAGE)
    return exchange(at_ms, code, topic="orders", group="bills", message_count=1, facts=facts)


POPPED = [pop(10_000 * again, again) for again in range(1, 5)]


def test_a_message_that_is_popped_again_and_again() -> None:
    (one,) = problems(RULE, POPPED)
    assert one.title == (
        "bills failed to consume message K1 4 times; the broker keeps redelivering it"
    )
    assert one.details[0].startswith("received by ")
    assert problems(RULE, POPPED[:2]) == []
    assert same_in_any_order(RULE, [*POPPED, *(pop(9000 * at, at, "K2") for at in (2, 3))])


def test_pops_of_a_proxy_are_not_counted_beside_its_calls() -> None:
    rows = sample("grpc-never-acknowledged-5x.pcap.gz").exchanges
    assert problems(RULE, rows) == [], "it was not returned"
    (one,) = problems(RULE, [row for row in rows if row.request_name != "ReceiveMessage"])
    assert one.title == (
        "forgetful_simple failed to consume message 010A3592BD0950015C0B20293A00000001 4 times;"
        " the broker keeps redelivering it"
    )


def test_dead_letters_are_told_by_their_own_rule() -> None:
    assert problems_of_sample(RULE, "push-retry-dlq-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    others = [back(10 * place + 1, place, limit=16, unique_key="K2") for place in range(5, 9)]
    assert same_in_any_order(RULE, AGAIN + others)


def test_an_old_client_gives_each_delivery_another_id() -> None:
    rows = [back(10 * place, place, limit=None, unique_key=f"K{place}") for place in range(1, 17)]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("bills returned 16 deliveries within ")
    assert one.confidence is Confidence.LIKELY
    assert problems(RULE, rows[:15]) == []
    newer = [back(10 * one, one, limit=16, unique_key=f"K{one}") for one in range(1, 17)]
    assert problems(RULE, newer) == []
