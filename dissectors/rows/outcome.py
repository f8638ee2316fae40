"""What an exchange came to: which answers are failures, and which requests wait on purpose.

Rules: a response code other than SUCCESS is not by itself a failure. "No new message" is how a
healthy consumer spends the night, and a broker holds such a request back for seconds; both would
bury what is wrong, so they are named here, once.
"""

from __future__ import annotations

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


def is_notable(response_name: str | None) -> bool:
    """Return whether a response of that name is not an everyday one; None is not a response."""
    return response_name is not None and response_name not in NORMAL_ANSWERS


def is_failure(response_name: str | None) -> bool:
    """Return whether a response of that name says that the request failed.

    A message that is stored, but not durably in time, is notable and no failure.
    """
    return is_notable(response_name) and response_name not in NOT_DURABLE_ANSWERS


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
