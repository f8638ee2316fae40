from __future__ import annotations

import msgspec
import pytest

from analytics.diagnosis.problem import Confidence
from analytics.diagnosis.rules.transactions.half_message_unresolved import RULE
from dissectors.remoting.codes import ResponseCode
from dissectors.rows import conversation_record as tcp

from ...made_rows import START, problems, problems_of_sample, same_in_any_order, sample
from .half_rows import check, end, half, later


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_a_producer_that_is_killed(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"transaction-abandoned-{generation}.pcap")
    assert one.title.startswith("1 half message of abandoned_group to AbandonedTopic is neither ")
    assert (one.count, one.confidence) == (1, Confidence.LIKELY)
    assert one.details[-1] == "the producer's connection ended before it decided 1"


def test_a_producer_that_says_nothing() -> None:
    (one,) = problems(RULE, [half(0), later(8000)])
    assert one.title == (
        "1 half message of shop to orders is neither committed nor rolled back after 8 s: consumers"
        " do not see it"
    )
    assert (one.count, one.confidence) == (1, Confidence.CERTAIN)
    assert (one.subject.group, one.subject.topic, one.subject.message) == ("shop", "orders", "K1")
    assert one.details[0] == "for 1 message, it sent no END_TRANSACTION (37)"


def test_a_producer_that_does_not_know() -> None:
    rows = [half(0), end(5, "unknown"), check(6000), end(6005, "unknown"), later(9000)]
    (one,) = problems(RULE, rows)
    assert one.details[0] == "for 1 message, the producer sent the state unknown"


def test_what_is_decided_is_no_problem() -> None:
    assert problems(RULE, [half(0), end(5, "commit"), later(9000)]) == []
    assert problems(RULE, [half(0), end(5, "rollback"), later(9000)]) == []
    assert problems(RULE, [half(0), check(6000), end(6500, "commit"), later(9000)]) == []


def test_a_local_transaction_may_take_some_seconds() -> None:
    assert problems(RULE, [half(0), later(5000)]) == []
    assert problems_of_sample(RULE, "transaction-5x.pcap") == []
    assert problems_of_sample(RULE, "transaction-4x.pcap") == []


def test_a_refused_end_decides_nothing() -> None:
    refused = end(5, "commit", response_code=int(ResponseCode.SYSTEM_ERROR), status="answered")
    assert len(problems(RULE, [half(0), refused, later(9000)])) == 1


def test_a_half_message_that_was_not_stored_is_none() -> None:
    code = int(ResponseCode.SYSTEM_BUSY)
    assert problems(RULE, [half(0, response_code=code), later(9000)]) == []


def test_a_hole_in_its_connection_may_hide_the_decision() -> None:
    connection = msgspec.structs.replace(
        sample("send-sync-5x.pcap").connections[0], capture="made.pcap", conversation=0, gaps=1
    )
    assert problems(RULE, [half(0), later(8000)], [connection]) == []


def test_an_idle_connection_makes_it_less_sure() -> None:
    connection = msgspec.structs.replace(
        sample("send-sync-5x.pcap").connections[0],
        capture="made.pcap",
        conversation=0,
        end=tcp.OPEN,
        end_time=START + 1_000_000_000,
        gaps=0,
    )
    (one,) = problems(RULE, [half(0), later(8000)], [connection])
    assert one.confidence is Confidence.LIKELY
    assert one.reason == (
        "the capture may have missed the decision: the producer's connection shows no more packets"
    )


def test_holes_in_the_capture_lower_the_confidence() -> None:
    holes = sample("removed-5x.pcap").connections
    (one,) = problems(RULE, [half(0), later(8000)], holes)
    assert one.confidence is Confidence.LIKELY


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [half(0), half(1, "K2"), half(2, "K3"), end(9, "unknown"), check(6000, "K2")]
    assert same_in_any_order(RULE, [*rows, later(9000)])
