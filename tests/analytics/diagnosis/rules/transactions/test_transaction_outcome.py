from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.transactions.transaction_outcome import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order, sample
from .half_rows import check, end, half


def test_what_became_of_four_half_messages() -> None:
    (one,) = problems_of_sample(RULE, "transaction-5x.pcap")
    assert one.title == (
        "4 half messages of tx_group to TransactionTopic: 2 committed, 1 rolled back, 1 not"
        " decided; the broker checked back 4 times"
    )
    assert (one.severity, one.count) == (ProblemSeverity.INFO, 4)
    assert one.details == [
        "C000020A03404E0E2F2A67837A8F0003: not decided in the capture; checked once; unknown twice",
        "C000020A03404E0E2F2A67837A5B0000: committed by the producer itself; checked once;"
        " unknown once",
        "C000020A03404E0E2F2A67837A780001: rolled back by the producer itself; checked once;"
        " unknown once",
        "C000020A03404E0E2F2A67837A8A0002: committed in response to a check; checked once;"
        " unknown once",
    ]


def test_checks_of_4x_do_not_name_the_topic() -> None:
    (one,) = problems_of_sample(RULE, "transaction-4x.pcap")
    assert one.title == (
        "4 half messages of tx_group to TransactionTopic: 2 committed, 2 rolled back; the broker"
        " checked back 3 times"
    )


def test_messages_that_were_decided_at_once_are_not_told() -> None:
    rows = [half(0), end(5, "commit"), half(10, "K2"), end(15, "rollback", "K2")]
    assert problems(RULE, rows) == []


def test_where_nothing_was_decided_other_rules_tell_it() -> None:
    assert problems_of_sample(RULE, "transaction-undecided-5x.pcap") == []
    assert problems_of_sample(RULE, "transaction-abandoned-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("transaction-5x.pcap").exchanges)


def test_where_the_capture_ends_before_the_broker_could_ask() -> None:
    """The producer said unknown and was killed: that nothing is decided is all that is seen."""
    (one,) = problems(RULE, [half(0), end(5, "unknown"), half(10, "K2"), end(15, "unknown", "K2")])
    assert one.title.endswith(": 2 not decided; the broker checked back 0 times")
    old = [half(0), end(5, "unknown"), half(20_000, "K2"), end(20_005, "unknown", "K2")]
    assert problems(RULE, old) == []


def test_contradictory_ends_are_neither_committed_nor_rolled_back() -> None:
    rows = [
        half(0),
        end(5, "commit"),
        end(6005, "rollback"),
        half(10, "K2"),
        end(15, "commit", "K2"),
    ]
    (one,) = problems(RULE, [*rows, check(6000)])
    assert one.title.endswith(
        ": 1 committed, 1 committed and rolled back; the broker checked back once"
    )
    assert one.details[0] == "K1: committed first and rolled back later; checked once"


def test_transactions_by_grpc_are_seen_without_the_hop_behind_the_proxy() -> None:
    rows = sample("grpc-send-5x.pcap")
    calls = [row for row in rows.exchanges if row.request_code is None]
    (one,) = problems(RULE, calls)
    assert one.title.endswith(": 2 committed, 1 rolled back; the broker checked back once")
    (whole,) = problems(RULE, rows.exchanges)
    assert whole.count == one.count == 3
