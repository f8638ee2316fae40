"""What whole stored records say, read straight from their bytes: the fast way of nearly all.

A body in which anything is odd (a record that is cut, an inner batch, a length that does not fit)
is left to `stored`, which decodes it by `remoting.messages`; a test holds both ways to the same
rows. The order of the bytes is that of `record_layout`.
"""

from __future__ import annotations

import zlib
from typing import Final

from ..remoting.messages.counting import MAGIC_V2, MIN_RECORD_SIZE, RECORD_MAGICS
from ..remoting.messages.properties import decode_properties
from ..remoting.messages.record_layout import CRC_MASK, FIXED, SIZE_AND_MAGIC, SYS_FLAG, SYS_FLAG_AT
from ..remoting.sysflag import UNWRAP_BITS
from .seen_exchange import (
    Facts,
    deliver_time_of,
    made,
    number_of,
    original_topic_of,
    popped_topic_of,
    time_of_ms,
)

_NO_PROPERTIES: Final[dict[str, str]] = {}


def facts_of_whole(body: bytes, group: str | None) -> list[Facts] | None:
    """Return what the records of a body say, delivered to a group; None where one is odd."""
    found: list[Facts] = []
    at, end = 0, len(body)
    while at < end:
        if end - at < MIN_RECORD_SIZE:
            return None
        size, magic = SIZE_AND_MAGIC.unpack_from(body, at)
        if size < MIN_RECORD_SIZE or at + size > end or magic not in RECORD_MAGICS:
            return None
        (sys_flag,) = SYS_FLAG.unpack_from(body, at + SYS_FLAG_AT)
        if sys_flag & UNWRAP_BITS == UNWRAP_BITS:
            return None
        facts = facts_at(body, at, size, sys_flag >> 4 & 3, 2 if magic == MAGIC_V2 else 1, group)
        if facts is None:
            return None
        found.append(facts)
        at += size
    return found


def facts_at(
    body: bytes, at: int, size: int, hosts: int, width: int, group: str | None
) -> Facts | None:
    """Return what a record says; `width` is that of its topic's length."""
    fixed = FIXED[hosts]
    stop = at + size
    start = at + fixed.size
    if start > stop:
        return None
    (
        _, _, crc, queue_id, _, queue_offset, offset, _, born, _, _, stored, host, port, reconsumed,
        _, length,
    ) = fixed.unpack_from(body, at)  # fmt: skip
    topic_at = start + length + width
    if length < 0 or topic_at > stop:
        return None
    sizes_at = topic_at + int.from_bytes(body[topic_at - width : topic_at], "big")
    if sizes_at + 2 > stop or sizes_at + 2 + (body[sizes_at] << 8 | body[sizes_at + 1]) != stop:
        return None
    topic = body[topic_at:sizes_at].decode("utf-8", "replace")
    properties = _NO_PROPERTIES
    if sizes_at + 2 < stop:
        properties = decode_properties(body[sizes_at + 2 : stop].decode("utf-8", "replace"))
    get = properties.get
    content = body[start : start + length]
    return made(
        Facts,
        (
            popped_topic_of(topic, get("POP_CK"), group),
            original_topic_of(topic, properties),
            queue_id,
            queue_offset,
            None,
            get("PGROUP"),
            group,
            get("UNIQ_KEY"),
            f"{host.hex().upper()}{port & 0xFFFFFFFF:08X}{offset & _MASK:016X}",
            offset,
            get("KEYS"),
            get("TAGS"),
            get("__transactionId__"),
            time_of_ms(born),
            time_of_ms(stored),
            deliver_time_of(properties),
            reconsumed,
            None,
            number_of(get("DELAY")),
            length,
            crc,
            None if crc == 0 and content else zlib.crc32(content) & CRC_MASK == crc,
            None,
            None,
        ),
    )


_MASK: Final = (1 << 64) - 1
