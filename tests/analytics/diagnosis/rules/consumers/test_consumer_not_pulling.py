from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.problem import ProblemState
from analytics.diagnosis.rules.consumers.consumer_not_pulling import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, oneway, problems, problems_of_sample, same_in_any_order

OF = {"group": "shop", "topic": "Orders", "queue_id": 1}


def pull(at_ms: float, answer: int | None = 0, **values: Any) -> ExchangeRecord:
    return exchange(at_ms, int(RequestCode.PULL_MESSAGE), answer, **{**OF, **values})


def commits(until_ms: int, **values: Any) -> list[ExchangeRecord]:
    code = int(RequestCode.UPDATE_CONSUMER_OFFSET)
    return [
        oneway(at, code, **{**OF, "queue_offset": 7, **values})
        for at in range(0, until_ms + 1, 5000)
    ]


def test_a_client_that_commits_and_does_not_pull() -> None:
    rows = [pull(0), pull(9000), *commits(80_000)]
    (one,) = problems(RULE, rows)
    assert one.title.startswith(
        "consumer 10.0.0.9 of group shop owns 1 queue of Orders on 10.0.0.1:10911 and has not"
        " pulled since "
    )
    assert one.title.endswith("(71 s)")
    assert (one.subject.queue, one.state) == (1, ProblemState.GOING_ON)
    assert same_in_any_order(RULE, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [pull(0), *commits(35_000)],
        [pull(0), pull(1000, None, end="open"), *commits(80_000)],  # a long poll is pending
        [pull(0), pull(60_000, server_address="10.0.0.2:10911", broker_name="a"),
         pull(0, broker_name="a"), *commits(80_000)],  # from the slave
        commits(80_000),
        [pull(0, queue_id=2), *commits(80_000)],
    ],
)  # fmt: skip
def test_nothing_is_concluded(rows: list[ExchangeRecord]) -> None:
    assert problems(RULE, rows) == []


@pytest.mark.parametrize("name", ["push-consumer-5x.pcap", "consumer-lag-5x.pcap"])
def test_consumers_that_pull(name: str) -> None:
    assert problems_of_sample(RULE, name) == []
