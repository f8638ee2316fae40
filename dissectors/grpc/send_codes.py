"""Response codes of send calls: whether the message is stored.

A gRPC status has a code below all codes of RocketMQ. RocketMQ:
SendMessageActivity.convertToSendMessageResponse and ResponseBuilder of the proxy.
"""

from __future__ import annotations

from typing import Final

from .names import CODES, GRPC_STATUSES, OK

STORED: Final = frozenset((OK,))
"""The message is stored, and clients treat it as such."""
NOT_DURABLE: Final = frozenset(
    CODES[name]
    for name in ("HA_NOT_AVAILABLE", "MASTER_PERSISTENCE_TIMEOUT", "SLAVE_PERSISTENCE_TIMEOUT")
)
"""The message is stored, but not on disk or on a slave in time: clients treat it as a failure."""
UNDECIDED: Final = frozenset((CODES["CODE_UNSPECIFIED"], CODES["MULTIPLE_RESULTS"]))
"""Codes that do not tell whether a message is stored."""
OF_THE_MOMENT: Final = frozenset((CODES["TOO_MANY_REQUESTS"], CODES["REQUEST_TIMEOUT"]))
"""Refusals that another attempt may avoid."""

_REFUSED_BY_GRPC: Final = frozenset(
    GRPC_STATUSES.index(name)
    for name in (
        "INVALID_ARGUMENT",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "UNIMPLEMENTED",
        "UNAUTHENTICATED",
    )
)
_OF_THE_REQUEST: Final = range(CODES["BAD_REQUEST"], CODES["INTERNAL_ERROR"])
_NOT_KNOWN_THERE: Final = frozenset(
    CODES[name] for name in ("NOT_IMPLEMENTED", "UNSUPPORTED", "VERSION_UNSUPPORTED")
)


def is_refusal(code: int) -> bool:
    """Return whether a code means that the message was not stored.

    Other errors do not: a proxy also returns them if a broker does not respond in time.
    """
    if code == CODES["REQUEST_TIMEOUT"]:
        return False
    return code in _OF_THE_REQUEST or code in _NOT_KNOWN_THERE or code in _REFUSED_BY_GRPC


def is_final(code: int) -> bool:
    """Return whether another attempt with the same message gets the same response."""
    return code in _OF_THE_REQUEST and code not in OF_THE_MOMENT
