"""Bodies of applications' messages, taken apart by decoders that a user named: plug-ins.

Rules: a decoder is given a message whose body is whole and decompressed; it returns what the body
says in JSON types, or None for a body that is not its own. Which decoders there are is said around
a run (`decoding_with`), never by data. One that raises, or returns something else, is a problem
that whoever shows the message takes (`take_problems`); the run goes on. What it returns is foreign
text like all other: it is escaped where it is shown.
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
"""problems that are kept until somebody takes them"""
MOST_BYTES: Final = 16 * 1024 * 1024
"""bytes, as JSON, of what a body says: four times RocketMQ's largest"""
_MOST_TOLD: Final = 300
"""characters of what an exception says"""
_ENCODER: Final = msgspec.json.Encoder()


class MessageBody(NamedTuple):
    """What a decoder is given."""

    topic: str
    tags: str | None
    properties: Mapping[str, str]
    """the message's own and RocketMQ's"""
    body: bytes
    """the whole body, decompressed"""


class NamedDecoder(NamedTuple):
    """A decoder, and what it is called where its result is shown."""

    name: str
    decode: Callable[[MessageBody], object]
    """message → JSON types; None: not its own"""


class _Active:
    """The decoders of a run, and what went wrong in them since somebody asked."""

    __slots__ = ("decoders", "problems")

    def __init__(self, decoders: Sequence[NamedDecoder]) -> None:
        self.decoders = decoders
        self.problems: list[str] = []


_NONE: Final = _Active(())
_active: ContextVar[_Active] = ContextVar("body_decoders", default=_NONE)


@contextmanager
def decoding_with(decoders: Sequence[NamedDecoder]) -> Iterator[None]:
    """Let these decoders look at the bodies of messages meanwhile."""
    token = _active.set(_Active(decoders) if decoders else _NONE)
    try:
        yield
    finally:
        _active.reset(token)


def has_decoders() -> bool:
    """Return whether somebody looks at the bodies of messages."""
    return _active.get() is not _NONE


def decoded_text(content: object) -> tuple[str, str] | None:
    """Return form and text of the `content` of a message's value; None: no plug-in made it."""
    if not isinstance(content, dict) or "value" not in content:
        return None
    if content.get("kind") not in {one.name for one in _active.get().decoders}:
        return None
    value = content["value"]
    if value is None:
        return None
    return ("text", value) if isinstance(value, str) else ("json", _ENCODER.encode(value).decode())


def take_problems() -> list[str]:
    """Return what went wrong in decoders since the last call."""
    active = _active.get()
    if not active.problems:
        return []
    taken, active.problems = active.problems, []
    return taken


def custom_content(message: StoredMessage, data: bytes) -> Body | None:
    """Return what the first decoder says that knows the body; None where none does."""
    active = _active.get()
    if active is _NONE:
        return None
    given = MessageBody(message.topic, message.tags, dict(message.properties), data)
    for name, decode in active.decoders:
        try:
            value = decode(given)
            if value is None:
                continue
            value = msgspec.to_builtins(value, str_keys=True)
            size = len(_ENCODER.encode(value))  # half a surrogate pair cannot be written
            if size > MOST_BYTES:
                raise ValueError(f"it returned {size:,} bytes, more than {MOST_BYTES:,}")
        except BaseException as error:  # a plug-in never ends a run
            if isinstance(error, KeyboardInterrupt):  # a signal does
                raise
            problem = f"plug-in {name}: {type(error).__name__}: {told_by(error)}"
            if len(active.problems) < MOST_PROBLEMS:
                active.problems.append(problem)
            return Body(name, problem=problem)
        return Body(name, value)
    return None


def told_by(error: BaseException) -> str:
    """Return what an exception of a plug-in says, on one line."""
    try:
        return " ".join(str(error).split())[:_MOST_TOLD]
    except Exception:  # what is raised is a plug-in's, too
        return "it does not say what"
