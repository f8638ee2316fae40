"""delay-ignored and delivered-late: what messages in pulls say of their delay."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.transactions.delay_ignored import RULE
from dissectors.grpc.columns import columns_of
from dissectors.grpc.names import OK
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import START, exchange, problems, problems_of_sample, same_in_any_order
from ...show import SAMPLES, diagnosis_of

PROXY = "10.0.0.8:8081"
PULL = int(RequestCode.PULL_MESSAGE)


def pull(offset: int, timer: str, group: str = "cg") -> ExchangeRecord:
    return exchange(
        offset * 1000,
        PULL,
        topic="T",
        group=group,
        queue_id=0,
        queue_offset=offset,
        broker_name="broker-a",
        facts=[f"timer={timer}"],
    )


def test_a_broker_that_does_not_know_the_timer() -> None:
    rows = [pull(1, "10000 8 -"), pull(2, "10000 30 -"), pull(2, "10000 30 -", "other")]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "2 messages of T on broker-a asked for a delay of 10 s and were delivered after 8 ms to"
        " 30 ms: the broker ignored the delay"
    )
    assert one.count == 2, "a message that two groups got is one"
    assert same_in_any_order(RULE, rows)


def test_messages_that_come_late() -> None:
    (one,) = problems(RULE, [pull(1, "5000 32000 27000"), pull(2, "5000 5900 900")])
    assert (one.rule, one.count) == ("delivered-late", 1)
    assert one.title == (
        "1 message of T on broker-a asked for a delay of 5 s and was delivered after 32 s: up"
        " to 27 s late"
    )


@pytest.mark.parametrize("timer", ["10000 10400 400", "10000 9000 -", "0 5 -", "x 5 -", "1 2", ""])
def test_what_is_none(timer: str) -> None:
    assert problems(RULE, [pull(1, timer)]) == []


@pytest.mark.parametrize("name", ["delayed-5x.pcap", "delayed-4x.pcap", "send-timer-5x.pcap"])
def test_silent_where_delays_are_kept(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_a_broker_that_was_shut_down_when_messages_were_due() -> None:
    found = diagnosis_of([str(SAMPLES / "timer-late-5x.pcap")]).problems
    (late,) = [one for one in found if one.rule == "delivered-late"]
    assert late.consequence_of == "broker-gone"
    assert " asked for a delay of 5.76 s and was delivered after 37.5 s: " in late.title


def test_the_release_of_the_broker_chooses_the_advice() -> None:
    row = pull(1, "10000 8 -")
    row.facts = [*row.facts, "server_version=4.9.7"]
    (old,) = problems(RULE, [row])
    assert old.title.endswith(": the broker of 4.9.7 ignored the delay")
    assert old.advice.startswith("Use setDelayTimeLevel")
    row.facts = [*row.facts[:-1], "server_version=5.3.3"]
    (new,) = problems(RULE, [row])
    assert new.advice.startswith("Send delayed messages one by one")


def receive(at_ms: float, key: str, timer: str) -> ExchangeRecord:
    """What a call received; its proxy popped it from broker-a 2 ms before."""
    return exchange(
        at_ms,
        0,
        OK,
        request_code=None,
        request_name="ReceiveMessage",
        server_address=PROXY,
        topic="T",
        group="cg",
        queue_id=0,
        queue_offset=1,
        unique_key=key,
        facts=["client=host@7", f"timer={timer}"],
    )


def test_a_message_that_a_call_received() -> None:
    asked = exchange(0, 0, OK, request_code=None, request_name="QueryRoute", server_address=PROXY)
    rows = [asked, receive(10, "A", "2000 14000 12000"), receive(20, "B", "2000 2300 300")]
    (one,) = problems(RULE, rows)
    assert one.title == (
        f"1 message of T on proxy {PROXY} asked for a delay of 2 s and was delivered after 14 s: up"
        " to 12 s late"
    )
    assert one.subject == Subject(topic="T", group="cg", server=PROXY)
    assert same_in_any_order(RULE, rows)
    popped = pull(1, "2000 14000 12000")
    popped.facts.append("first_key=A")
    popped.request_time, popped.response_time = START, START + 1_000_000
    (both,) = problems(RULE, [*rows, popped])
    assert (both.count, both.subject.broker) == (1, "broker-a"), "the proxy's pop is the same one"
    (early,) = problems(RULE, [asked, receive(10, "A", "9000 8 -")])
    assert early.rule == RULE.id


def test_delays_are_those_that_a_message_says() -> None:
    system = {
        "message_id": "01",
        "delivery_timestamp": {"seconds": 12},
        "born_timestamp": {"seconds": 10},
        "store_timestamp": {"seconds": 12, "nanos": 600_000_000},
    }
    told = {"message": {"system_properties": system}}
    assert columns_of("ReceiveMessageResponse", told).facts[1:] == ["timer=2000 2600 600"]
    system["store_timestamp"] = {"seconds": 10, "nanos": 8_000_000}
    assert columns_of("ReceiveMessageResponse", told).facts[1:] == ["timer=2000 8 -"]
    del system["delivery_timestamp"]
    assert columns_of("ReceiveMessageResponse", told).facts == ["stored_ms=10008"]
