"""Write a client's traffic as a pcapng for Wireshark, with synthesized TCP.

Packets are raw IPv4 or IPv6 with correct lengths, checksums, sequence and acknowledgement numbers.
Times are those of the write and the read. TLS connections are written in plain text. A failed write
(disk full) ends the capture, not the sending. Format: RFC 791, 8200, 9293; LINKTYPE_RAW.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import BinaryIO, Final

from dissectors.endpoint import host_and_port_text
from dissectors.foreign import natural_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.segment import ACK, FIN, RST, SYN
from dissectors.temporary import PRIVATE, create_new

from .forks import blind, watch_forks

LINKTYPE_RAW: Final = 101
_PSH: Final = 0x08
_TCP: Final = 6
_HOPS: Final = 64
_WINDOW: Final = 65535
_MTU: Final = 1500
_HEADERS_V4: Final = 20 + 20
_HEADERS_V6: Final = 40 + 20
_TCP_HEADER: Final = struct.Struct(">HHIIHHHH")
_V4_HEADER: Final = struct.Struct(">BBHHHBBH4s4s")
_V6_HEADER: Final = struct.Struct(">IHBB16s16s")
_BUFFER: Final = 1 << 18


class WireCapture:
    """Writes the connections of a client to one file."""

    def __init__(self, path: str, file: BinaryIO | None = None) -> None:
        """Create the file, readable only by the user; OSError if it exists or cannot be created.

        `file`: an already open file, of which `path` is the name.
        """
        file = create_new(Path(path), PRIVATE, _BUFFER) if file is None else file
        self._file: BinaryIO | None = file
        self._writer = PcapngWriter(file, LINKTYPE_RAW)
        self._connections = 0
        self.path = path
        """the file"""
        self.error: OSError | None = None
        """why writing stopped; None while it works"""
        watch_forks(self)

    @property
    def packets(self) -> int:
        """Number of packets written so far."""
        return self._writer.packets

    def opened(self, ts_ns: int, local: str, remote: str) -> WireConnection:
        """Return a new connection between two `address:port` (IPv6 in brackets)."""
        self._connections += 1
        return WireConnection(self, ts_ns, local, remote, self._connections)

    def write(self, ts_ns: int, packet: bytes, fault: str = "") -> None:
        """Write one packet and its injected fault; never raises for file errors."""
        if self._file is None:
            return
        try:
            self._writer.write(ts_ns, packet, None, fault)
        except OSError as error:
            self._give_up(error)

    def flush(self) -> None:
        """Flush the file for other readers."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Close the file; later packets are dropped."""
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                self.error = error

    def forked(self) -> None:
        """Leave the file to the parent process; this process writes nothing more to it."""
        file, self._file = self._file, None
        if file is not None:
            blind([file.fileno()])

    def _give_up(self, error: OSError) -> None:
        self.error = error
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # closing flushes and fails for the same reason
                file.close()

    def __enter__(self) -> WireCapture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WireConnection:
    """One connection in a capture."""

    def __init__(
        self, capture: WireCapture, ts_ns: int, local: str, remote: str, number: int
    ) -> None:
        self._capture = capture
        here, there = _end_of(local), _end_of(remote)
        if isinstance(here[0], IPv6Address) or isinstance(there[0], IPv6Address):
            here, there = _as_v6(here), _as_v6(there)
        first = number * 0x01000193 & 0xFFFFFFFF  # spread out, as real initial sequence numbers are
        self._out = _Direction(here, there, first)
        self._in = _Direction(there, here, first ^ 0x5A5A5A5A)
        self._open = True
        self._ended: _Direction | None = None
        # maximum segment size
        options = struct.pack(">BBH", 2, 4, self._out.most)
        self._put(ts_ns, self._out, SYN, b"", options)
        self._put(ts_ns, self._in, SYN | ACK, b"", options)
        self._put(ts_ns, self._out, ACK)

    def sent(self, ts_ns: int, data: bytes | bytearray | memoryview, fault: str = "") -> None:
        """Write bytes sent to the socket at `ts_ns`, ns since the epoch.

        `fault`: the fault injected into their last request.
        """
        self._data(ts_ns, self._out, data, fault)

    def received(self, ts_ns: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes read from the socket at `ts_ns`, ns since the epoch."""
        self._data(ts_ns, self._in, data)

    def half_closed(self, ts_ns: int, *, by_peer: bool) -> None:
        """Write a half-close of one side."""
        if self._open and self._ended is None:
            self._ended = self._in if by_peer else self._out
            self._put(ts_ns, self._ended, FIN | ACK)

    def closed(self, ts_ns: int, *, by_peer: bool = False, reset: bool = False) -> None:
        """Write the end of the connection: closed by this client or the peer, or lost (`reset`)."""
        if not self._open:
            return
        self._open = False
        if self._ended is not None and not reset:
            by_peer = self._ended is self._in
        first, second = (self._in, self._out) if by_peer else (self._out, self._in)
        if reset:
            self._put(ts_ns, first, RST | ACK)
            return
        if self._ended is None:
            self._put(ts_ns, first, FIN | ACK)
        self._put(ts_ns, second, FIN | ACK)
        self._put(ts_ns, first, ACK)

    def _data(
        self,
        ts_ns: int,
        direction: _Direction,
        data: bytes | bytearray | memoryview,
        fault: str = "",
    ) -> None:
        if not self._open:
            return
        size, most = len(data), direction.most
        for at in range(0, size, most):
            piece = bytes(data[at : at + most])
            if at + most >= size:
                self._put(ts_ns, direction, ACK | _PSH, piece, fault=fault)
            else:
                self._put(ts_ns, direction, ACK, piece)

    def _put(
        self,
        ts_ns: int,
        direction: _Direction,
        flags: int,
        payload: bytes = b"",
        options: bytes = b"",
        fault: str = "",
    ) -> None:
        other = self._in if direction is self._out else self._out
        acknowledged = other.sequence if flags & ACK else 0
        packet = direction.packet(acknowledged, flags, payload, options)
        self._capture.write(ts_ns, packet, fault)
        taken = len(payload) + bool(flags & (SYN | FIN))
        direction.sequence = (direction.sequence + taken) & 0xFFFFFFFF


_End = tuple[IPv4Address | IPv6Address, int]


class _Direction:
    """One direction of a connection: its addresses and its next sequence number."""

    __slots__ = ("_addresses", "_fixed", "_number", "_ports", "_v6", "most", "sequence")

    def __init__(self, source: _End, destination: _End, sequence: int) -> None:
        self.sequence = sequence
        self._v6 = isinstance(source[0], IPv6Address)
        self.most = _MTU - (_HEADERS_V6 if self._v6 else _HEADERS_V4)
        self._addresses = source[0].packed, destination[0].packed
        self._ports = source[1], destination[1]
        self._number = 0
        pseudo = b"".join(self._addresses) + bytes((0, _TCP))
        self._fixed = int.from_bytes(pseudo, "big")

    def packet(self, acknowledged: int, flags: int, payload: bytes, options: bytes) -> bytes:
        """Return the complete packet with checksums."""
        size = 20 + len(options)
        # length in words of 4 bytes, in the upper 4 of 16 bits: size / 4 << 12
        fields = (*self._ports, self.sequence, acknowledged, size << 10 | flags, _WINDOW)
        head = _TCP_HEADER.pack(*fields, 0, 0) + options
        total = size + len(payload)
        words = self._fixed + total + int.from_bytes(head, "big")
        # an odd payload counts as if a zero byte followed
        words += int.from_bytes(payload, "big") << (8 if len(payload) & 1 else 0)
        checksum = _complement(words)
        head = _TCP_HEADER.pack(*fields, checksum, 0) + options
        return self._ip_header(total) + head + payload

    def _ip_header(self, length: int) -> bytes:
        source, destination = self._addresses
        if self._v6:
            return _V6_HEADER.pack(6 << 28, length, _TCP, _HOPS, source, destination)
        self._number = (self._number + 1) & 0xFFFF
        # version 4 with 5 words of header; 0x4000: do not fragment
        fields = (0x45, 0, 20 + length, self._number, 0x4000, _HOPS, _TCP)
        header = _V4_HEADER.pack(*fields, 0, source, destination)
        checksum = _complement(int.from_bytes(header, "big"))
        return _V4_HEADER.pack(*fields, checksum, source, destination)


def _complement(words: int) -> int:
    """Return the checksum of 16-bit words given as one number: 2¹⁶ is 1 modulo 2¹⁶ - 1."""
    folded = words % 0xFFFF
    return ~(folded or 0xFFFF) & 0xFFFF


def _end_of(address: str) -> _End:
    """Split `address:port`; a name that is not an IP address becomes 0.0.0.0."""
    host, port = host_and_port_text(address)
    try:
        return ip_address(host.partition("%")[0]), (natural_of(port) or 0) & 0xFFFF
    except ValueError:
        return IPv4Address(0), 0


def _as_v6(end: _End) -> _End:
    address, port = end
    if isinstance(address, IPv4Address):
        return IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed), port
    return end
