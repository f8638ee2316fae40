"""Facts of connections: declared once, read as written."""

from __future__ import annotations

from dissectors.rows.conversation_facts import (
    CONVERSATION_FACTS,
    Late,
    conversation_fact,
    conversation_fact_in,
    late_fact,
    late_in,
)
from tests.analytics.diagnosis.made_rows import connection


def test_names_are_declared_once() -> None:
    names = [one.name for one in CONVERSATION_FACTS]
    assert len(names) == len(set(names))


def test_a_fact_is_read_as_it_was_written() -> None:
    facts = [conversation_fact(one.name, place) for place, one in enumerate(CONVERSATION_FACTS)]
    for place, one in enumerate(CONVERSATION_FACTS):
        assert conversation_fact_in(facts, one.name) == str(place)
    assert conversation_fact_in([], "idle_ms") is None


def test_late_segments_are_read_back() -> None:
    late = [Late("client", 3, 250_000_000), Late("server", 1, 60_000_000)]
    row = connection(0, 9000, facts=[late_fact(one) for one in late])
    assert late_in(row) == late
    for fact in ("late=", "late=client 1", "late=nobody 1 2", "late=client x 2", "late=client 1 -"):
        assert late_in(connection(0, 9000, facts=[fact])) == []
