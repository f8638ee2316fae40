"""Facts of connections: declared once, read as written."""

from __future__ import annotations

from dissectors.rows.conversation_facts import (
    CONVERSATION_FACTS,
    conversation_fact,
    conversation_fact_in,
)


def test_names_are_declared_once() -> None:
    names = [one.name for one in CONVERSATION_FACTS]
    assert len(names) == len(set(names))


def test_a_fact_is_read_as_it_was_written() -> None:
    facts = [conversation_fact(one.name, place) for place, one in enumerate(CONVERSATION_FACTS)]
    for place, one in enumerate(CONVERSATION_FACTS):
        assert conversation_fact_in(facts, one.name) == str(place)
    assert conversation_fact_in([], "idle_ms") is None
