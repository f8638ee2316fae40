"""Message traces as JSON values: one object per message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import text_of_time

from .life import MessageTrace, TraceStep

_GETTERS: Final = [(c.name, c.type, attrgetter(c.name)) for c in MESSAGE_COLUMNS]


def lives_as_json(lives: Sequence[MessageTrace]) -> Iterator[object]:
    """Return one object per message, with JSON types."""
    for life in lives:
        yield encodable_value(
            {
                "message": life.name,
                "topic": life.topic,
                "keys": life.keys,
                "tags": life.tags,
                "summary": life.summary,
                "unseen": life.unseen,
                "steps": [_step(step) for step in life.steps],
            }
        )


def _step(step: TraceStep) -> dict[str, object]:
    return {
        "from": {"kind": step.source.kind, "name": step.source.name},
        "to": {"kind": step.target.kind, "name": step.target.name},
        "words": step.words,
        "why": step.why or None,
        **_row(step.row),
    }


def _row(row: MessageRecord) -> dict[str, object]:
    """Return a row as in the table of messages, without absent values."""
    values: dict[str, object] = {}
    for name, kind, get in _GETTERS:
        value = get(row)
        if value is not None:
            values[name] = text_of_time(value) if kind == "time" else value
    return values
