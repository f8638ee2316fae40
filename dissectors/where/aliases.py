"""Names that a filter of exchanges takes beside the columns: what tables and reports show.

Rules: each name stands once, in `ALIASES`; an alias is a column by another name, or a value made
of columns. Whoever has rows of another form (Spark) makes the value from the same columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..endpoint import host_of
from ..rows.outcome import FAILED, UNANSWERED
from ..rows.record import ANSWERED


class Alias(NamedTuple):
    """One more name."""

    name: str
    """as it is written in a filter"""
    meaning: str
    """what it is, for the documents"""
    columns: tuple[str, ...]
    """columns that it is made of"""
    value: Callable[..., object] | None = None
    """values of the columns → its value; None: it is the one column, by another name"""
    type: str = ""
    """string, int, time, bool or list; empty: that of the one column"""


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _outcome(status: object, response_name: object) -> object:
    return response_name if status == ANSWERED else status


def _failed(outcome_class: object) -> object:
    return outcome_class == FAILED


def _bad(outcome_class: object) -> object:
    return outcome_class in (FAILED, UNANSWERED)


def _hosts(*endpoints: object) -> object:
    return [host_of(one) for one in endpoints if isinstance(one, str)]


def _end(endpoint: object) -> object:
    return [host_of(endpoint), endpoint] if isinstance(endpoint, str) else []


def _broker(name: object, responder: object) -> object:
    ends = [host_of(responder), responder] if isinstance(responder, str) else []
    return [name, *ends] if isinstance(name, str) else ends


ALIASES: tuple[Alias, ...] = (
    Alias("latency", "`latency_us`, with a unit", ("latency_us",)),
    Alias("packet", "packet of the request, otherwise of the response",
          ("request_packet", "response_packet"), _first, "int"),
    Alias("time", "time of the request, otherwise of the response",
          ("request_time", "response_time"), _first, "time"),
    Alias("request", "`request_name`", ("request_name",)),
    Alias("operation", "`request_name`", ("request_name",)),
    Alias("outcome", "name of the response code; `unanswered`, `oneway`, or `orphan` without one",
          ("status", "response_name"), _outcome, "string"),
    Alias("answer", "`response_name`", ("response_name",)),
    Alias("code", "`response_code`", ("response_code",)),
    Alias("failed", "whether the response is an error: `failed and topic == A`",
          ("outcome_class",), _failed, "bool"),
    Alias("bad", "whether the exchange failed or is unanswered: `bad and topic == A`",
          ("outcome_class",), _bad, "bool"),
    Alias("queue", "`queue_id`", ("queue_id",)),
    Alias("body", "`body_bytes`", ("body_bytes",)),
    Alias("note", "`remark`", ("remark",)),
    Alias("broker", "`broker_name`, and the server's address with and without port",
          ("broker_name", "responder"), _broker, "list"),
    Alias("client", "the client's address with and without port", ("requester",), _end, "list"),
    Alias("server", "the server's address with and without port", ("responder",), _end, "list"),
    Alias("ip", "addresses of both ends, without port", ("requester", "responder"), _hosts, "list"),
)  # fmt: skip
"""All of them, in the order in which tables show them."""
