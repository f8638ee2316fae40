from __future__ import annotations

from analytics.diagnosis.rules.transactions.transaction_ends_contradict import RULE

from ...made_rows import problems, problems_of_sample, same_in_any_order
from .half_rows import end, half

OTHER = "10.0.0.10:40000"
ROWS = [half(0), end(5, "rollback"), end(6005, "commit", client_address=OTHER)]


def test_a_rollback_and_a_commit() -> None:
    (one,) = problems(RULE, ROWS)
    assert one.title == (
        "half message K1 of shop to orders was both committed and rolled back; a commit"
        " delivers the message even after a rollback"
    )
    assert one.details == ["K1: rollback by 10.0.0.9, then commit by 10.0.0.10"]
    assert same_in_any_order(RULE, ROWS)


def test_the_same_decision_twice_is_no_contradiction() -> None:
    assert problems(RULE, [half(0), end(5, "commit"), end(6005, "commit")]) == []
    assert problems_of_sample(RULE, "transaction-5x.pcap") == []
