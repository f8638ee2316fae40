"""What a conversation speaks, told by its first bytes: never by its port.

RocketMQ is recognised by a frame (`remoting.frame`); this is what else is met on its ports, so
that a conversation that is not decoded is counted as what it is.
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
"""protocol and how its first bytes look; HAProxy's header comes before another protocol"""

_GRPC: Final = re.compile(rb"application/grpc|\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64")
"""the content type in HTTP/2 headers, plain or in HPACK's Huffman code"""

_FRAME_HEAD: Final = 9
"""bytes of the head of a frame of HTTP/2: length, type, flags, stream"""
_LONGEST: Final = 0x40
"""second byte of its length: a frame has 16 KiB"""
_FIRST_TYPES: Final = b"\x01\x04\x06\x08"
"""frames that may begin a segment with headers: HEADERS, SETTINGS, PING, WINDOW_UPDATE"""
_RESERVED: Final = 0x80
"""a bit that is zero in the number of a stream"""


def protocol_of(data: bytes) -> str | None:
    """Return the protocol that these first bytes belong to, or None where no signature fits."""
    for name, pattern in SIGNATURES:
        if pattern.match(data):
            return name
    return None


def refined(protocol: str, data: bytes) -> str:
    """Return the protocol again, more exactly where later bytes tell: HTTP/2 that carries gRPC."""
    if protocol == HTTP2 and _GRPC.search(data):
        return GRPC
    return protocol


def may_be_calls(data: bytes, start: i64, end: i64) -> bool:
    """Return whether frames of HTTP/2, headers among them, may begin here: a quick look."""
    if end - start < _FRAME_HEAD or data[start] or data[start + 1] > _LONGEST:
        return False
    return data[start + 3] in _FIRST_TYPES and data[start + 5] < _RESERVED
