"""Lives of messages of recorded samples, for these tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analytics.life.life import MessageTrace, lives_found
from analytics.life.search import MessageSearch
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.where.fields import message_fields
from dissectors.where.filter import compile_where

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def searched(
    names: Sequence[str | Path], key: str | None = None, where: str = ""
) -> tuple[MessageSearch, list[MessageTrace]]:
    """Search captures in one pass; return the lives of what was found, too."""
    test = compile_where(where, message_fields()) if where else None
    search = MessageSearch(key, test)
    decode = Decode(
        [str(SAMPLES / name) for name in names], DecodeOptions(messages=True, conversations=True)
    )
    for batch in decode.records():
        search.add_exchanges(batch)
        for carried in decode.take_messages():
            search.add(carried.messages)
        search.attempts.add_connections(decode.take_conversations())
    search.attempts.add_connections(decode.take_conversations())
    return search, lives_found(search, [decode.stats])


def lives_in(*names: str | Path, key: str | None = None, where: str = "") -> list[MessageTrace]:
    """Return the lives of the messages that were found."""
    return searched(names, key, where)[1]


def events_of(life: MessageTrace) -> list[str]:
    """Return what happened, in order."""
    return [step.row.event for step in life.steps]
