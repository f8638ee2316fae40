"""Write the parts of a client's message id as JSON; nearly every message has one.

The text equals the parts of UNIQ_KEY in `property_parts`; tests compare the bytes. RocketMQ:
MessageClientIDSetter.
"""

from __future__ import annotations

from typing import Final

import msgspec
from librt.strings import BytesWriter
from mypy_extensions import i64

from ....json_bytes import put_integer, put_number
from ....plain_json import CLOSE
from ...ids.message_ids import (
    EARLIEST_MS,
    KEY_END,
    KEY_LENGTHS,
    LATEST_MS,
    MINUTE_MS,
    NO_ZONE,
    clock_of,
    hexadecimal_at,
    is_zone_known,
    zone_minutes,
)
from ...ids.parts import COUNTER, CREATION_TIME, UTC_OFFSET, maker_parts

_ENCODER: Final = msgspec.json.Encoder()
_MAKERS: Final[dict[bytes, bytes]] = {}
"""start of a client's ids → JSON up to the time; empty if invalid"""
_MOST_MAKERS: Final = 4096
_BORN: Final = b',"%b":' % CREATION_TIME.encode()
_COUNTER: Final = b',"%b":' % COUNTER.encode()
_UTC_OFFSET: Final = b',"%b":' % UTC_OFFSET.encode()
_SHORT: Final[i64] = KEY_LENGTHS[0]
_LONG: Final[i64] = KEY_LENGTHS[1]
_TAIL: Final[i64] = KEY_END
_EARLIEST: Final[i64] = EARLIEST_MS
_LATEST: Final[i64] = LATEST_MS
_MINUTE: Final[i64] = MINUTE_MS


def put_unique_key(out: BytesWriter, data: bytes, at: i64, end: i64, near_ms: i64) -> bool:
    """Write the parts of the id in a range of bytes; return False if it is not a client's id.

    `near_ms` is a time near that of the id, ms since the epoch.
    """
    size: i64 = end - at
    if (size != _SHORT and size != _LONG) or near_ms < _EARLIEST or near_ms > _LATEST:
        return False
    place: i64 = end - _TAIL
    maker = data[at:place]
    start = _MAKERS.get(maker)
    if start is None:
        start = _start_of(maker)
    number: i64 = hexadecimal_at(data, place, _TAIL)
    if number < 0 or not start:
        return False
    clock: i64 = clock_of(number >> 16, near_ms)
    minutes: i64 = zone_minutes(clock - near_ms)
    if minutes == NO_ZONE:  # the id is old, or a clock is wrong: its time is taken as UTC
        minutes = 0
    out.write(start)
    put_integer(out, clock - minutes * _MINUTE)
    out.write(_COUNTER)
    put_number(out, number & 0xFFFF)
    if is_zone_known(minutes, False):
        out.write(_UTC_OFFSET)
        put_number(out, minutes)
    out.append(CLOSE)
    return True


def _start_of(maker: bytes) -> bytes:
    """Return the JSON of a client, up to the time of an id; empty if invalid."""
    parts = maker_parts(maker.decode("utf-8", "replace"))
    if len(_MAKERS) >= _MOST_MAKERS:
        _MAKERS.clear()
    start = b"" if parts is None else _ENCODER.encode(parts)[:-1] + _BORN
    _MAKERS[maker] = start
    return start
