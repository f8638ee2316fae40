"""Rows of half messages for the tests of the rules about them."""

from __future__ import annotations

from typing import Any

from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, CLIENT, exchange, oneway

SEND = int(RequestCode.SEND_MESSAGE_V2)
END = int(RequestCode.END_TRANSACTION)
CHECK = int(RequestCode.CHECK_TRANSACTION_STATE)
HEARTBEAT = int(RequestCode.HEART_BEAT)


def half(at_ms: float, key: str = "K1", **values: Any) -> ExchangeRecord:
    """Return the send of a half message."""
    chosen = {
        "topic": "orders",
        "group": "shop",
        "unique_key": key,
        "facts": ["transaction=prepared"],
    }
    return exchange(at_ms, SEND, **{**chosen, **values})


def end(at_ms: float, decision: str, key: str = "K1", **values: Any) -> ExchangeRecord:
    """Return what the producer decided."""
    facts = [f"decision={decision}", f"transaction_id={key}"]
    return oneway(at_ms, END, **{"group": "shop", "unique_key": key, "facts": facts, **values})


def check(at_ms: float, key: str = "K1", **values: Any) -> ExchangeRecord:
    """Return a question of the broker."""
    chosen = {
        "client_address": BROKER,
        "server_address": CLIENT,
        "facts": [f"transaction_id={key}"],
    }
    return oneway(at_ms, CHECK, **{**chosen, **values})


def later(at_ms: float) -> ExchangeRecord:
    """Return an exchange that only shows that the capture went on."""
    return exchange(at_ms, HEARTBEAT)
