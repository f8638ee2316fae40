"""Bytes that are not a capture as one: made-up TCP packets around them.

Rules: one connection, its start captured, so that offsets in the stream are offsets in the input;
packets have no time. What is shown says nothing of packets, times and addresses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from dissectors.ports import BROKER

from .pasted import SideBytes

PORT = BROKER
"""the port that the other end listens on, in packets that nobody sees"""
CHUNK = 16 * 1024
"""bytes of one made-up packet"""
_RAW_IPV4 = 228
_SYN, _ACK, _PUSH = 2, 16, 24
_ADDRESSES = (bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2)))
_PORTS = (40000, PORT)


class PartsSource:
    """Parts as the bytes of a pcap: a `Source` of `Decode`."""

    compression = None
    size = None
    problem: str | None = None

    def __init__(self, name: str, parts: Iterable[SideBytes]) -> None:
        self.name = name
        self.bytes_read = 0
        """bytes of the parts so far"""
        self._parts = parts
        self._next = [0, 0]

    def chunks(self) -> Iterator[bytes]:
        """Yield a pcap: a handshake, then the parts in the order they were said."""
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, _RAW_IPV4)
        yield head + self._packet(0, _SYN) + self._packet(1, _SYN | _ACK)
        for side, data in self._parts:
            for at in range(0, len(data), CHUNK):
                part = data[at : at + CHUNK]
                self.bytes_read += len(part)
                yield self._packet(side, _PUSH, part)

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _packet(self, side: int, flags: int, payload: bytes = b"") -> bytes:
        """Return one record of the pcap: IPv4 and TCP headers without checksums, and payload."""
        sequence, acknowledged = self._next[side], self._next[1 - side]
        self._next[side] = (sequence + len(payload) + (flags & _SYN) // _SYN) & 0xFFFFFFFF
        ends = _PORTS[side], _PORTS[1 - side]
        tcp = struct.pack("!HHIIBBHHH", *ends, sequence, acknowledged, 80, flags, 65535, 0, 0)
        size = 20 + len(tcp) + len(payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0)
        ip += _ADDRESSES[side] + _ADDRESSES[1 - side]
        return struct.pack("<IIII", 0, 0, size, size) + ip + tcp + payload
