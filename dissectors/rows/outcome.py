"""Outcome class of an exchange: which responses are failures, which requests wait on purpose.

A response code other than SUCCESS is not by itself a failure. "No new message" is what an idle
healthy consumer receives, and a broker holds such a request for seconds; counting either as a
failure would bury real ones. `outcome_class_of` is the only definition: the column `outcome_class`
stores it, and summary, filters, diagnosis, and reports read the column.
"""

from __future__ import annotations

from typing import Final

from ..remoting.code_names import request_name
from ..remoting.topic_names import RETRY_PREFIX

ANSWERED: Final = "answered"
UNANSWERED: Final = "unanswered"
ONEWAY: Final = "oneway"
ORPHAN: Final = "orphan"
STATUSES: Final = (ANSWERED, UNANSWERED, ONEWAY, ORPHAN)
"""Values of the column `status`."""

OK: Final = "ok"
NOT_DURABLE: Final = "stored, not durable"
EXPECTED: Final = "expected"
FAILED: Final = "failed"
OUTCOME_CLASSES: Final = (OK, NOT_DURABLE, EXPECTED, FAILED, UNANSWERED, ONEWAY, ORPHAN)
"""Values of the column `outcome_class`: the kind of response, or the status if there is none.
Not durable: the message is stored, but not on disk or on a slave in time. Expected: an error
that every healthy client causes.
"""
ALARMING: Final = frozenset((FAILED, NOT_DURABLE, UNANSWERED))
"""Outcome classes shown in red in tables and counted as errors in the timeline."""
ROUTE_REQUEST: Final = "GET_ROUTEINFO_BY_TOPIC"
NO_TOPIC: Final = "TOPIC_NOT_EXIST"

NORMAL_RESPONSES = frozenset(
    (
        "SUCCESS",
        "OK",  # gRPC
        "MESSAGE_NOT_FOUND",  # nothing new: the end of a long poll by gRPC
        "PULL_NOT_FOUND",  # nothing new: the end of a long poll
        "PULL_RETRY_IMMEDIATELY",  # nothing for this filter: pull again from a later offset
        "QUERY_NOT_FOUND",  # a group without an offset yet
        "NO_MESSAGE",
        "POLLING_TIMEOUT",  # nothing new: the end of a long poll by POP
    )
)
"""Names of response codes without a problem."""

NOT_DURABLE_RESPONSES = frozenset(
    ("FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")
)
"""Response codes for a message that is stored, but not yet on disk or on a slave."""

LONG_POLLS = frozenset(
    (
        "PULL_MESSAGE",
        "LITE_PULL_MESSAGE",
        "POP_MESSAGE",
        "POP_LITE_MESSAGE",
        "NOTIFICATION",
        "ReceiveMessage",
        "PullMessage",
    )
)
"""Names of requests that a broker may hold until a message arrives."""


SEND_CALLS = frozenset(("SendMessage",))
"""Names of gRPC calls that send messages."""
RECEIVE_CALLS = frozenset(("ReceiveMessage", "PullMessage"))
"""Names of gRPC calls that fetch messages."""


def is_notable(response_name: str | None) -> bool:
    """Return whether a response name is out of the ordinary; False for None."""
    return response_name is not None and response_name not in NORMAL_RESPONSES


def is_failure(response_name: str | None) -> bool:
    """Return whether a response name means failure for any request.

    For responses without their request. A message stored without durability in time is notable, not
    a failure.
    """
    return is_notable(response_name) and response_name not in NOT_DURABLE_RESPONSES


def outcome_class_of(
    status: str, request_name: str | None, response_name: str | None, topic: str | None
) -> str:
    """Return one of `OUTCOME_CLASSES` for an exchange."""
    if status != ANSWERED:
        return status
    if response_name is None or response_name in NORMAL_RESPONSES:
        return OK
    if response_name in NOT_DURABLE_RESPONSES:
        return NOT_DURABLE
    if (
        response_name == NO_TOPIC
        and request_name == ROUTE_REQUEST
        and topic is not None
        and RETRY_PREFIX in topic
    ):
        return EXPECTED  # a consumer requests its retry topic before a broker has created it
    return FAILED


def is_call(request_name: str | None) -> bool:
    """Return whether an operation is a gRPC call: remoting names are all capitals."""
    return request_name is not None and request_name != request_name.upper()


def is_send(request_name: str | None) -> bool:
    """Return whether an operation sends messages."""
    return request_name is not None and (
        request_name.startswith("SEND_") or request_name in SEND_CALLS
    )


def operation_on(code: int, topic: str) -> str:
    """Return a request in words: ``SEND_MESSAGE_V2 to Orders``, ``PULL_MESSAGE of Orders``."""
    name = request_name(code)
    return f"{name} {'to' if is_send(name) else 'of'} {topic}" if topic else name


def is_pop(request_name: str | None) -> bool:
    """Return whether an operation fetches messages by POP, which includes gRPC calls."""
    return request_name is not None and (
        request_name.startswith("POP_") or request_name == "ReceiveMessage"
    )
