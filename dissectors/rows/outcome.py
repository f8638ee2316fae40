"""The outcome class of an exchange: which responses are failures, which requests wait on purpose.

A response code other than SUCCESS is not by itself a failure. "No new message" is how a healthy
consumer spends the night, and a broker holds such a request for seconds; counting either as a
failure would bury real ones. `outcome_class_of` is the one definition: the column
`outcome_class` stores it, and summary, filters, diagnosis, and reports read the column.
"""

from __future__ import annotations

from typing import Final

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
"""Values of the column `outcome_class`: of an answered request the kind of response, else the
status. Not durable: the message is stored, but not on disk or on a slave in time. Expected: an
error that every healthy client causes."""
ALARMING: Final = frozenset((FAILED, NOT_DURABLE, UNANSWERED))
"""Outcome classes that tables show in red and the timeline counts as errors."""
ROUTE_REQUEST: Final = "GET_ROUTEINFO_BY_TOPIC"
NO_TOPIC: Final = "TOPIC_NOT_EXIST"

NORMAL_ANSWERS = frozenset(
    (
        "SUCCESS",
        "OK",  # gRPC
        "MESSAGE_NOT_FOUND",  # nothing new: the end of a long poll by gRPC
        "PULL_NOT_FOUND",  # nothing new: the end of a long poll
        "PULL_RETRY_IMMEDIATELY",  # nothing for this filter: pull again from a later offset
        "QUERY_NOT_FOUND",  # a group that has no offset yet
        "NO_MESSAGE",
        "POLLING_TIMEOUT",  # nothing new: the end of a long poll by POP
    )
)
"""Names of the response codes that say that nothing is wrong."""

NOT_DURABLE_ANSWERS = frozenset(
    ("FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")
)
"""Names of the response codes of a message that is stored, but not yet on disk or on a slave."""

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
"""Names of the requests that a broker may hold back until there is a message."""


SEND_CALLS = frozenset(("SendMessage",))
"""Names of the calls of gRPC that send messages."""
RECEIVE_CALLS = frozenset(("ReceiveMessage", "PullMessage"))
"""Names of the calls of gRPC that fetch messages."""


def is_notable(response_name: str | None) -> bool:
    """Return whether a response of that name is not an everyday one; None is not a response."""
    return response_name is not None and response_name not in NORMAL_ANSWERS


def is_failure(response_name: str | None) -> bool:
    """Return whether a response of that name means that the request failed, whatever it asked.

    For responses without their request. A message that is stored, but not durably in time, is
    notable and no failure.
    """
    return is_notable(response_name) and response_name not in NOT_DURABLE_ANSWERS


def outcome_class_of(
    status: str, request_name: str | None, response_name: str | None, topic: str | None
) -> str:
    """Return one of `OUTCOME_CLASSES` for an exchange."""
    if status != ANSWERED:
        return status
    if response_name is None or response_name in NORMAL_ANSWERS:
        return OK
    if response_name in NOT_DURABLE_ANSWERS:
        return NOT_DURABLE
    if (
        response_name == NO_TOPIC
        and request_name == ROUTE_REQUEST
        and topic is not None
        and RETRY_PREFIX in topic
    ):
        return EXPECTED  # a consumer asks for its retry topic before a broker has created it
    return FAILED


def is_call(request_name: str | None) -> bool:
    """Return whether an operation is one of gRPC: remoting's names have capitals only."""
    return request_name is not None and request_name != request_name.upper()


def is_send(request_name: str | None) -> bool:
    """Return whether an operation sends messages."""
    return request_name is not None and (
        request_name.startswith("SEND_") or request_name in SEND_CALLS
    )


def is_pop(request_name: str | None) -> bool:
    """Return whether an operation fetches messages by POP: calls of gRPC do."""
    return request_name is not None and (
        request_name.startswith("POP_") or request_name == "ReceiveMessage"
    )
