"""Validation of messages, topics, and groups before anything is sent.

Rules: the reason is a return value, the sender raises; names are validated with their namespace.
Reserved property names are rejected only if an application sets them, because a resent message
already has them.
RocketMQ: Validators, TopicValidator, MessageAccessor, Message.putUserProperty.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.messages.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    property_of,
)
from dissectors.remoting.topic_names import NAME, NOT_FOR_SENDS, RETRY_PREFIX

from .message import Message

# as Validators and TopicValidator since 4.7; before, 255 for both
TOPIC_LENGTH: Final = 127
GROUP_LENGTH: Final = 120
PROPERTIES_LENGTH: Final = 32767
"""bytes of all properties as they travel: the broker stores their length in 16 bits"""
DEFAULT_GROUP: Final = "DEFAULT_PRODUCER"
"""the name that a Java producer starts with, and refuses to start with"""

_FLAGS: Final = 1 << 31
_JOIN: Final = "join the keys with spaces: ' '.join(keys)"
_CONVERSIONS: Final[Mapping[tuple[str, type], str]] = {
    ("body", str): "encode it: text.encode()",
    ("keys", list): _JOIN,
    ("keys", tuple): _JOIN,
}
"""hints for fields that are often given another type"""
_PARTS: Final = {"TAGS": "tags", "KEYS": "keys"}
"""properties that are fields of their own"""

_ILLEGAL: Final = int(ResponseCode.MESSAGE_ILLEGAL)


class Invalid(NamedTuple):
    """Why something is invalid."""

    code: int
    """response code that Java's MQClientException carries; -1: none"""
    reason: str
    hint: str
    part: str = ""
    """field of the message that is wrong; empty if it is none, or several"""


@lru_cache(maxsize=1024)
def why_not_topic(topic: str) -> Invalid | None:
    """Return why no message can be sent to a topic of this name; None if one can."""
    problem = _why_not_name(topic, "topic", TOPIC_LENGTH)
    if problem is None and topic in NOT_FOR_SENDS:
        reason = f"topic {topic} is one that only brokers write to"
        return Invalid(-1, reason, "name another topic", "topic")
    return problem


def why_not_group(group: str) -> Invalid | None:
    """Return why no producer can have this group; None if one can."""
    if group == DEFAULT_GROUP:
        return Invalid(
            -1, f"{group} is not a valid name for a group", "name a producer group of your own"
        )
    return _why_not_name(group, "group", GROUP_LENGTH)


def why_not_message(message: Message, max_bytes: int) -> Invalid | None:
    """Return why a message cannot be sent; None if it can. `max_bytes` is the limit of its body."""
    problem = why_not_types(message) or why_not_topic(message.topic)
    if problem is not None:
        return problem
    size = len(message.body)
    if size == 0:
        return Invalid(_ILLEGAL, "the body is empty", "a message needs at least one byte", "body")
    if size > max_bytes:
        return Invalid(
            _ILLEGAL,
            f"the body has {size} bytes, more than the {max_bytes} allowed",
            "send less, or raise maxMessageSize of the producer and of the broker",
            "body",
        )
    for name, value in message.properties.items():
        if problem := _why_not_text(name, value):
            return problem
    tags, keys = message.tags, message.keys
    problem = _why_not_text("TAGS", tags) if tags else None
    return problem or (_why_not_text("KEYS", keys) if keys else None)


def why_not_batch(messages: list[Message], max_bytes: int) -> Invalid | None:
    """Return why messages cannot be sent as one batch; None if they can. Checks all messages."""
    if not messages:
        return Invalid(_ILLEGAL, "the batch is empty", "give at least one message")
    first = messages[0]
    for message in messages:
        problem = why_not_message(message, max_bytes) or _why_not_joined(first, message)
        if problem is not None:
            return problem
    return None


def why_not_user_properties(properties: Mapping[str, str]) -> Invalid | None:
    """Return why an application may not set these properties; None if it may."""
    for name, value in properties.items():
        known = property_of(name)
        if known is not None and known.reserved:
            meaning = f"it means: {known.meaning}"
            reason = f"property {name} is RocketMQ's own"
            return Invalid(-1, reason, f"{meaning}; name another one", "properties")
        if not name.strip() or not value.strip():
            reason = f"property {name!r} has a blank name or value"
            return Invalid(-1, reason, "write NAME=VALUE", "properties")
        if problem := _why_not_text(name, value):
            return problem
    return None


def why_not_encoded(properties: bytes) -> Invalid | None:
    """Return why encoded properties cannot be sent; None if they can."""
    if len(properties) <= PROPERTIES_LENGTH:
        return None
    reason = f"the properties have {len(properties)} bytes, more than the {PROPERTIES_LENGTH} that"
    hint = "put large data into the body"
    return Invalid(_ILLEGAL, f"{reason} a broker stores", hint, "properties")


def why_not_types(message: object) -> Invalid | None:
    """Return which field of a message has a value of a wrong type; None if none has."""
    if not isinstance(message, Message):
        return _wrong("the message", "a Message", message)
    if not isinstance(message.topic, str):
        return _wrong("topic", "a str", message.topic)
    if not isinstance(message.body, bytes):
        return _wrong("body", "bytes", message.body)
    for name, text in (("tags", message.tags), ("keys", message.keys)):
        if text is not None and not isinstance(text, str):
            return _wrong(name, "a str or None", text)
    if not isinstance(message.properties, dict):
        return _wrong("properties", "a dict of str", message.properties)
    for name, text in message.properties.items():
        if not isinstance(name, str):
            return _wrong("a name in properties", "a str", name)
        if not isinstance(text, str):
            return _wrong(f"property {name!r}", "a str", text)
    flag, wait = message.flag, message.wait_store_ok
    if not isinstance(flag, int) or isinstance(flag, bool):
        return _wrong("flag", "an int", flag)
    if not -_FLAGS <= flag < _FLAGS:
        hint = "a flag has 32 bits: -2147483648 to 2147483647"
        return Invalid(_ILLEGAL, f"flag is {flag}", hint, "flag")
    if wait is not None and not isinstance(wait, bool):
        return _wrong("wait_store_ok", "a bool or None", wait)
    return None


def _wrong(name: str, wanted: str, value: object) -> Invalid:
    received = "None" if value is None else f"a value of type {type(value).__name__}"
    hint = _CONVERSIONS.get((name, type(value)), "")
    return Invalid(_ILLEGAL, f"{name} must be {wanted}, not {received}", hint)


def _why_not_name(name: str, kind: str, longest: int) -> Invalid | None:
    if not name.strip():
        return Invalid(-1, f"the {kind} is blank", f"name a {kind}", kind)
    if len(name) > longest:
        hint = f"at most {longest} are allowed"
        return Invalid(-1, f"the {kind} has {len(name)} characters", hint, kind)
    if not NAME.fullmatch(name):
        reason = f"{kind} {name!r} has characters that no {kind} may have"
        return Invalid(-1, reason, "use letters, digits, and % | _ -", kind)
    return None


def _why_not_text(name: str, value: str) -> Invalid | None:
    # the separators are control characters: most texts end here
    if name.isprintable() and value.isprintable():
        return None
    for separator in (NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR):
        if separator in name or separator in value:
            reason = f"property {name!r} holds the control character {separator!r}"
            hint = "it separates properties and cannot be escaped"
            return Invalid(_ILLEGAL, reason, hint, _PARTS.get(name, "properties"))
    return None


def _why_not_joined(first: Message, message: Message) -> Invalid | None:
    """Return why a message cannot be in one batch with the first."""
    if message.topic != first.topic:
        topics = f"topics {first.topic} and {message.topic}"
        return Invalid(-1, f"a batch has {topics}", "send one batch per topic")
    if message.wait_store_ok != first.wait_store_ok:
        return Invalid(-1, "messages of a batch differ in WAIT", "send a batch of either kind")
    if message.topic.startswith(RETRY_PREFIX):
        return Invalid(-1, "a batch cannot go to a retry topic", "send the messages one by one")
    delays = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
    if any(name in message.properties for name in delays):
        return Invalid(-1, "a message of a batch is delayed", "send delayed messages one by one")
    return None
