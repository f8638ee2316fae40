"""Requests and responses of calls, built from the messages of a stream.

Rules: the first message with a status sets the status of the call. Missing parts are reported.
RocketMQ: InterceptorConstants, GrpcConstants; gRPC: Status-Message, status codes.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..foreign import hexadecimal_of, natural_of
from ..http2.frame import StreamPlace
from ..http2.header_blocks import Headers
from ..remoting.headers import mask_secret
from ..remoting.row_facts.names import CLIENT, STREAM_RESET, fact, present_facts
from .bodies import call_trees
from .call_stream import CallSide, CallStream, Taken
from .columns import columns_of
from .command import NO_CODE, NO_VERSION, PROTOBUF, CallColumns, CallCommand
from .names import CODES, GRPC_STATUSES, TELEMETRY, TELEMETRY_COMMANDS
from .pieces import PREFIX
from .tree import Tree, decode_message, text_at, tree_at

_CREDENTIAL: Final = re.compile(r"Credential=([^,/\s]+)")
_SIGNATURE: Final = re.compile(r"(Signature=|Security-Token=)[^,\s]*", re.IGNORECASE)
_SECRETS: Final = frozenset(
    ("authorization", "proxy-authorization", "x-mq-session-token", "cookie", "set-cookie")
)
_LONGEST_ACCOUNT: Final = 64
_MASK: Final = "***"
_ACCESS: Final = "AccessKey"
Status = tuple[int, str, str | None]
"""code, name, text"""
NO_STATUS: Final = (0, "CODE_UNSPECIFIED", None)
"""status of a call without one"""
LOST_STATUS: Final = (NO_CODE, "", None)
"""status of a call if the capture does not have it"""


def telemetry_name(tree: Tree) -> str:
    """Return the operation of a telemetry message."""
    for field, name in TELEMETRY_COMMANDS.items():
        if field in tree:
            return name
    return TELEMETRY


def status_in(tree: Tree) -> Status | None:
    """Return the status in a message, or None."""
    status = tree_at(tree, "status")
    name = text_at(status, "code")
    if name is None:
        return None
    text = text_at(status, "message")
    return CODES.get(name, 0), name, None if text == name else text


def transport_status(trailers: Headers) -> Status | None:
    """Return the gRPC status of a failed call, or None if it did not fail."""
    named = dict(trailers)
    text = named.get("grpc-status")
    if text is None:
        status = named.get(":status")  # a proxy in between may respond without gRPC
        return None if status in (None, "200") else (0, f"HTTP_{status[:3]}", None)
    number = natural_of(text)
    if number == 0:
        return None
    if number is None or number >= len(GRPC_STATUSES):
        return 0, "GRPC_UNKNOWN", None
    message = unescaped(named.get("grpc-message", ""))
    return number, f"GRPC_{GRPC_STATUSES[number]}", message or None


def has_unknown(headers: Headers) -> bool:
    """Return whether headers refer to table entries that were not captured."""
    return any(not name for name, _ in headers)


def unescaped(text: str) -> str:
    """Return a Status-Message with its percent-encoding decoded."""
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
    return present_facts((CLIENT, dict(headers).get("x-mq-client-id")))


def account_in(headers: Headers) -> str | None:
    """Return the access key of the signer of a request, or None if unsigned."""
    match = _CREDENTIAL.search(dict(headers).get("authorization", ""))
    return match[1][:_LONGEST_ACCOUNT] if match else None


def shown_metadata(headers: Headers) -> dict[str, str]:
    """Return headers for output, with signatures masked.

    Of repeated names the last wins. Headers that were not captured have no name.
    """
    return {name: _shown(name, value) for name, value in headers if name}


def _shown(name: str, value: str) -> str:
    if name not in _SECRETS:
        return value
    if name != "authorization" or not _SIGNATURE.search(value):
        return _MASK  # a scheme that is not known: any part of it may be the secret
    shown = _CREDENTIAL.sub(lambda match: "Credential=" + mask_secret(_ACCESS, match[1]), value)
    return _SIGNATURE.sub(rf"\g<1>{_MASK}", shown)


class Merged:
    """Columns of several messages of one request or response, merged; numbers are added up."""

    def __init__(self) -> None:
        self.columns = CallColumns()
        self._seen = 0

    def add(self, columns: CallColumns) -> None:
        """Add the columns of a message."""
        self._seen += 1
        if self._seen == 1:
            self.columns = columns
            return
        whole = self.columns
        if columns.message_count is not None:
            if whole.message_count is None:
                whole.unique_key, whole.queue_id = columns.unique_key, columns.queue_id
                whole.queue_offset = columns.queue_offset
                whole.facts = whole.facts + columns.facts
            whole.message_count = (whole.message_count or 0) + columns.message_count
            whole.body_bytes += columns.body_bytes


_NOWHERE: Final = StreamPlace(0, 0, 0)
_TELEMETRY_RESPONSES: Final = ("thread_stack_trace", "verify_message_result")
"""responses of a client to commands on a telemetry stream"""
_TELEMETRY_REQUESTS: Final = ("print_thread_stack_trace_command", "verify_message_command")
"""commands on a telemetry stream that expect a response"""


class CallMessage(NamedTuple):
    """A request or a response of a call."""

    from_client: bool
    command: CallCommand
    settles: bool
    """expects no response"""
    body: bytes
    """its decompressed messages, each behind a gRPC length prefix"""
    header_bytes: int
    """bytes of the header block on the wire"""
    wire_bytes: int
    """bytes of the messages on the wire"""
    missing: int
    """bytes that were not captured"""
    problem: str | None
    """why it is incomplete, or None"""
    place: StreamPlace
    """where it was complete"""


def telemetry_message(
    number: int, stream: CallStream, taken: Taken, from_client: bool
) -> CallMessage:
    """Return telemetry messages as a request, a response, or a oneway request.

    The first of several messages decides.
    """
    types = stream.method.asks
    side = stream.client if from_client else stream.server
    first = taken.body[PREFIX : PREFIX + int.from_bytes(taken.body[1:PREFIX])]
    tree = decode_message(types, first).tree
    command = command_of(stream, number, "")
    problem = read_columns(types, taken, command)
    status = command.code, command.name, command.remark
    command.code, command.name, command.remark = NO_CODE, telemetry_name(tree), None
    responds = any(name in tree for name in _TELEMETRY_RESPONSES)
    settles = not from_client and not any(name in tree for name in _TELEMETRY_REQUESTS)
    if not from_client:
        command.ext_fields = shown_metadata(side.headers or [])
    else:
        command.columns.facts = command.columns.facts + client_facts(side.headers or [])
    # A proxy returns settings of its own for those of the client.
    if responds or (not from_client and "settings" in tree):
        command.flag = 1
        settles = False
        command.code, command.name, command.remark = status
    elif settles:
        command.flag = 2
    message = call_message(from_client, command, side, taken, problem, taken.place or _NOWHERE)
    return message._replace(settles=settles)


def command_of(stream: CallStream, number: int, name: str) -> CallCommand:
    headers = stream.client.headers or []
    return CallCommand(
        code=NO_CODE,
        opaque=number,
        language=value_of(headers, "x-mq-language"),
        version=NO_VERSION,
        ext_fields=shown_metadata(headers),
        serialize_type=PROTOBUF,
        name=name,
        operation=stream.method.name,
        types=(),
        client_version=value_of(headers, "x-mq-client-version") or None,
        account=account_in(headers),
    )


def call_message(
    from_client: bool,
    command: CallCommand,
    side: CallSide,
    taken: Taken,
    problem: str | None,
    place: StreamPlace,
) -> CallMessage:
    problem = taken.problem or problem
    return CallMessage(
        *(from_client, command, False, taken.body, side.header_bytes, taken.wire),
        *(taken.missing, problem, place),
    )


def read_columns(types: str, taken: Taken, command: CallCommand) -> str | None:
    """Fill the columns and the status of a command; return the problem of its first bad message.

    The first message with a status sets the status of the call.
    """
    command.types = (types,) * taken.messages
    merged = Merged()
    status: Status | None = None
    problem: str | None = None
    for _, tree, wrong in call_trees(command, taken.body):
        merged.add(columns_of(types, tree))
        status = status or status_in(tree)
        if not taken.missing:
            problem = problem or wrong
    command.columns = merged.columns
    if command.is_response or not command.name:
        lost = LOST_STATUS if taken.missing or taken.problem else NO_STATUS
        command.code, command.name, command.remark = status or lost
    return problem


def value_of(headers: Headers, name: str) -> str:
    for key, value in headers:
        if key == name:
            return value
    return ""
