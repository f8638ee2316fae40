"""Find the start of an HTTP/2 direction whose beginning was not captured.

Nothing marks the beginning of a frame, so only a segment that begins with a header block is
certain: it is whole, decodes, and has the static-table entries of every gRPC request or response.
Control frames may precede it. RFC 9113 (4.1), RFC 7541 (A).
"""

from __future__ import annotations

from typing import Final

from .frame import (
    ACK,
    END_HEADERS,
    END_STREAM,
    HAS_PRIORITY,
    HEAD,
    HEADERS,
    PADDED,
    PING,
    SETTINGS,
    WINDOW_UPDATE,
    is_plausible,
)
from .header_blocks import HeaderBlocks, Headers

MOST_BEFORE: Final = 8
"""maximum frames skipped before the header block"""
MOST_LOOKS: Final = 1024
"""header blocks tried per direction: each costs thirty times as much as a packet"""
_CONTROLS: Final = {SETTINGS: ACK, PING: ACK, WINDOW_UPDATE: 0}
"""frames that may precede it → their only valid flags"""
_FLAGS: Final = END_STREAM | END_HEADERS | PADDED | HAS_PRIORITY
_PRIORITY: Final = 5
_METHOD: Final = (":method", "POST")
_STATUS: Final = (":status", "200")
_SCHEMES: Final = frozenset(((":scheme", "http"), (":scheme", "https")))


class Joining:
    """Searches for the start of a direction, a bounded number of times."""

    def __init__(self) -> None:
        self._left = MOST_LOOKS

    def is_start(self, data: bytes) -> bool:
        """Return whether these bytes begin with a frame and contain the headers of a call."""
        at = 0
        for _ in range(MOST_BEFORE):
            head = data[at : at + HEAD]
            if len(head) < HEAD or not _is_frame(head):
                return False
            stop = at + HEAD + int.from_bytes(head[:3])
            if stop > len(data):
                return False
            if head[3] == HEADERS:
                behind = data[stop : stop + HEAD]
                by_client = head[HEAD - 1] & 1  # clients open call streams, with odd numbers
                goes_on = len(behind) < HEAD or _is_frame(behind)
                if not by_client or not goes_on or not self._left:
                    return False
                self._left -= 1
                return _is_call(head[4], data[at + HEAD : stop])
            if head[3] not in _CONTROLS or head[4] & ~_CONTROLS[head[3]]:
                return False
            at = stop
        return False


def _is_frame(head: bytes) -> bool:
    return is_plausible(int.from_bytes(head[:3]), head[3], int.from_bytes(head[5:]))


def _is_call(flags: int, payload: bytes) -> bool:
    """Return whether this is the header block of a gRPC request or response."""
    if flags & ~_FLAGS or not flags & END_HEADERS or not payload:
        return False
    block = payload
    if flags & PADDED:
        block = payload[1 : max(len(payload) - payload[0], 1)]
    if flags & HAS_PRIORITY:
        block = block[_PRIORITY:]
    # A table of its own: these bytes may not be a header block, and would spoil that of the stream.
    headers = HeaderBlocks(joined=True).decode(block)
    return headers is not None and _is_call_headers(headers)


def _is_call_headers(headers: Headers) -> bool:
    if not headers or any(name and not _is_name(name) for name, _ in headers):
        return False
    return headers[0] == _STATUS or (_METHOD in headers and not _SCHEMES.isdisjoint(headers))


def _is_name(name: str) -> bool:
    return name.isascii() and name.isprintable() and name == name.lower()
