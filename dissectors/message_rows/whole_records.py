"""What whole stored records say, read straight from their bytes: the fast way of nearly all.

A body in which anything is odd (a record that is cut, an inner batch, a length that does not fit)
is left to `stored`, which decodes it by `remoting.messages`; a test holds both ways to the same
rows. The order of the bytes is that of `record_layout`.
"""

from __future__ import annotations

import zlib
from typing import Final

from mypy_extensions import i64

from ..remoting.messages.properties import decode_properties
from ..remoting.messages.record_layout import CRC_MASK, FIXED
from ..remoting.messages.whole_record import WholeRecord
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
    record = WholeRecord()
    at: i64 = 0
    while at < len(body):
        if not record.find(body, at):
            return None
        found.append(facts_at(body, record, group))
        at = record.stop
    return found


def facts_at(body: bytes, record: WholeRecord, group: str | None) -> Facts:
    """Return what a record says, delivered to a group."""
    (
        _, _, crc, queue_id, _, queue_offset, offset, _, born, _, _, stored, host, port, reconsumed,
        _, length,
    ) = FIXED[record.hosts].unpack_from(body, record.at)  # fmt: skip
    topic = body[record.topic_at : record.topic_stop].decode("utf-8", "replace")
    properties = _NO_PROPERTIES
    if record.properties_at < record.stop:
        text = body[record.properties_at : record.stop].decode("utf-8", "replace")
        properties = decode_properties(text)
    get = properties.get
    content = body[record.body_at : record.body_at + record.body_length]
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
