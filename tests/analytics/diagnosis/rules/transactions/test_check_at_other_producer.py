from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.rules.transactions.check_at_other_producer import RULE
from dissectors.rows.record import ExchangeRecord

from ...made_rows import CLIENT, exchange, problems, problems_of_sample, same_in_any_order
from .half_rows import HEARTBEAT, check, end, half

OTHER = "10.0.0.10:40000"


def beat(endpoint: str, client: str) -> ExchangeRecord:
    return exchange(0, HEARTBEAT, client_address=endpoint, facts=[f"client={client}"])


def answered(decision: str, client_address: str = OTHER, **values: Any) -> ExchangeRecord:
    facts = [f"decision={decision}", "transaction_id=K1", "checked=1"]
    return end(6005, decision, client_address=client_address, facts=facts, **values)


KNOWN = [beat(CLIENT, "pay@1"), beat(OTHER, "refund@2"), half(0), check(6000, server_address=OTHER)]


def test_another_client_rolls_it_back() -> None:
    rows = [*KNOWN, answered("rollback")]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "half message K1 of shop to orders was sent by pay@1 and rolled back by refund@2, which the"
        " broker asked instead"
    )
    assert one.confidence == "likely"
    assert same_in_any_order(RULE, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [*KNOWN, answered("commit")],  # it found the transaction
        [*KNOWN, answered("rollback", client_address=CLIENT)],
        [half(0), check(6000, server_address=OTHER), answered("rollback")],  # ids unknown
        [beat(CLIENT, "pay@1"), beat(OTHER, "pay@1"), half(0), answered("rollback")],
    ],
)
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


def test_a_healthy_producer() -> None:
    assert problems_of_sample(RULE, "transaction-5x.pcap") == []
