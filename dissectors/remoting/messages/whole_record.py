"""Numbers and places of the parts of a complete stored record, without objects for them.

A record with any oddity (truncated, inner batch, invalid length) is refused: callers decode it with
`records`. The byte order is that of `record_layout`.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from ..sysflag import HOST_BITS, UNWRAP_BITS
from .record_layout import (
    CRC_MASK,
    FIELD_STARTS,
    FIXED,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_SIZE,
    SYS_FLAG_AT,
)

_LEAST: Final[i64] = MIN_RECORD_SIZE
_FIRST: Final[i64] = MAGIC_V1
_SECOND: Final[i64] = MAGIC_V2
_SYS_FLAG: Final[i64] = SYS_FLAG_AT
_ODD_BITS: Final[i64] = UNWRAP_BITS
_HOSTS: Final[i64] = HOST_BITS
_BODY: Final[i64] = FIXED[0].size
_WIDER: Final[i64] = FIXED[1].size - FIXED[0].size
"""additional bytes of an IPv6 host"""
_CRC: Final[i64] = FIELD_STARTS["body_crc"]
_QUEUE_ID: Final[i64] = FIELD_STARTS["queue_id"]
_QUEUE_OFFSET: Final[i64] = FIELD_STARTS["queue_offset"]
_BORN: Final[i64] = FIELD_STARTS["born_timestamp"]
_BORN_HOST: Final[i64] = FIELD_STARTS["born_address"]
_HOST: Final[i64] = FIELD_STARTS["store_timestamp"] - FIELD_STARTS["born_address"]
"""bytes of an IPv4 host and its port"""
_MASK: Final[i64] = CRC_MASK
OFFSET_AT: Final = FIELD_STARTS["physical_offset"]
"""place of the commit log offset in a record"""

UNKNOWN: Final = -1
WRONG: Final = 0
RIGHT: Final = 1
"""result of a CRC check, which a body need not have"""


@final
class WholeRecord:
    """Places in one record; `find` sets them, `read` the numbers."""

    __slots__ = (
        "at", "body_at", "body_crc", "body_length", "born_host_at", "born_ms", "hosts", "offset",
        "properties_at", "queue_id", "queue_offset", "reconsume_times", "stop", "store_host_at",
        "store_host_stop", "stored_at", "stored_ms", "sys_flag", "topic_at", "topic_stop",
    )  # fmt: skip

    def __init__(self) -> None:
        self.at: i64 = 0
        """start of the record"""
        self.stop: i64 = 0
        """end of the record and its properties"""
        self.sys_flag: i64 = 0
        """bits of `SysFlag`"""
        self.hosts: i64 = 0
        """which hosts are IPv6, as in `FIXED`"""
        self.body_at: i64 = 0
        """start of its body"""
        self.body_length: i64 = 0
        """bytes of its body"""
        self.topic_at: i64 = 0
        """start of its topic name"""
        self.topic_stop: i64 = 0
        """end of its topic name"""
        self.properties_at: i64 = 0
        """start of its properties"""
        self.born_host_at: i64 = 0
        """start of the host that sent it, with its port"""
        self.stored_at: i64 = 0
        """end of that host"""
        self.store_host_at: i64 = 0
        """start of the host that stored it, with its port"""
        self.store_host_stop: i64 = 0
        """end of that host"""
        self.queue_id: i64 = 0
        self.queue_offset: i64 = 0
        self.offset: i64 = 0
        """byte offset in the commit log"""
        self.born_ms: i64 = 0
        self.stored_ms: i64 = 0
        self.reconsume_times: i64 = 0
        self.body_crc: i64 = 0

    def find(self, body: bytes, at: i64) -> bool:
        """Find the parts of the record at a place; return False if it is invalid or odd."""
        left: i64 = len(body) - at
        if left < _LEAST:
            return False
        size: i64 = i64(read_i32_be(body, at))
        magic: i64 = i64(read_i32_be(body, at + 4)) & 0xFFFFFFFF
        if size < _LEAST or size > left or (magic != _FIRST and magic != _SECOND):
            return False
        sys_flag: i64 = i64(read_i32_be(body, at + _SYS_FLAG))
        if sys_flag & _ODD_BITS == _ODD_BITS:
            return False
        stop: i64 = at + size
        body_at: i64 = at + _BODY
        hosts: i64 = 0
        if sys_flag & _HOSTS:
            hosts = sys_flag >> 4 & 3
            body_at += _WIDER * ((hosts & 1) + (hosts >> 1))
            if body_at > stop:
                return False
        length: i64 = i64(read_i32_be(body, body_at - 4))
        topic_at: i64 = body_at + length
        if length < 0 or topic_at + 2 > stop:  # the longer form of a topic's length
            return False
        name_size: i64 = i64(body[topic_at])
        topic_at += 1
        if magic == _SECOND:
            name_size = name_size << 8 | i64(body[topic_at])
            topic_at += 1
        topic_stop: i64 = topic_at + name_size
        properties_at: i64 = topic_stop + 2
        if properties_at > stop:
            return False
        # Bytes behind the properties are a problem, which only `records` reports.
        if properties_at + (i64(body[topic_stop]) << 8 | i64(body[topic_stop + 1])) != stop:
            return False
        self.at = at
        self.stop = stop
        self.sys_flag = sys_flag
        self.hosts = hosts
        self.body_at = body_at
        self.body_length = length
        self.topic_at = topic_at
        self.topic_stop = topic_stop
        self.properties_at = properties_at
        return True

    def read(self, body: bytes) -> None:
        """Read the numbers of the current record."""
        at: i64 = self.at
        self.queue_id = i64(read_i32_be(body, at + _QUEUE_ID))
        self.queue_offset = read_i64_be(body, at + _QUEUE_OFFSET)
        self.offset = read_i64_be(body, at + OFFSET_AT)
        self.body_crc = i64(read_i32_be(body, at + _CRC))
        self.born_ms = read_i64_be(body, at + _BORN)
        self.born_host_at = at + _BORN_HOST
        self.stored_at = self.born_host_at + _HOST
        if self.hosts & 1:
            self.stored_at += _WIDER
        self.stored_ms = read_i64_be(body, self.stored_at)
        self.store_host_at = self.stored_at + 8
        self.store_host_stop = self.store_host_at + _HOST
        if self.hosts & 2:
            self.store_host_stop += _WIDER
        self.reconsume_times = i64(read_i32_be(body, self.store_host_stop))

    def crc_of(self, content: bytes) -> i64:
        """Return whether its body, `content`, matches its CRC: RIGHT, WRONG or UNKNOWN."""
        if self.body_crc == 0 and self.body_length > 0:
            return UNKNOWN
        if i64(zlib.crc32(content)) & _MASK == self.body_crc:
            return RIGHT
        return WRONG
