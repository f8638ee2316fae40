"""Trace contexts in message properties: W3C traceparent and SkyWalking sw8.

Other values give None; nothing raises. W3C Trace Context, section 3.2; Apache SkyWalking Cross
Process Propagation Headers Protocol v3.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ...foreign import base64_of, hexadecimal_of, integer_of

TRACEPARENT: Final = "traceparent"
"""Property of W3C trace contexts (OpenTelemetry)."""
SW8: Final = "sw8"
"""Property of SkyWalking."""

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST_PART: Final = 4096
_SW8_PARTS: Final = 8
_SAMPLED: Final = 1
"""bit of the flags in a traceparent"""


class TraceParent(msgspec.Struct, frozen=True, rename="camel"):
    """The W3C context of a message."""

    version: int
    """Version of the form; 0 so far."""
    trace_id: str
    """32 hex digits, common to the whole trace."""
    parent_id: str
    """16 hex digits: the span that sent the message."""
    sampled: bool
    """Whether the caller may have recorded the trace."""


def decode_traceparent(text: str) -> TraceParent | None:
    """Parse a traceparent, or return None if it is invalid: zero ids, version ff, other lengths."""
    match = _TRACEPARENT.fullmatch(text.strip())
    if match is None:
        return None
    version, flags = hexadecimal_of(match[1]), hexadecimal_of(match[4])
    # Later versions may have more fields, the first one has not.
    if version is None or flags is None or version == 0xFF or (version == 0 and match[5]):
        return None
    if not match[2].strip("0") or not match[3].strip("0"):
        return None
    return TraceParent(version, match[2], match[3], bool(flags & _SAMPLED))


class Sw8(msgspec.Struct, frozen=True, rename="camel"):
    """The SkyWalking context of a message."""

    sampled: bool
    """Whether the context is to be recorded."""
    trace_id: str
    """Common to the whole trace."""
    segment_id: str
    """Segment of the sender."""
    span_id: int
    """Span of the sender, within its segment."""
    service: str
    """Service of the sender."""
    instance: str
    """Instance of that service."""
    endpoint: str
    """Endpoint of the sender."""
    address: str
    """Target as the sender addressed it."""


def decode_sw8(text: str) -> Sw8 | None:
    """Parse an sw8 value: eight parts joined by `-`, all but two in base64; or return None."""
    # Base64 has no `-`; a ninth part makes the text invalid.
    parts = text.split("-", _SW8_PARTS)
    if len(parts) != _SW8_PARTS or parts[0] not in ("0", "1"):
        return None
    span_id = integer_of(parts[3])
    texts = [_text_of(part) for part in (*parts[1:3], *parts[4:])]
    if span_id is None or None in texts:
        return None
    known = [text or "" for text in texts]
    return Sw8(parts[0] == "1", known[0], known[1], span_id, *known[2:])


def _text_of(part: str) -> str | None:
    if len(part) > _LONGEST_PART:
        return None
    data = base64_of(part)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
