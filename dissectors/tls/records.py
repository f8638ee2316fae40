"""Bytes of one direction to records: kind, version, content, and the packet that completed each.

Rules: what cannot be the head of a record ends the direction, there is no search for another one.
The work is linear in the bytes, however they are cut. RFC 8446 (5.1).
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
MAX_CONTENT: Final = (1 << 14) + 2048
"""bytes of the content of a record: what TLS 1.2 allows for one that is encrypted"""
HEAD: Final = 5
"""bytes before the content: kind, version, length"""
_KINDS: Final = range(CHANGE_CIPHER_SPEC, APPLICATION_DATA + 1)
_MAJOR: Final = 3
_MINORS: Final = 5


class Record(NamedTuple):
    """One record where it was seen."""

    kind: int
    version: int
    content: bytes
    packet: int
    """id of the packet that completed it"""
    ts: int
    """time of that packet, nanoseconds since the epoch"""


@final
class RecordReader:
    """Bytes of one direction in, records out."""

    def __init__(self) -> None:
        self.problem = ""
        """why nothing more is read; empty: it goes on"""
        self.offset = 0
        """offset in the stream behind the last whole record"""
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """The bytes of the record that is not whole."""
        return bytes(self._held)

    @property
    def held_bytes(self) -> int:
        """How many they are."""
        return len(self._held)

    def forget(self) -> None:
        """Let go of what is held."""
        self._held.clear()

    def receive(self, data: bytes, packet: int, ts: int) -> list[Record]:
        """Return the records that are complete with these bytes."""
        found: list[Record] = []
        held = self._held
        held += data
        at, size = 0, len(held)
        while size - at >= HEAD and not self.problem:
            kind, major, minor = held[at], held[at + 1], held[at + 2]
            length = held[at + 3] << 8 | held[at + 4]
            if kind not in _KINDS or major != _MAJOR or minor >= _MINORS or length > MAX_CONTENT:
                self.problem = f"no head of a record: {bytes(held[at : at + HEAD]).hex()}"
                break
            end = at + HEAD + length
            if end > size:
                break
            content = bytes(held[at + HEAD : end])
            found.append(Record(kind, major << 8 | minor, content, packet, ts))
            at = end
        self.offset += at
        if self.problem:
            held.clear()
        else:
            del held[:at]
        return found
