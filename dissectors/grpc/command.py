"""A gRPC request or response in the place of a remoting command.

What pairs, counts and orders commands takes it as it is; what shows one knows it by its type. It
has no request code: operations of gRPC have names alone.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..remoting.command import RemotingCommand

NO_CODE: Final = -1
"""code of a request"""
NO_VERSION: Final = -1
"""MQVersion ordinal of whoever speaks gRPC: clients count their versions otherwise"""
PROTOBUF: Final = "PROTOBUF"
"""how header and body are written, beside JSON and ROCKETMQ"""


class CallColumns(msgspec.Struct, gc=False):
    """What one side of a call says of the columns of its row."""

    topic: str | None = None
    group: str | None = None
    queue_id: int | None = None
    broker_name: str | None = None
    unique_key: str | None = None
    keys: str | None = None
    tags: str | None = None
    body_bytes: int = 0
    message_count: int | None = None
    queue_offset: int | None = None
    facts: list[str] = []


class CallCommand(RemotingCommand, gc=False, kw_only=True):
    """A message of a call, or the messages of a stream that belong together."""

    name: str
    """operation of a request; name of the code of a response"""
    operation: str
    """operation of the call"""
    types: tuple[str, ...]
    """message types in the body that it comes with, one behind the other"""
    client_version: str | None = None
    """version of the client as it says it"""
    account: str | None = None
    """who signed it; never the secret"""
    is_reset: bool = False
    """it stands for a response that never came: the stream was reset"""
    columns: CallColumns = msgspec.field(default_factory=CallColumns)
    """what it says of the columns"""
