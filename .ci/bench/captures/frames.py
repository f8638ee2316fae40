"""Frames and stored messages for the generated captures, written independently of `dissectors`.

The benchmark is an oracle for the decoder, so it has its own encoder: upstream's RemotingCommand
(JSON), RocketMQSerializable (binary) and the commit log record of MessageDecoder. A writer is one
process: its language, version and serialisation are the same in all its commands.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

Fields = list[tuple[bytes, bytes]]

_PREFIX = struct.Struct(">II").pack
_BINARY_HEAD = struct.Struct(">HBHiiI").pack
_INT16 = struct.Struct(">H").pack
_INT32 = struct.Struct(">I").pack
# size, magic, CRC, queue, flag, offset, position, sysFlag, born, host, stored, host, reconsume,
# prepared, body length
_STORED = struct.Struct(">IIIIIQQIQ4sIQ4sIIQI").pack
_STORED_FIXED = 91


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes a direction of a connection."""

    language: bytes
    """Name in LanguageCode."""
    language_code: int
    """Number in LanguageCode."""
    version: int
    """Ordinal in MQVersion."""
    binary: bool
    """True for the ROCKETMQ serialisation, False for JSON."""


def encode_command(
    writer: Writer,
    code: int,
    flag: int,
    opaque: int,
    fields: Fields,
    remark: bytes = b"",
    body: bytes = b"",
) -> bytes:
    """Return the whole frame, length prefix included."""
    if writer.binary:
        header = _binary_header(writer, code, flag, opaque, fields, remark)
        mark = 0x01000000
    elif writer.language == b"GO":
        header = _go_header(writer, code, flag, opaque, fields, remark)
        mark = 0
    else:
        header = _java_header(writer, code, flag, opaque, fields, remark)
        mark = 0
    size = len(header)
    return _PREFIX(4 + size + len(body), mark | size) + header + body


def _json_fields(fields: Fields) -> bytes:
    text = b",".join([b'"%b":"%b"' % pair for pair in fields])
    # the only control characters here are the two separators of a property string
    return text.replace(b"\x01", rb"\u0001").replace(b"\x02", rb"\u0002")


def _java_header(
    writer: Writer, code: int, flag: int, opaque: int, fields: Fields, remark: bytes
) -> bytes:
    """fastjson: members in alphabetical order, null members left out."""
    return b'{"code":%d,%b"flag":%d,"language":"%b","opaque":%d,%b%b"version":%d}' % (
        code,
        b'"extFields":{%b},' % _json_fields(fields) if fields else b"",
        flag,
        writer.language,
        opaque,
        b'"remark":"%b",' % remark if remark else b"",
        b'"serializeTypeCurrentRPC":"JSON",',
        writer.version,
    )


def _go_header(
    writer: Writer, code: int, flag: int, opaque: int, fields: Fields, remark: bytes
) -> bytes:
    """Another order of members, and an empty remark instead of none."""
    return (
        b'{"code":%d,"language":"%b","version":%d,"opaque":%d,"flag":%d,"remark":"%b",'
        b'"extFields":{%b}}'
    ) % (code, writer.language, writer.version, opaque, flag, remark, _json_fields(fields))


def _binary_header(
    writer: Writer, code: int, flag: int, opaque: int, fields: Fields, remark: bytes
) -> bytes:
    parts: list[bytes] = []
    for key, value in fields:
        parts += (_INT16(len(key)), key, _INT32(len(value)), value)
    entries = b"".join(parts)
    head = _BINARY_HEAD(code, writer.language_code, writer.version, opaque, flag, len(remark))
    return b"".join((head, remark, _INT32(len(entries)), entries))


def encode_stored_message(
    topic: bytes,
    queue: int,
    offset: int,
    position: int,
    born_ms: int,
    born_host: bytes,
    store_host: bytes,
    properties: bytes,
    body: tuple[bytes, int],
) -> bytes:
    """Return one V1 record; hosts are 8 bytes (IPv4 address and int32 port), the body comes with
    its CRC."""
    data, crc = body
    size = _STORED_FIXED + len(data) + len(topic) + len(properties)
    head = _STORED(
        size,
        0xDAA320A7,
        crc,
        queue,
        0,
        offset,
        position,
        0,
        born_ms,
        born_host[:4],
        int.from_bytes(born_host[4:], "big"),
        born_ms + 1,
        store_host[:4],
        int.from_bytes(store_host[4:], "big"),
        0,
        0,
        len(data),
    )
    return b"".join((head, data, bytes((len(topic),)), topic, _INT16(len(properties)), properties))


def stored_crc(data: bytes) -> int:
    """Return the CRC a stored message carries: CRC-32 with the top bit cleared."""
    return zlib.crc32(data) & 0x7FFFFFFF
