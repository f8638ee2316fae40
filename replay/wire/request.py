"""Plain requests (code, ext fields, body), and the fields added to every request.

RocketMQ: RemotingCommand.createRequestCommand, RPCHook, NamespaceRpcHook, AclClientRPCHook.
"""

from __future__ import annotations

from collections.abc import Callable

from dissectors.remoting.command import ONEWAY_FLAG, ROCKETMQ, RemotingCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, encode_header

from ..config import ProducerConfig
from ..namespace import namespace_fields
from .steps import Request


class PlainRequest:
    """A command and its body."""

    __slots__ = ("_command", "body")

    def __init__(self, command: RemotingCommand, body: bytes = b"") -> None:
        self._command = command
        self.body = body

    @property
    def code(self) -> int:
        """Request code."""
        return self._command.code

    @property
    def oneway(self) -> bool:
        """Whether the request is oneway."""
        return self._command.is_oneway

    def fields(self) -> dict[str, str]:
        """Return the ext fields; changes affect the request."""
        return self._command.ext_fields

    def encode(self, opaque: int) -> bytes:
        """Return the request as a frame. Raises ValueError if it is over the frame limit."""
        self._command.opaque = opaque
        return encode_command(self._command, self.body)


def plain_request(
    config: ProducerConfig,
    code: int,
    fields: dict[str, str],
    body: bytes = b"",
    *,
    oneway: bool = False,
    remark: str | None = None,
) -> PlainRequest:
    """Return a request of any code as the client of `config` sends it."""
    flag = ONEWAY_FLAG if oneway else 0
    kind = config.serialize_type
    version = config.client_version
    command = RemotingCommand(code, 0, flag, config.language, version, remark, fields, kind)
    return PlainRequest(command, body)


def encode_command(command: RemotingCommand, body: bytes = b"") -> bytes:
    """Return a command as a frame. Raises ValueError if it is over the frame limit."""
    kind = BINARY_TYPE if command.serialize_type == ROCKETMQ else JSON_TYPE
    return encode_frame(kind, encode_header(command), body)


def decoration_of(config: ProducerConfig) -> Callable[[str, Request], None] | None:
    """Return a function that adds this producer's fields to a request, or None."""
    hooks = config.rpc_hooks
    credentials = config.credentials
    added = namespace_fields(config.namespace_v2)
    if not hooks and not added and credentials is None:
        return None

    def decorate(address: str, request: Request) -> None:
        # The order matters: the signature covers all other fields.
        fields = request.fields()
        for hook in hooks:
            hook.before_request(address, request.code, fields)
        fields.update(added)
        if credentials is not None:
            credentials.sign(fields, request.body)

    return decorate
