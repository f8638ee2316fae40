"""Protocol detection by the first bytes of a conversation, never by port.

RocketMQ is recognized by a frame (`remoting.framing`); these are other protocols on its ports,
so that conversations that are not decoded are counted by protocol.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

TLS: Final = "TLS"
HTTP: Final = "HTTP"
HTTP2: Final = "HTTP/2"
GRPC: Final = "gRPC"
HAPROXY: Final = "HAProxy"
KAFKA: Final = "Kafka"
AMQP: Final = "AMQP"
REDIS: Final = "Redis"
UNKNOWN: Final = "unknown"
NO_PAYLOAD: Final = "no payload"

_KAFKA_REQUEST: Final = (
    rb"\x00\x00[\x00-\x0f].\x00[\x03\x11\x12]\x00[\x00-\x0f]...."
    rb"\x00(?:\x01[!-~]|[\x02-\xff][!-~]{2})"
)
"""length, API key (Metadata, SaslHandshake, ApiVersions), version, correlation id, client id"""

SIGNATURES: Final = (
    (TLS, re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")),
    (HTTP2, re.compile(rb"PRI \* HTTP/2\.0\r\n")),
    (HTTP, re.compile(rb"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) [!-~]+ HTTP/1")),
    (HTTP, re.compile(rb"HTTP/1\.[01] [1-5][0-9][0-9]")),
    (HAPROXY, re.compile(rb"PROXY (?:TCP[46]|UNKNOWN)|\r\n\r\n\x00\r\nQUIT\n")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    (AMQP, re.compile(rb"AMQP[\x00-\x03]")),
    (REDIS, re.compile(rb"\*[1-9][0-9]{0,5}\r\n\$[0-9]{1,9}\r\n")),
    (REDIS, re.compile(rb"\+(?:OK|PONG)\r\n|-(?:ERR|NOAUTH) ")),
    (KAFKA, re.compile(_KAFKA_REQUEST, re.DOTALL)),
)
"""protocol and pattern of its first bytes; the PROXY protocol precedes another protocol"""

_GRPC: Final = re.compile(rb"application/grpc|\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64")
"""the content type in HTTP/2 headers, plain or Huffman-coded (HPACK)"""

_FRAME_HEAD: Final = 9
"""bytes of an HTTP/2 frame header: length, type, flags, stream"""
_LONGEST: Final = 0x40
"""maximum of the length's second byte: a frame has up to 16 KiB"""
_FIRST_TYPES: Final = b"\x01\x04\x06\x08"
"""frame types at the start of a segment with headers: HEADERS, SETTINGS, PING, WINDOW_UPDATE"""
_RESERVED: Final = 0x80
"""the reserved bit of a stream id, always zero"""


def protocol_of(data: bytes) -> str | None:
    """Return the protocol of these first bytes, or None if no signature matches."""
    for name, pattern in SIGNATURES:
        if pattern.match(data):
            return name
    return None


def refined(protocol: str, data: bytes) -> str:
    """Return the protocol, refined by later bytes: HTTP/2 that carries gRPC."""
    if protocol == HTTP2 and _GRPC.search(data):
        return GRPC
    return protocol


def may_be_calls(data: bytes, start: i64, end: i64) -> bool:
    """Return whether HTTP/2 frames with headers may begin here: a fast check."""
    if end - start < _FRAME_HEAD or data[start] or data[start + 1] > _LONGEST:
        return False
    return data[start + 3] in _FIRST_TYPES and data[start + 5] < _RESERVED
