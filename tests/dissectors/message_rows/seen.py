"""Rows of messages of recorded samples, for these tests."""

from __future__ import annotations

from pathlib import Path

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import MessageRecord

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def seen_in(name: str, body_limit: int = 0) -> list[MessageRecord]:
    """Return the rows of a sample's messages in order of time."""
    decode = Decode([str(SAMPLES / name)], DecodeOptions(messages=True, body_limit=body_limit))
    rows: list[MessageRecord] = []
    for _ in decode.records():
        rows += [row for carried in decode.take_messages() for row in carried.messages]
    return sorted(rows, key=lambda row: (row.time or 0, row.packet or 0, row.place))
