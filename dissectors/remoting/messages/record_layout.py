"""Byte layout of a stored record: magics, field order, hosts, properties, CRCs; counting by sizes.

Defined once: `message` decodes, encodes, and reads truncated records by it, `batch` shares the
properties. RocketMQ: MessageDecoder, MessageExtEncoder, MessageVersion.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from ipaddress import ip_address
from itertools import accumulate
from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from ...endpoint import endpoint_text, host_and_port_text
from ...foreign import integer_of
from .properties import decode_properties, encode_properties

MAGIC_V1: Final = 0xDAA320A7
"""Magic of a stored record with a topic length of one byte."""
MAGIC_V2: Final = 0xDAA320AB
"""Magic of a stored record with a topic length of two bytes."""
RECORD_MAGICS: Final = (MAGIC_V1, MAGIC_V2)
"""Both kinds of stored record."""
MAGIC_FILLER: Final = 0xCBD43194
"""Magic of the unused end of a commit log file."""

MIN_RECORD_SIZE: Final = 91
"""Bytes of a V1 record with IPv4 hosts, no body, no topic and no properties."""
MIN_FILLER_SIZE: Final = 8
"""Bytes of the smallest file end filler: its size and its magic."""
MIN_ITEM_SIZE: Final = 22
"""Bytes of a batch item with neither body nor properties."""

CRC_MASK: Final = 0x7FFFFFFF
"""RocketMQ clears the top bit of every CRC-32, to keep it positive in Java."""

CRC_PROPERTY: Final = "__CRC32#"
"""The property that a broker with enabledAppendPropCRC writes last into a record."""
CRC_DIGITS: Final = 10
"""Decimal digits of its value."""
CRC_ENTRY_SIZE: Final = len(CRC_PROPERTY) + 1 + CRC_DIGITS + 1
"""Bytes of the whole entry, separators included."""

V1_TOPIC_LIMIT: Final = 127
"""Maximum topic bytes that a broker still writes as V1: Java reads the byte as signed."""

# (field, format) in the order of the bytes; "a" and "b" stand for the host addresses, whose length
# (4 or 16 bytes) sysFlag tells.
FIXED_PART: Final = (
    ("total_size", "i"),
    ("magic", "I"),
    ("body_crc", "i"),
    ("queue_id", "i"),
    ("flag", "i"),
    ("queue_offset", "q"),
    ("physical_offset", "q"),
    ("sys_flag", "i"),
    ("born_timestamp", "q"),
    ("born_address", "a"),
    ("born_port", "i"),
    ("store_timestamp", "q"),
    ("store_address", "b"),
    ("store_port", "i"),
    ("reconsume_times", "i"),
    ("prepared_transaction_offset", "q"),
    ("body_length", "i"),
)
SYS_FLAG_AT: Final = 36
SYS_FLAG: Final = struct.Struct(">i")
SIZE_AND_MAGIC: Final = struct.Struct(">iI")
BORN_PORT: Final = 11
STORE_PORT: Final = 14
"""Fields read if the host is complete, as indices into `FIELD_ENDS`."""


def _forms(hosts: int) -> list[str]:
    """Return the formats of the fixed part; bit 0 of `hosts`: IPv6 born host, bit 1: IPv6 store
    host.
    """
    sizes = {"a": "16s" if hosts & 1 else "4s", "b": "16s" if hosts & 2 else "4s"}
    return [sizes.get(form, form) for _, form in FIXED_PART]


FIXED: Final = tuple(struct.Struct(">" + "".join(_forms(hosts))) for hosts in range(4))
FIELD_ENDS: Final = tuple(
    tuple(accumulate((struct.calcsize(form) for form in _forms(hosts)), initial=0))
    for hosts in range(4)
)
FIELD_STARTS: Final = {name: FIELD_ENDS[0][place] for place, (name, _) in enumerate(FIXED_PART)}
"""field → its place in a record, if the hosts before it are IPv4"""


def properties_of(raw: bytes, cut: bool = False) -> dict[str, str]:
    """Decode properties; if truncated, only the entries that are certainly complete."""
    if cut:
        raw = raw[: raw.rfind(b"\x02") + 1]
    return decode_properties(raw.decode("utf-8", "replace"))


def encode_properties_bytes(properties: dict[str, str], raw: bytes | None) -> bytes:
    """Encode properties, reusing the bytes of `raw` if they have the same meaning."""
    if raw is not None and properties_of(raw) == properties:
        return raw
    return encode_properties(properties).encode()


@lru_cache(maxsize=4096)
def host_of(address: bytes, port: int) -> str:
    """Format address bytes and port as `ip:port`, IPv6 in brackets."""
    return endpoint_text(str(ip_address(address)), port)


def address_of(host: str) -> tuple[bytes, int]:
    """Parse `ip:port` into address bytes and port; raise ValueError if invalid."""
    address, port = host_and_port_text(host)
    number = integer_of(port)
    if number is None:
        raise ValueError(f"no port in {host!r}")
    return ip_address(address).packed, number


def crc_digits(record: bytes) -> str:
    """Return the value of `__CRC32#` for a record that ends with it: least digit first."""
    crc = zlib.crc32(record[:-CRC_ENTRY_SIZE]) & CRC_MASK
    return f"{crc:0{CRC_DIGITS}d}"[::-1]


def properties_crc_ok_of(record: bytes, raw: bytes) -> bool | None:
    """Return whether the final CRC entry of the properties matches, or None if they lack one."""
    entry = raw[-CRC_ENTRY_SIZE:]
    if len(entry) < CRC_ENTRY_SIZE or not entry.startswith(CRC_PROPERTY.encode() + b"\x01"):
        return None
    return entry[len(CRC_PROPERTY) + 1 : -1] == crc_digits(record).encode()


# Counting is in the hot path: only size fields are read. A count never exceeds what the body
# proves: it stops at the first impossible size or magic.
def count_messages(body: bytes, missing: int = 0) -> int:
    """Return the number of stored records in a pull, pop or query body.

    `missing` is the number of uncaptured bytes: a truncated last record counts only if the missing
    bytes can hold its rest, because then it was sent completely. Records entirely in the missing
    part do not count.
    """
    at: i64 = 0
    count: i64 = 0
    end: i64 = len(body)
    absent: i64 = missing
    while end - at >= MIN_FILLER_SIZE:
        size: i64 = i64(read_i32_be(body, at))
        magic: i64 = read_i64_be(body, at) & 0xFFFFFFFF  # unsigned, unlike read_i32_be
        if magic == MAGIC_V1 or magic == MAGIC_V2:  # noqa: SIM109 (compiled: no tuple)
            if size < MIN_RECORD_SIZE or size > end - at + absent:
                break
            count += 1
        elif magic != MAGIC_FILLER or size < MIN_FILLER_SIZE:
            break
        at += size
    return int(count)


def count_batch(body: bytes, missing: int = 0) -> int:
    """Return the number of items in a batch send body; `missing` as for `count_messages`."""
    at: i64 = 0
    count: i64 = 0
    end: i64 = len(body)
    absent: i64 = missing
    while end - at >= MIN_FILLER_SIZE:
        size: i64 = i64(read_i32_be(body, at))
        magic: i64 = read_i64_be(body, at) & 0xFFFFFFFF
        if magic != 0 or size < MIN_ITEM_SIZE or size > end - at + absent:
            break
        count += 1
        at += size
    return int(count)
