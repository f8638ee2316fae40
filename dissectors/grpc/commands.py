"""What headers, trailers and statuses of calls become in a row: codes, names, facts.

RocketMQ: InterceptorConstants, GrpcConstants; gRPC: Status-Message, status codes.
"""

from __future__ import annotations

import re
from typing import Final

from ..foreign import hexadecimal_of, natural_of
from ..http2.header_blocks import Headers
from ..remoting.headers import mask_secret
from ..remoting.row_facts.names import CLIENT, STREAM_RESET, fact, given
from .command import NO_CODE, CallColumns
from .names import CODES, GRPC_STATUSES, TELEMETRY, TELEMETRY_COMMANDS
from .tree import Tree, text_at, tree_at

_CREDENTIAL: Final = re.compile(r"Credential=([^,/\s]{1,64})")
_SIGNATURE: Final = re.compile(r"(Signature=|Security-Token=)[^,\s]*", re.IGNORECASE)
_SECRETS: Final = frozenset(("authorization", "x-mq-session-token", "cookie"))
_MASK: Final = "***"
_ACCESS: Final = "AccessKey"
Status = tuple[int, str, str | None]
"""code, name, text"""
NO_STATUS: Final = (0, "CODE_UNSPECIFIED", None)
"""of a call without a status"""
LOST_STATUS: Final = (NO_CODE, "", None)
"""of a call whose status the capture does not have"""


def telemetry_name(tree: Tree) -> str:
    """Return the operation that a message of a telemetry stream is of."""
    for field, name in TELEMETRY_COMMANDS.items():
        if field in tree:
            return name
    return TELEMETRY


def status_in(tree: Tree) -> Status | None:
    """Return what a message says of a call; None where it says nothing."""
    status = tree_at(tree, "status")
    name = text_at(status, "code")
    if name is None:
        return None
    text = text_at(status, "message")
    return CODES.get(name, 0), name, None if text == name else text


def transport_status(trailers: Headers) -> Status | None:
    """Return what gRPC itself says of a call that failed; None of one that did not."""
    named = dict(trailers)
    text = named.get("grpc-status")
    if text is None:
        status = named.get(":status")
        return None if status in (None, "200") else (0, f"HTTP_{status[:3]}", None)
    number = natural_of(text)
    if number == 0:
        return None
    if number is None or number >= len(GRPC_STATUSES):
        return 0, "GRPC_UNKNOWN", None
    message = _unescaped(named.get("grpc-message", ""))
    return number, f"GRPC_{GRPC_STATUSES[number]}", message or None


def has_unknown(headers: Headers) -> bool:
    """Return whether some of these headers refer to others that were not captured."""
    return any(not name for name, _ in headers)


def _unescaped(text: str) -> str:
    """Return a Status-Message with the bytes that stand there as `%` and two digits."""
    first, *rest = text.encode("utf-8", "replace").split(b"%")
    parts = [first]
    for part in rest:
        byte = hexadecimal_of(part[:2].decode("latin-1")) if len(part) > 1 else None
        parts.append(b"%" + part if byte is None else bytes((byte,)) + part[2:])
    return b"".join(parts).decode("utf-8", "replace")


def reset_of(reason: str, from_client: bool) -> str:
    """Return the fact that a stream was reset."""
    return fact(STREAM_RESET, f"{reason} {'client' if from_client else 'server'}")


def client_facts(headers: Headers) -> list[str]:
    """Return the facts in the metadata of a request."""
    return given((CLIENT, dict(headers).get("x-mq-client-id")))


def account_in(headers: Headers) -> str | None:
    """Return who signed a request; None where nobody did."""
    found = _CREDENTIAL.search(dict(headers).get("authorization", ""))
    return found[1] if found else None


def shown_metadata(headers: Headers) -> dict[str, str]:
    """Return headers as they may be shown: what signs a request is masked.

    Of several with one name the last. What was not captured has no name.
    """
    return {name: _shown(name, value) for name, value in headers if name}


def _shown(name: str, value: str) -> str:
    if name not in _SECRETS:
        return value
    if name != "authorization" or not _SIGNATURE.search(value):
        return _MASK
    shown = _CREDENTIAL.sub(lambda found: "Credential=" + mask_secret(_ACCESS, found[1]), value)
    return _SIGNATURE.sub(rf"\g<1>{_MASK}", shown)


class Merged:
    """What several messages of one request or response say together: numbers are added up."""

    def __init__(self) -> None:
        self.columns = CallColumns()
        self._seen = 0

    def add(self, one: CallColumns) -> None:
        """Add what a message says."""
        self._seen += 1
        if self._seen == 1:
            self.columns = one
            return
        whole = self.columns
        if one.message_count is not None:
            if whole.message_count is None:
                whole.unique_key, whole.queue_id = one.unique_key, one.queue_id
                whole.queue_offset = one.queue_offset
            whole.message_count = (whole.message_count or 0) + one.message_count
            whole.body_bytes += one.body_bytes
