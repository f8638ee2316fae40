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
from ..bodies.spelling import with_java_names
from ..broker_addresses import MOST_REMEMBERED, ROUTES_REMEMBERED
from ..codes import RequestCode
from ..heartbeat import HEARTBEAT_CLASSES
from ..messages.counting import RECORD_MAGICS
from ..messages.record_layout import BORN_PORT, FIELD_ENDS, FIELD_STARTS
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
_LENGTH: Final = struct.Struct(">i")
_LEAST: Final = FIELD_ENDS[-1][BORN_PORT] + _TIME.size
"""bytes up to the store time, if the born host is IPv6"""
_TIMER_PREFIX: Final = b"TIMER_"
_TIMER_NAMES: Final = ("TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "TIMER_OUT_MS")
_TIMERS: Final = {
    name: re.compile(name.encode() + rb"\x01(\d{1,15})(?:\x02|$)") for name in _TIMER_NAMES
}
"""timer properties: name, a byte 1, value, a byte 2"""
_UNIQUE_KEY: Final = re.compile(rb"UNIQ_KEY\x01([\x20-\x7e]{1,128})(?:\x02|$)")


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
    begin = _after_content(body, size, ends)
    if begin is None:
        return facts
    key = _UNIQUE_KEY.search(body, begin, size)
    if key is not None:
        facts.append(fact(FIRST_KEY, key[1].decode()))
    timer = _timer(body, begin, size, stored)
    return facts if timer is None else [*facts, fact(TIMER, timer)]


def _after_content(body: bytes, size: int, ends: tuple[int, ...]) -> int | None:
    """Return the place of topic and properties of the first message, or None.

    `ends` are those of its fixed fields, the last of which is the length of its body.
    """
    if not ends[-1] < size <= len(body):
        return None
    (length,) = _LENGTH.unpack_from(body, ends[-2])
    begin = ends[-1] + length
    return None if length < 0 or begin >= size else begin


def _timer(body: bytes, begin: int, size: int, stored: int) -> str | None:
    """Return the delays in the timer properties of the first message, or None."""
    if body.find(_TIMER_PREFIX, begin, size) < 0:
        return None
    values: dict[str, int] = {}
    for name in _TIMER_NAMES:
        match = _TIMERS[name].search(body, begin, size)
        number = None if match is None else natural_of(match[1].decode())
        if number is not None:
            values[name] = number
    (created,) = _TIME.unpack_from(body, FIELD_STARTS["born_timestamp"])
    asked = values.get("TIMER_DELAY_MS")
    if asked is None and "TIMER_DELAY_SEC" in values:
        asked = values["TIMER_DELAY_SEC"] * 1000
    if asked is None and "TIMER_DELIVER_MS" in values:
        asked = values["TIMER_DELIVER_MS"] - created
    if asked is None:
        return None
    due = values.get("TIMER_OUT_MS")
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
