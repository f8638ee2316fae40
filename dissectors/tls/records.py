"""Cut one direction into TLS records: type, version, content, and completing packet.

Rules: an invalid record header ends the direction; there is no search for another one. The work is
linear in the bytes, however they are segmented. RFC 8446 (5.1).
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
MAX_CONTENT: Final = (1 << 14) + 2048
"""maximum content bytes of a record: the TLS 1.2 limit for ciphertext"""
HEAD: Final = 5
"""bytes of a record header: type, version, length"""
_KINDS: Final = range(CHANGE_CIPHER_SPEC, APPLICATION_DATA + 1)
_MAJOR: Final = 3
_MINORS: Final = 5


class Record(NamedTuple):
    """A record and its packet."""

    kind: int
    version: int
    content: bytes
    packet: int
    """id of the packet that completed it"""
    ts: int
    """time of that packet, nanoseconds since the epoch"""


@final
class RecordReader:
    """Cuts the bytes of one direction into records."""

    def __init__(self) -> None:
        self.problem = ""
        """why nothing more is read, or empty"""
        self.offset = 0
        """stream offset after the last complete record"""
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """Bytes of the incomplete record."""
        return bytes(self._held)

    @property
    def held_bytes(self) -> int:
        """Number of held bytes."""
        return len(self._held)

    def forget(self) -> None:
        """Drop held bytes."""
        self._held.clear()

    def receive(self, data: bytes, packet: int, ts: int) -> list[Record]:
        """Return the records that these bytes complete."""
        records: list[Record] = []
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
            records.append(Record(kind, major << 8 | minor, content, packet, ts))
            at = end
        self.offset += at
        if self.problem:
            held.clear()
        else:
            del held[:at]
        return records
