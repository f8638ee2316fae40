"""A request as a handler sees it, and the answer that it gives.

A handler returns an `Answer`, or None when it answers later (or never) through
`ReceivedRequest.answer`.
What a peer may get wrong is a `BadRequest`, which becomes an answer with its code.
RocketMQ: RemotingCommand, NettyRequestProcessor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dissectors.foreign import integer_of
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.send_fields import send_fields_of

from .room import weight_of
from .server import Answer, Connection


class BadRequest(Exception):
    """A request that cannot be served; the code and remark of its answer."""

    def __init__(
        self,
        remark: str,
        code: int = ResponseCode.SYSTEM_ERROR,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(remark)
        self.answer = Answer(int(code), fields, b"", remark)


class ReceivedRequest:
    """One request and whom to answer."""

    __slots__ = ("body", "command", "connection", "fields", "header_read", "shape")

    def __init__(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        self.connection = connection
        """where it came from"""
        self.command = command
        """its header"""
        self.body = body
        """its body"""
        self.fields = command.ext_fields
        """its ext fields"""
        self.header_read = False
        """whether the header of a send was read: its errors then say the region"""
        self.shape: Callable[[ReceivedRequest, Answer], None] | None = None
        """an injection: what becomes of the answer, instead of sending it"""

    @property
    def code(self) -> int:
        """Request code."""
        return self.command.code

    @property
    def size(self) -> int:
        """Bytes that its fields and its body take."""
        return weight_of(*self.fields, *self.fields.values()) + len(self.body)

    def release(self) -> None:
        """Forget its fields and body: it is answered later, without them."""
        self.body = b""
        self.fields = self.command.ext_fields = {}

    def text(self, name: str, default: str | None = None) -> str:
        """Return an ext field; BadRequest when it is absent and there is no default."""
        value = self.fields.get(name, default)
        if value is None:
            raise BadRequest(f"the custom field <{name}> is null")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return an integer among the ext fields; BadRequest when it is none."""
        value = self.fields.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"the custom field <{name}> is null")
            return default
        return number_of(name, value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean among the ext fields, as Java reads it: everything but `true` is
        false.
        """
        value = self.fields.get(name)
        return default if value is None else value.lower() == "true"

    def answer(self, answer: Answer) -> None:
        """Answer it, unless an injection wants something else."""
        if self.shape is not None:
            self.shape(self, answer)
        else:
            self.connection.answer(self.command, answer)

    def send(self, answer: Answer) -> None:
        """Answer it now; nothing happens for a oneway request and a closed connection."""
        self.connection.answer(self.command, answer)


def topic_of(request: ReceivedRequest) -> str:
    """Return the topic of a request; empty where it names none."""
    return request.fields.get(send_fields_of(request.command.code).topic, "")


def number_of(name: str, text: str) -> int:
    """Return a Java long; BadRequest when the text is none."""
    number = integer_of(text)
    if number is None:
        raise BadRequest(f"the custom field <{name}> is not a number")
    return number


_SETTING: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,100})=(.{0,1000})")


def settings_of(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of settings, one per line; other lines are skipped."""
    for line in body.decode("utf-8", "replace").splitlines():
        match = _SETTING.fullmatch(line.strip())
        if match is not None:
            yield match[1], match[2]


def settings_text(settings: Mapping[str, str]) -> bytes:
    """Return settings as servers list them: one per line, sorted."""
    return "".join(f"{name}={value}\n" for name, value in sorted(settings.items())).encode()


Handler = Callable[[ReceivedRequest], "Answer | None"]
"""Serves the requests of one code."""
