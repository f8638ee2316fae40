from __future__ import annotations

from analytics.diagnosis.rules.transactions.pop_polling_full import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample

POP = int(RequestCode.POP_MESSAGE)
FULL = int(ResponseCode.POLLING_FULL)
TIMEOUT = int(ResponseCode.POLLING_TIMEOUT)
OTHER = int(RequestCode.UPDATE_AND_CREATE_TOPIC)


def pop(at_ms: float, answer: int = FULL, code: int = POP) -> ExchangeRecord:
    return exchange(at_ms, code, answer, topic="orders", group="bills")


def test_a_real_broker_that_holds_back_nothing() -> None:
    (one,) = problems_of_sample(RULE, "pop-full-5x.pcap")
    assert one.title == (
        "broker-a rejected 6 pops of full_group for FullTopic: too many already wait for messages"
    )
    assert (one.count, one.subject.broker) == (6, "broker-a")


def test_pops_that_are_sent_away() -> None:
    (one,) = problems(RULE, [pop(0), pop(1), pop(2)])
    assert one.title == (
        "10.0.0.1:10911 rejected 3 pops of bills for orders: too many already wait for messages"
    )
    assert (one.count, one.subject.topic, one.subject.group) == (3, "orders", "bills")


def test_a_pop_that_waited_in_vain_is_normal() -> None:
    assert problems(RULE, [pop(0, TIMEOUT)]) == []
    assert problems_of_sample(RULE, "pop-calls-5x.pcap") == []


def test_the_number_means_something_else_to_administrators() -> None:
    assert problems(RULE, [pop(0, code=OTHER)]) == []
