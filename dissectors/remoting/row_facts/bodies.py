"""Facts in bodies, by request code, or by the content of a response.

RocketMQ: HeartbeatData, TopicRouteData, LockBatchRequestBody, LockBatchResponseBody,
GetConsumerListByGroupResponseBody.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Final

from ...foreign import natural_of
from ..bodies.classes import with_java_names
from ..broker_addresses import MOST_REMEMBERED, ROUTES_REMEMBERED
from ..codes import RequestCode
from ..heartbeat import HEARTBEAT_CLASSES
from ..messages.properties import PROPERTY_SEPARATOR
from ..messages.record_layout import (
    BORN_PORT,
    FIELD_ENDS,
    FIELD_STARTS,
    MAGIC_V1,
    RECORD_MAGICS,
    STORE_PORT,
)
from .heartbeats import heartbeat_facts
from .names import (
    CLIENT,
    FIRST_KEY,
    GROUP,
    MAX_FACTS,
    MEMBER,
    MEMBERS,
    QUEUES_LOCKED,
    QUEUES_REQUESTED,
    RECONSUMED,
    RESPELLED,
    SETTING,
    STORED_MS,
    TIMER,
    fact,
    present_facts,
)
from .routes import route_facts
from .values import MAX_BODY, object_in, text_in

_LOCKS: Final = frozenset((int(RequestCode.LOCK_BATCH_MQ), int(RequestCode.UNLOCK_BATCH_MQ)))
_CONFIGS: Final = frozenset(
    (int(RequestCode.UPDATE_BROKER_CONFIG), int(RequestCode.UPDATE_NAMESRV_CONFIG))
)
_HEARTBEAT: Final = int(RequestCode.HEART_BEAT)

LOCK_CLASSES: Final = ("LockBatchRequestBody", "MessageQueue")
"""Classes in the body of a lock; an unlock has the same members."""
MAX_RESPELLED: Final = 8
"""maximum reported spellings of a body"""
BODY_REQUESTS: Final = (*sorted(_LOCKS), *sorted(_CONFIGS), _HEARTBEAT)
"""Requests whose bodies give facts."""

_RECORD: Final = struct.Struct(">iI28xi")
"""size, magic, and sysFlag of a stored record"""
_TIME: Final = struct.Struct(">q")
_INT: Final = struct.Struct(">i")
_LEAST: Final = FIELD_ENDS[-1][BORN_PORT] + _TIME.size
"""bytes up to the store time, if the born host is IPv6"""
_SHORT: Final = struct.Struct(">H")
_SEPARATOR: Final = ord(PROPERTY_SEPARATOR)
_TIMER_PREFIX: Final = b"TIMER_"
_TIMERS: Final = (
    *(b"TIMER_DELAY_SEC\x01", b"TIMER_DELAY_MS\x01", b"TIMER_DELIVER_MS\x01"),
    b"TIMER_OUT_MS\x01",
)
"""timer properties; the delay is in the first that is there (HookUtils.transformTimerMessage)"""
_UNIQUE_KEY: Final = re.compile(rb"[\x20-\x7e]{1,128}")


def request_body_facts(code: int, body: bytes) -> list[str]:
    """Return the facts in a request body of `BODY_REQUESTS`."""
    if code in _CONFIGS:
        return _settings(body)
    value = object_in(body)
    if value is None:
        return []
    if code == _HEARTBEAT:
        named, others = with_java_names(value, HEARTBEAT_CLASSES)
        return heartbeat_facts(named) + [fact(RESPELLED, name) for name in others[:MAX_RESPELLED]]
    value = with_java_names(value, LOCK_CLASSES)[0]
    queues = value.get("mqSet")
    return present_facts(
        (CLIENT, text_in(value.get("clientId"))),
        (GROUP, text_in(value.get("consumerGroup"))),
        (QUEUES_REQUESTED, str(len(queues)) if isinstance(queues, list) else None),
    )


def response_body_facts(body: bytes) -> list[str]:
    """Return the facts in the body of a success response, by its content."""
    if body.find(b'"queueDatas"') >= 0:
        if len(body) <= MOST_REMEMBERED:
            return list(_route_remembered(body))
        return route_facts(object_in(body) or {})
    if body.find(b'"lockOKMQSet"') >= 0:
        queues = (object_in(body) or {}).get("lockOKMQSet")
        return present_facts(
            (QUEUES_LOCKED, str(len(queues)) if isinstance(queues, list) else None)
        )
    if body.find(b'"consumerIdList"') >= 0:
        members = (object_in(body) or {}).get("consumerIdList")
        if not isinstance(members, list):
            return []
        named = [
            fact(MEMBER, member) for member in members[: MAX_FACTS - 1] if isinstance(member, str)
        ]
        return [fact(MEMBERS, len(members)), *named]
    return []


@lru_cache(ROUTES_REMEMBERED)
def _route_remembered(body: bytes) -> tuple[str, ...]:
    return tuple(route_facts(object_in(body) or {}))


def message_facts(body: bytes) -> list[str]:
    """Return the facts of the first stored message in a body."""
    if len(body) < _LEAST:
        return []
    size, magic, flag = _RECORD.unpack_from(body)
    if magic not in RECORD_MAGICS:
        return []
    ends = FIELD_ENDS[flag >> 4 & 3]
    (stored,) = _TIME.unpack_from(body, ends[BORN_PORT])
    facts = [fact(STORED_MS, stored)]
    begin, end = _properties(body, size, magic, ends)
    key = _value_in(body, begin, end, b"UNIQ_KEY\x01")
    if _UNIQUE_KEY.fullmatch(key):
        facts.append(fact(FIRST_KEY, key.decode()))
    if end:
        (reconsumed,) = _INT.unpack_from(body, ends[STORE_PORT])
        if reconsumed > 0:
            facts.append(fact(RECONSUMED, reconsumed))
    timer = _timer(body, begin, end, stored)
    return facts if timer is None else [*facts, fact(TIMER, timer)]


def _properties(body: bytes, size: int, magic: int, ends: tuple[int, ...]) -> tuple[int, int]:
    """Return the range of the properties of the first message; an empty one if incomplete.

    `ends` are those of its fixed fields, the last of which is the length of its body.
    """
    if not ends[-1] < size <= len(body):
        return 0, 0
    (length,) = _INT.unpack_from(body, ends[-2])
    at = ends[-1] + length
    if length < 0 or at + 2 > size:
        return 0, 0
    begin = at + (body[at] + 3 if magic == MAGIC_V1 else _SHORT.unpack_from(body, at)[0] + 4)
    if begin > size:
        return 0, 0
    end = begin + _SHORT.unpack_from(body, begin - 2)[0]
    return (begin, end) if end <= size else (0, 0)


def _value_in(body: bytes, begin: int, end: int, name: bytes) -> bytes:
    """Return the value of a property, or b""; the last of duplicate names counts, as in Java.

    `name` includes the separator of the value.
    """
    at = body.rfind(name, begin, end)
    while at >= 0:
        if at == begin or body[at - 1] == _SEPARATOR:  # else the end of another name
            stop = body.find(_SEPARATOR, at, end)
            value = body[at + len(name) : stop if stop >= 0 else end]
            if value:
                return value
        at = body.rfind(name, begin, at)
    return b""


def _timer(body: bytes, begin: int, end: int, stored: int) -> str | None:
    """Return the delays in the timer properties of the first message, or None."""
    if body.find(_TIMER_PREFIX, begin, end) < 0:
        return None
    seconds, asked, deliver, due = (
        natural_of(_value_in(body, begin, end, name).decode("ascii", "replace")) for name in _TIMERS
    )
    (created,) = _TIME.unpack_from(body, FIELD_STARTS["born_timestamp"])
    if seconds is not None:
        asked = seconds * 1000
    elif asked is None and deliver is not None:
        asked = deliver - created
    if asked is None:
        return None
    return f"{asked} {stored - created} {'-' if due is None else stored - due}"


def _settings(body: bytes) -> list[str]:
    """Return the names of `name=value` lines; values may be secrets.

    A value may continue on the next line, after a backslash or because it contains line ends. Such
    a line is not a setting, as far as can be detected.
    """
    names: dict[str, None] = {}
    goes_on = False
    for line in body[:MAX_BODY].splitlines():
        match = None if goes_on else _SETTING_LINE.match(line)
        if match is not None:
            names[match[1].decode("ascii")] = None
        goes_on = line.endswith(b"\\")
    return [fact(SETTING, name) for name in list(names)[:MAX_FACTS]]


# A line that ends with `==` is the rest of a value in base64.
_SETTING_LINE: Final = re.compile(rb"\s*([A-Za-z][A-Za-z0-9_.$-]{0,99})\s*=(?!=\s*$)")
