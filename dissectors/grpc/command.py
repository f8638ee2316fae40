"""A gRPC request or response in place of a remoting command.

Pairing, counting, and ordering treat it like a command; output distinguishes it by type. It has no
request code: gRPC operations have only names.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..remoting.command import RemotingCommand

NO_CODE: Final = -1
"""code of gRPC requests"""
NO_VERSION: Final = -1
"""MQVersion ordinal for gRPC clients, which number their versions differently"""
PROTOBUF: Final = "PROTOBUF"
"""serialize type, beside JSON and ROCKETMQ"""


class CallColumns(msgspec.Struct, gc=False):
    """Row columns from one side of a call."""

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
    """operation of a request, or code name of a response"""
    operation: str
    """operation of the call"""
    types: tuple[str, ...]
    """types of the messages in the body, in order"""
    client_version: str | None = None
    """client version as sent"""
    account: str | None = None
    """access key of the signer; never the secret"""
    is_partial: bool = False
    """messages of a stream that was reset or did not end: its request counts as unanswered"""
    columns: CallColumns = msgspec.field(default_factory=CallColumns)
    """columns from this side"""
