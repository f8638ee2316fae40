"""Requests as seen by handlers, and their responses.

A handler returns a `HandlerResponse`, or None when it responds later (or never) through
`ReceivedRequest.response`. An error of a peer is a `BadRequest`, which becomes a response with its
code.
RocketMQ: RemotingCommand, NettyRequestProcessor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from dissectors.foreign import integer_of
from dissectors.remoting import heartbeat
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.send_fields import GROUPS, first_of, send_fields_of

from .room import weight_of
from .server import Connection, HandlerResponse


class BadRequest(Exception):
    """A request cannot be served; has the code and remark of the response."""

    def __init__(
        self,
        remark: str,
        code: int = ResponseCode.SYSTEM_ERROR,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(remark)
        self.response = HandlerResponse(int(code), fields, b"", remark)


class ReceivedRequest:
    """A request and the connection to respond on."""

    __slots__ = ("body", "command", "connection", "fields", "header_read", "shape")

    def __init__(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        self.connection = connection
        self.command = command
        self.body = body
        self.fields = command.ext_fields
        self.header_read = False
        """whether the header of a send was read: its errors then say the region"""
        self.shape: Callable[[ReceivedRequest, HandlerResponse], None] | None = None
        """an injection: what becomes of the response, instead of sending it"""

    @property
    def code(self) -> int:
        """Request code."""
        return self.command.code

    @property
    def size(self) -> int:
        """Bytes of its fields and body."""
        return weight_of(*self.fields, *self.fields.values()) + len(self.body)

    def release(self) -> None:
        """Drop its fields and body, which a later response does not need."""
        self.body = b""
        self.fields = self.command.ext_fields = {}

    def text(self, name: str, default: str | None = None) -> str:
        """Return an ext field; BadRequest if it is absent without a default."""
        value = self.fields.get(name, default)
        if value is None:
            raise BadRequest(f"the custom field <{name}> is null")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return an integer ext field; BadRequest if it is not an integer."""
        value = self.fields.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"the custom field <{name}> is null")
            return default
        return number_of(name, value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean ext field as Java reads it: all but `true` is false."""
        value = self.fields.get(name)
        return default if value is None else value.lower() == "true"

    def respond(self, response: HandlerResponse) -> None:
        """Respond, unless an injection intervenes."""
        if self.shape is not None:
            self.shape(self, response)
        else:
            self.connection.respond(self.command, response)

    def send(self, response: HandlerResponse) -> None:
        """Respond now, unless it is oneway or the connection is closed."""
        self.connection.respond(self.command, response)


def topic_of(request: ReceivedRequest) -> str:
    """Return the topic of a request; empty if it has none."""
    return request.fields.get(send_fields_of(request.command.code).topic, "")


def groups_of(request: ReceivedRequest) -> tuple[str, ...]:
    """Return the groups of a request; for a heartbeat all that it registers."""
    code = request.command.code
    if code == RequestCode.HEART_BEAT:
        names = heartbeat.groups_of(request.body).names
        return () if names is None else tuple(names.split(","))
    group = request.fields.get(send_fields_of(code).producer_group) if code in SENDS else None
    group = group or first_of(request.fields, GROUPS)
    return (group,) if group else ()


def number_of(name: str, text: str) -> int:
    """Parse a Java long; BadRequest if invalid."""
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


Handler = Callable[[ReceivedRequest], "HandlerResponse | None"]
"""Serves the requests of one code."""
_Method = TypeVar("_Method", bound=Callable[..., "HandlerResponse | None"])


def serves(*codes: int) -> Callable[[_Method], _Method]:
    """Mark a method as the handler of these request codes."""

    def mark(method: _Method) -> _Method:
        method.codes = codes  # type: ignore[attr-defined]
        return method

    return mark


def handlers_of(server: object) -> dict[int, Handler]:
    """Return the handlers among the methods of an object, by request code."""
    return {
        code: method.__get__(server)
        for method in vars(type(server)).values()
        for code in getattr(method, "codes", ())
    }
