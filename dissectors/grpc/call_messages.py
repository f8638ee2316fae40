"""Requests and responses of calls, built from the messages of a stream.

Rules: the first message with a status sets the status of the call. Missing parts are reported.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..http2.frame import StreamPlace
from ..http2.header_blocks import Headers
from .bodies import call_trees
from .call_stream import CallSide, CallStream, Taken
from .columns import columns_of
from .command import NO_CODE, NO_VERSION, PROTOBUF, CallCommand
from .commands import (
    LOST_STATUS,
    NO_STATUS,
    Merged,
    Status,
    account_in,
    client_facts,
    shown_metadata,
    status_in,
    telemetry_name,
)
from .pieces import PREFIX
from .tree import decode_message

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
