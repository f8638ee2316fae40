"""Findings about the input as values: a closed list of kinds, each with a severity.

Nothing in ``dissectors`` raises because of the content of a capture or a peer; decoding reports an
`Finding` and continues. Severities are those of Wireshark's expert information.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """Severity of a finding, in ascending order."""

    CHAT = 1
    NOTE = 2
    WARNING = 3
    ERROR = 4


class FindingKind(Enum):
    """The closed list of findings: severity and meaning of each."""

    CAPTURE_TRUNCATED = (Severity.WARNING, "the capture file ends inside a packet")
    CAPTURE_DAMAGED = (Severity.ERROR, "bytes of the capture file are not a packet")
    UNSUPPORTED_LINKTYPE = (Severity.WARNING, "packets of a link type that is not decoded")
    PACKET_TRUNCATED = (Severity.NOTE, "the snap length cut TCP payload off")
    PACKET_MALFORMED = (Severity.NOTE, "a packet's headers do not fit the packet")
    FRAGMENT_LOST = (Severity.WARNING, "an IP datagram of which fragments are missing")
    MIDSTREAM = (Severity.NOTE, "the capture starts inside the connection (no SYN)")
    RETRANSMISSION = (Severity.NOTE, "TCP payload that was seen before")
    OUT_OF_ORDER = (Severity.NOTE, "TCP payload that arrived late")
    OVERLAP_MISMATCH = (Severity.WARNING, "a retransmission differs from the first copy")
    GAP = (Severity.WARNING, "bytes of the stream that the capture does not have")
    RESET = (Severity.NOTE, "the connection was reset")
    NOT_ROCKETMQ = (Severity.CHAT, "a conversation of another protocol, not decoded")
    PROXY_HEADER = (Severity.CHAT, "a HAProxy header before the first frame")
    TLS_SECRET_MISSING = (Severity.NOTE, "a TLS session whose secrets are not in the key log")
    TLS_MIDSTREAM = (Severity.NOTE, "a TLS connection of which no handshake was captured")
    TLS_UNSUPPORTED = (Severity.NOTE, "a TLS version or cipher suite that is not decrypted")
    TLS_GAP = (Severity.WARNING, "decryption of a direction ends at a hole")
    TLS_BAD_RECORD = (Severity.WARNING, "decryption of a direction ends at a record that is none")
    BAD_FRAME = (Severity.ERROR, "a length prefix that cannot be one")
    FRAME_TOO_LARGE = (Severity.ERROR, "a frame over the frame limit")
    RESYNCHRONIZED = (Severity.NOTE, "decoding goes on at the next plausible frame")
    FRAME_CUT = (Severity.WARNING, "the stream ends inside a frame")
    HEADERS_LOST = (
        Severity.WARNING,
        "HTTP/2 headers that the capture does not have: calls that need them are not read",
    )
    BAD_HEADER = (Severity.ERROR, "a header that does not parse")
    BAD_FIELD = (Severity.WARNING, "a header field that is missing or does not parse")
    RELEASES_DIFFER = (
        Severity.WARNING,
        "a header or body that some releases of RocketMQ read differently, or not at all",
    )
    UNKNOWN_CODE = (Severity.NOTE, "a code that is in no known release")
    BAD_BODY = (Severity.WARNING, "a body that does not decode")
    BAD_MESSAGE = (Severity.WARNING, "a stored message that does not decode or fails its CRC")
    BAD_REPLICATION = (Severity.WARNING, "a transfer or report that does not follow the one before")
    FAULT_INJECTED = (Severity.NOTE, "a request into which rmqtool proxy injected a fault")
    OPAQUE_REUSED = (Severity.WARNING, "a request with the opaque of one that is unanswered")
    PAIRING_LIMIT = (Severity.WARNING, "too many unanswered requests; the oldest is given out")
    CONVERSATION_LIMIT = (Severity.WARNING, "too many conversations; the stalest is given up")
    REASSEMBLY_LIMIT = (Severity.WARNING, "too many bytes held; what is held is given out")
    EXPERT_LIMIT = (Severity.NOTE, "more findings of one kind; they are counted only")

    def __init__(self, severity: Severity, meaning: str) -> None:
        self.severity = severity
        self.meaning = meaning


def undecoded(error: Exception) -> str:
    """Return the detail of a finding for a decoder that raised, which none should."""
    return f"not decoded: {type(error).__name__}"


class Finding(NamedTuple):
    """A finding and its place in the input."""

    kind: FindingKind
    """kind of finding"""
    detail: str
    """details for people; may quote the input, so escape it for a terminal"""
    ts: int
    """time of the packet, nanoseconds since the epoch, or 0"""
    packet: int
    """packet id (see `dissectors.tcp.capture`), or 0"""
    conversation: int
    """number of the conversation, or -1"""
    offset: int
    """offset in the stream, or in the file if the finding is about the file; -1 if none"""
