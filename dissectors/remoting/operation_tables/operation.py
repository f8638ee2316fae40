"""The row type of the operation tables: what a request code carries, who sends it to whom."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """What is known of one request code."""

    request_header: str | None = None
    """Java class of the request's ext fields."""
    response_header: str | None = None
    """Java class of the response's ext fields."""
    request_body: str | None = None
    """Java class, or a form: raw-message, batch-messages, properties-text, text, json-list:X, …"""
    response_body: str | None = None
    """As `request_body`, of a successful response."""
    who: str = ""
    """Usual pair, `producer->broker`; brokers also act as clients and the proxy forwards."""
    mode: str = "sync"
    """sync, async, any (sync, async or oneway), oneway, internal; empty for unused codes."""
    since: str = ""
    """First release with the code; `>5.5.0` is in none up to that one."""
    note: str = ""
    """What the columns cannot say."""
