"""Bodies of application messages, decoded by plug-ins that a user named.

A decoder receives a message with its whole, decompressed body; it returns JSON types, or None for a
body that is not its own. Its result is untrusted text, escaped for output like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

import msgspec

from ..messages.message import StoredMessage
from .body import Body

MOST_PROBLEMS: Final = 1000
"""maximum uncollected problems"""
MOST_BYTES: Final = 16 * 1024 * 1024
"""maximum JSON bytes of a decoded body: four times RocketMQ's largest"""
_MOST_LISTED: Final = 300
"""maximum characters of an exception text"""
_ENCODER: Final = msgspec.json.Encoder()


class MessageBody(NamedTuple):
    """Input of a decoder."""

    topic: str
    tags: str | None
    properties: Mapping[str, str]
    """properties of the application and of RocketMQ"""
    body: bytes
    """the whole body, decompressed"""


class NamedDecoder(NamedTuple):
    """A decoder and its name in output."""

    name: str
    decode: Callable[[MessageBody], object]
    """message → JSON types, or None if it is not its own"""


class _Active:
    """Decoders of a run, and their uncollected problems."""

    __slots__ = ("decoders", "problems")

    def __init__(self, decoders: Sequence[NamedDecoder]) -> None:
        self.decoders = decoders
        self.problems: list[str] = []


_NONE: Final = _Active(())
_active: ContextVar[_Active] = ContextVar("body_decoders", default=_NONE)


@contextmanager
def decoding_with(decoders: Sequence[NamedDecoder]) -> Iterator[None]:
    """Enable decoders in a context."""
    token = _active.set(_Active(decoders) if decoders else _NONE)
    try:
        yield
    finally:
        _active.reset(token)


def has_decoders() -> bool:
    """Return whether decoders are enabled."""
    return _active.get() is not _NONE


def decoded_text(content: object) -> tuple[str, str] | None:
    """Return form and text of a message's `content`, or None if no plug-in decoded it."""
    if not isinstance(content, dict) or "value" not in content:
        return None
    if content.get("kind") not in {decoder.name for decoder in _active.get().decoders}:
        return None
    value = content["value"]
    if value is None:
        return None
    return ("text", value) if isinstance(value, str) else ("json", _ENCODER.encode(value).decode())


def take_problems() -> list[str]:
    """Return and clear the problems of decoders."""
    active = _active.get()
    if not active.problems:
        return []
    taken, active.problems = active.problems, []
    return taken


def custom_content(message: StoredMessage, data: bytes) -> Body | None:
    """Return the result of the first decoder that knows the body, or None."""
    active = _active.get()
    if active is _NONE:
        return None
    for name, decode in active.decoders:
        # Properties of its own: a decoder may change them.
        message_body = MessageBody(message.topic, message.tags, dict(message.properties), data)
        try:
            value = decode(message_body)
            if value is None:
                continue
            value = msgspec.to_builtins(value, str_keys=True)
            size = len(_ENCODER.encode(value))  # lone surrogates cannot be encoded
            if size > MOST_BYTES:
                raise ValueError(f"it returned {size:,} bytes, more than {MOST_BYTES:,}")
        except BaseException as error:  # a plug-in never ends a run
            if isinstance(error, KeyboardInterrupt):  # unlike a signal
                raise
            problem = f"plug-in {name}: {type(error).__name__}: {error_text(error)}"
            if len(active.problems) < MOST_PROBLEMS:
                active.problems.append(problem)
            return Body(name, problem=problem)
        return Body(name, value)
    return None


def error_text(error: BaseException) -> str:
    """Return the text of a plug-in's exception, on one line."""
    try:
        return " ".join(str(error).split())[:_MOST_LISTED]
    except Exception:  # the exception class is the plug-in's, too
        return "it does not say what"
