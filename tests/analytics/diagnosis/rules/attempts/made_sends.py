"""Made sends: one UNIQ_KEY a message, and connections that end as clients end them."""

from __future__ import annotations

from typing import Any

from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...made_rows import connection, exchange

SEND = int(RequestCode.SEND_MESSAGE_V2)
OTHER = "10.0.0.3:10911"
"""address of broker-b"""


def key_of(number: int) -> str:
    """Return a UNIQ_KEY that says nothing of its time."""
    return f"made-key-{number}"


def send(
    at_ms: float, number: int, answer: int | None = 0, latency_ms: float = 1, **values: Any
) -> ExchangeRecord:
    """Return a send of a message to broker-a, or where `server_address` says, broker-b."""
    given = {
        "topic": "Orders",
        "group": "shop",
        "unique_key": key_of(number),
        "broker_name": "broker-b" if values.get("server_address") == OTHER else "broker-a",
        "queue_id": 0,
        "offset_msg_id": f"{number}{at_ms}" if answer == 0 else None,
    }
    return exchange(at_ms, SEND, answer, latency_ms, **{**given, **values})


def given_up(
    at_ms: float, number: int, after_ms: float, conversation: int, **values: Any
) -> tuple[ExchangeRecord, ConversationRecord]:
    """Return a send without answer and its connection, which the client closes at last."""
    row = send(at_ms, number, None, conversation=conversation, end="closed", **values)
    return row, connection(at_ms - 1, after_ms + 1, conversation)
