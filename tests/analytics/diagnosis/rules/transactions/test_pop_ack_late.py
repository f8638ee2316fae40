from __future__ import annotations

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.transactions.pop_ack_late import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import START, exchange, problems, problems_of_sample, same_in_any_order

ACK = int(RequestCode.ACK_MESSAGE)
POP = int(RequestCode.POP_MESSAGE)


def ack(at_ms: float, deadline_ms: int) -> ExchangeRecord:
    facts = [f"deadline_ms={START // 1_000_000 + deadline_ms}"]
    return exchange(at_ms, ACK, topic="orders", group="bills", facts=facts)


LATE = [ack(10_000, 8000), ack(12_000, 7500), ack(12_000, 20_000)]


def test_real_acknowledgements_that_came_too_late() -> None:
    (one,) = problems_of_sample(RULE, "pop-late-5x.pcap")
    assert one.title == (
        "late_group acknowledged 2 messages of LateTopic too late, by up to 3.37 s: the broker"
        " redelivers such messages"
    )
    assert one.details == ["2 of 5 acknowledgements were late"]


def test_acknowledgements_after_the_invisible_time() -> None:
    (one,) = problems(RULE, LATE)
    assert one.title == (
        "bills acknowledged 2 messages of orders too late, by up to 4.5 s: the broker redelivers"
        " such messages"
    )
    assert (one.count, one.confidence) == (2, Confidence.LIKELY)
    assert one.details[0] == "2 of 3 acknowledgements were late"


def test_what_clocks_may_be_apart_says_nothing() -> None:
    assert problems(RULE, [ack(8500, 8000)]) == []


def test_acknowledgements_in_time_are_normal() -> None:
    assert problems_of_sample(RULE, "pop-calls-5x.pcap") == []
    assert problems_of_sample(RULE, "pop-push-5x.pcap") == []


def pop(at_ms: float, messages: int = 2, group: str = "bills") -> ExchangeRecord:
    return exchange(at_ms, POP, topic="orders", group=group, message_count=messages)


POPPED = [pop(3000 * number) for number in range(12)]


def test_a_group_that_acknowledges_nothing() -> None:
    """As the Java consumer does where each message takes longer than popInvisibleTime."""
    (one,) = problems(RULE, POPPED)
    assert one.title == (
        "bills popped 24 messages of orders in 33 s and acknowledged none: the broker keeps"
        " redelivering them"
    )
    assert (one.count, one.confidence) == (24, Confidence.POSSIBLE)
    assert same_in_any_order(RULE, POPPED)


def test_few_pops_a_short_while_and_groups_that_acknowledge() -> None:
    assert problems(RULE, POPPED[:10]) == []
    assert problems(RULE, [pop(3000 * number, 1) for number in range(12)]) == []
    assert problems(RULE, [*POPPED, ack(9000, 60_000)]) == []
    batch = exchange(9000, int(RequestCode.BATCH_ACK_MESSAGE))  # names no group
    assert problems(RULE, [*POPPED, batch]) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, LATE)


def test_an_acknowledgement_by_grpc_that_the_proxy_refuses() -> None:
    row = ack(14_000, 10_000)
    row.request_code, row.request_name, row.response_code = None, "AckMessage", 40013
    (one,) = problems(RULE, [row])
    assert one.title == (
        "bills acknowledged 1 message of orders too late, by up to 4 s: the broker redelivers such"
        " messages"
    )
    assert one.confidence == Confidence.CERTAIN
    row.response_code = 20000
    assert problems(RULE, [row]) == [], "the proxy prolonged it"
    early = ack(9_000, 10_000)
    early.request_code, early.request_name, early.response_code = None, "AckMessage", 40013
    assert problems(RULE, [early]) == [], "refused for another reason"


def received(
    at_ms: float, delivery: int, key: str = "K1", name: str = "ReceiveMessage"
) -> ExchangeRecord:
    row = exchange(at_ms, POP, topic="orders", group="bills", unique_key=key, message_count=1)
    row.request_code, row.request_name, row.response_code = None, name, 20000
    row.facts = [f"reconsumed={delivery - 1}"] if delivery > 1 else []
    return row


AGAIN = [received(10_000 * delivery, delivery) for delivery in range(1, 6)]


def test_a_grpc_consumer_that_never_acknowledges_a_message() -> None:
    (one,) = problems_of_sample(RULE, "grpc-never-acknowledged-5x.pcap.gz")
    assert one.title == (
        "forgetful_simple received message 010A3592BD0950015C0B20293A00000001 5 times without"
        " acknowledging it in time"
    )
    assert (one.count, one.advice, len(one.evidence)) == (1, RULE.grpc_advice, 4)
    assert same_in_any_order(RULE, AGAIN)


def test_messages_that_were_received_twice_or_returned() -> None:
    assert [one.count for one in problems(RULE, AGAIN)] == [1]
    assert problems(RULE, AGAIN[:2]) == []
    assert problems(RULE, AGAIN[4:]) == [], "it may have been returned before the capture"
    returned = received(15_000, 1, name="ChangeInvisibleDuration")
    returned.facts = ["deadline_ms=1"]
    assert problems(RULE, [*AGAIN, returned]) == []
    (one,) = problems(RULE, [*AGAIN, *(received(9000 * at, at, "K2") for at in range(1, 4))])
    assert one.title == (
        "bills received 2 messages up to 5 times without acknowledging them in time"
    )
    assert (one.count, one.subject.message) == (2, None)
