"""Positions of a queue: states of pulls and commits, and the lag of rules and a report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.consuming import delivery
from analytics.diagnosis.rules.consumers.consumed import Commits
from analytics.diagnosis.rules.consumers.pulled import Series, messages_behind
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, oneway

PULL = int(RequestCode.PULL_MESSAGE)
COMMIT = int(RequestCode.UPDATE_CONSUMER_OFFSET)
_PLACES = st.tuples(st.integers(0, 1_000_000), st.integers(0, 500), st.integers(0, 500))
"""time in ms, offset, and more messages up to the end"""


def pull(at_ms: int, following: int, more: int, **values: Any) -> ExchangeRecord:
    facts = [f"offsets=0 {following} 0 {following + more}"]
    return exchange(at_ms, PULL, facts=facts, queue_id=0, **values)


@pytest.mark.parametrize(("end", "offset", "lag"), [(9, 4, 5), (9, 9, 0), (9, 12, 0)])
def test_the_report_and_the_rule_have_one_lag(end: int, offset: int, lag: int) -> None:
    assert messages_behind(end, offset) == lag
    queue = delivery._Queue(end=end, following=offset, committed=offset)
    assert (queue.to_fetch(), queue.to_commit()) == (lag, lag)


@given(st.lists(_PLACES, min_size=1, max_size=150), st.randoms())
def test_the_order_of_pulls_and_commits_does_not_matter(
    places: list[tuple[int, int, int]], random: Any
) -> None:
    def state(order: list[int]) -> tuple[object, ...]:
        series = Series()
        for at in order:
            series.add(pull(*places[at]))
        rows = [oneway(places[at][0], COMMIT, queue_offset=places[at][1]) for at in order]
        commits = Commits()
        for row, at in zip(rows, order, strict=True):
            commits.add(row, places[at][1])
        pulled = series.ordered()
        return pulled, commits.against(pulled), commits.ordered()

    order = list(range(len(places)))
    expected = state(order)
    random.shuffle(order)
    assert state(order) == expected
