"""Rows of messages of recorded samples, for these tests."""

from __future__ import annotations

from pathlib import Path

from dissectors.budget import Budget
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.seen_exchange import SeenExchange
from dissectors.rows.message_record import MessageRecord

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def seen_in(name: str, body_limit: int = 0) -> list[MessageRecord]:
    """Return the rows of a sample's messages in order of time."""
    decode = Decode([str(SAMPLES / name)], DecodeOptions(messages=True, body_limit=body_limit))
    rows = rows_of_run(decode)
    return sorted(rows, key=lambda row: (row.time or 0, row.packet or 0, row.place))


def rows_of_run(decode: Decode) -> list[MessageRecord]:
    """Return the rows of a run's messages, as records."""
    rows: list[MessageRecord] = []
    for _ in decode.records():
        rows += [row for carried in decode.take_messages() for row in carried.messages]
    return rows


def a_delivery() -> SeenExchange:
    """Return an exchange that delivers messages."""
    run = Decode([str(SAMPLES / "push-consumer-4x.pcap")], DecodeOptions(messages=True))
    for batch in run.exchanges():
        for one, row in zip(batch, run.rows_of(batch), strict=True):
            if row.request_name == "PULL_MESSAGE" and one.response is not None:
                return SeenExchange(one.request, one.response, row, "client", 0, Budget())
    raise AssertionError("no delivery in the sample")
