"""Messages from lines: a line is a body, or a JSON object with more fields.

Rules: fields that a line lacks come from the command line. An invalid line is a `BadLine` with its
number and the reason, and reading continues.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from dissectors.foreign import Unreadable, base64_of, json_of
from replay.message import Message
from replay.validators import why_not_user_properties

from ..ui.status import CommandError
from .options import InputForm, delivery_of

_MEMBERS: Final = (
    *("topic", "body", "body_base64", "tags", "keys", "properties", "flag"),
    *("delay_level", "deliver_at", "order_key", "broker", "queue"),
)


class Outgoing(NamedTuple):
    """A message to send."""

    number: int
    """index among all messages, from 1"""
    message: Message
    broker: str | None = None
    """target broker"""
    queue_id: int | None = None
    """target queue of the broker"""
    order_key: str | None = None
    """ordering key that selects the queue"""


class BadLine(NamedTuple):
    """A line that is not a message."""

    number: int
    """line number, from 1"""
    reason: str


class LineReader:
    """Parses lines of an input as messages."""

    def __init__(self, form: InputForm, pattern: Outgoing, in_transactions: bool = False) -> None:
        """`pattern`: defaults for the lines; `in_transactions`: they are half messages."""
        self._form = form
        self._in_transactions = in_transactions
        self._pattern = pattern
        self._lines = 0
        self._messages = 0

    def read(self, line: bytes) -> Outgoing | BadLine | None:
        """Return the message of a line without its line end, or None for an empty line."""
        self._lines += 1
        # The line end of Windows.
        line = line.removesuffix(b"\r")
        if not line.strip():
            return None
        pattern = self._pattern
        if self._form is InputForm.lines:
            message = replace(pattern.message, body=line, properties={**pattern.message.properties})
            return self._numbered(pattern._replace(message=message))
        try:
            return self._numbered(self._decode(line))
        except (_Wrong, CommandError) as problem:
            return BadLine(self._lines, str(problem))

    def _numbered(self, outgoing: Outgoing) -> Outgoing:
        self._messages += 1
        return outgoing._replace(number=self._messages)

    def _decode(self, line: bytes) -> Outgoing:
        try:
            members = json_of(_JSON, line)
        except Unreadable as error:
            raise _Wrong(f"is not JSON: {error}") from None
        if not isinstance(members, dict):
            raise _Wrong("is not a JSON object")
        for name in members:
            if name not in _MEMBERS:
                raise _Wrong(f"has a member {name!r}; known are {', '.join(_MEMBERS)}")
        pattern = self._pattern
        if self._in_transactions:
            for name in ("order_key", "broker", "queue", "delay_level"):
                if members.get(name) is not None:
                    raise _Wrong(f"has a member {name!r}, which --transaction does not have")
        order_key = _text(members, "order_key") or pattern.order_key
        broker = _text(members, "broker") or pattern.broker
        queue = _whole(members, "queue", 0, 1 << 31)
        message = self._message_of(members)
        if queue is None:
            queue = pattern.queue_id
        if queue is not None and broker is None:
            raise _Wrong("has a queue but no broker")
        if broker is not None and order_key is not None:
            raise _Wrong("has a broker and an order_key: each chooses the queue")
        return Outgoing(0, message, broker, queue, order_key)

    def _message_of(self, members: dict[str, object]) -> Message:
        default = self._pattern.message
        topic = _text(members, "topic") or default.topic
        if not topic:
            raise _Wrong("has no topic, and none was given with -t")
        properties = {**default.properties, **_properties(members.get("properties"))}
        level = _whole(members, "delay_level", 1, 19)
        text = _text(members, "deliver_at")
        if level is not None and text is not None:
            raise _Wrong("has a delay_level and a deliver_at: only one can apply")
        if level is not None or text is not None:
            for name in ("DELAY", "TIMER_DELIVER_MS"):  # of the command line
                properties.pop(name, None)
        if level is not None:
            properties["DELAY"] = str(level)
        if text is not None:
            properties["TIMER_DELIVER_MS"] = str(delivery_of("deliver_at", text))
        flag = _whole(members, "flag", -(1 << 31), 1 << 31)
        return Message(
            topic,
            _body(members),
            _text(members, "tags") or default.tags,
            _keys(members.get("keys")) or default.keys,
            properties,
            default.flag if flag is None else flag,
            default.wait_store_ok,
        )


_JSON: Final = msgspec.json.Decoder()


class _Wrong(Exception):
    """An invalid line."""


def _text(members: dict[str, object], name: str) -> str | None:
    value = members.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _Wrong(f"has a {name} that is not text")


def _whole(members: dict[str, object], name: str, least: int, beyond: int) -> int | None:
    value = members.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value < beyond:  # a bool is no number
        raise _Wrong(f"has a {name} that is not a whole number of {least} or more")
    return value


def _body(members: dict[str, object]) -> bytes:
    body, encoded = members.get("body"), members.get("body_base64")
    if (body is None) == (encoded is None):
        raise _Wrong("must have either a body or a body_base64")
    if encoded is None:
        # An object is a body too: the JSON that it is.
        return body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    decoded = base64_of(str(encoded))
    if decoded is None:
        raise _Wrong("has a body_base64 that is not base64")
    return decoded


def _keys(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(key, str) and key for key in value):
        return " ".join(value)
    raise _Wrong("has keys that are neither a text nor a list of texts")


def _properties(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Wrong("has properties that are not an object")
    properties = {}
    for name, member in value.items():
        if isinstance(member, bool) or not isinstance(member, (str, int, float)):
            raise _Wrong(f"has a property {name!r} that is neither text nor number")
        properties[name] = str(member)
    problem = why_not_user_properties(properties)
    if problem is not None:
        raise _Wrong(f"cannot be sent: {problem.reason}")
    return properties
