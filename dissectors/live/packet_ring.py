"""Read packets of a Linux packet socket in bulk, from the kernel's ring (TPACKET_V3).

The kernel writes packets with their times into shared memory blocks; a block that is full, or old
enough, is read at once and returned. A packet costs no system call, and the blocks buffer packets
while nobody reads. Linux: include/uapi/linux/if_packet.h.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
from typing import Final, NamedTuple, Protocol

RING_BYTES: Final = 64 * 1024 * 1024
"""memory for unread packets"""
BLOCK_BYTES: Final = 256 * 1024
"""block size: larger than any packet, but many blocks, because a timeout retires one with a single
packet too
"""
RETIRE_MS: Final = 40
"""milliseconds until a partly filled block is retired"""
FRAME_BYTES: Final = 2048
"""must divide a block; TPACKET_V3 uses it for nothing else"""

SOL_PACKET: Final = 263
PACKET_RX_RING: Final = 5
PACKET_STATISTICS: Final = 6
PACKET_VERSION: Final = 10
PACKET_IGNORE_OUTGOING: Final = 23
PACKET_OUTGOING: Final = 4
TPACKET_V3: Final = 2
SOL_SOCKET: Final = 1
SO_ERROR: Final = 4
SO_RCVBUF: Final = 8
SO_ATTACH_FILTER: Final = 26
SO_RCVBUFFORCE: Final = 33

_STATUS: Final = 8
"""offset of the owner in a block; the number of packets and the first one follow"""
_BLOCK: Final = struct.Struct("=II")
_PACKET: Final = struct.Struct("=IIIIIIHHIIH")
"""tpacket3_hdr: next, seconds, nanoseconds, captured, length, status, mac, net, hash, VLAN"""
_PACKET_TYPE: Final = 48 + 10
"""offset of the packet direction in the sockaddr_ll behind it"""
_USER: Final = 1
_VLAN_VALID: Final = 0x10
_VLAN_TPID_VALID: Final = 0x40
_VLAN: Final = 0x8100
_ADDRESSES: Final = 12
"""bytes of an Ethernet header before its VLAN tag"""


class RingPacket(NamedTuple):
    """A captured packet."""

    ts: int
    """nanoseconds since the epoch, from the kernel"""
    data: bytes
    length: int
    """length on the wire"""


class PacketSocket(Protocol):
    """The used part of an AF_PACKET socket."""

    def fileno(self) -> int: ...
    def setsockopt(self, level: int, name: int, value: int | bytes) -> None: ...
    def getsockopt(self, level: int, name: int, size: int) -> bytes: ...


class PacketRing:
    """The ring of one bound packet socket, which the caller keeps."""

    def __init__(
        self, socket: PacketSocket, *, skip_outgoing: bool = False, ring_bytes: int = RING_BYTES
    ) -> None:
        """`skip_outgoing`: ignore outgoing packets.

        Raise OSError if the kernel has no such ring.
        """
        self._blocks = max(ring_bytes // BLOCK_BYTES, 2)
        self._at = 0
        self._fileno = socket.fileno()
        self._socket = socket
        self._skip_outgoing = skip_outgoing
        # First: the kernel refuses another version once there is a ring.
        socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
        size = self._blocks * BLOCK_BYTES
        # struct tpacket_req3
        request = (BLOCK_BYTES, self._blocks, FRAME_BYTES, size // FRAME_BYTES, RETIRE_MS, 0, 0)
        socket.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("=7I", *request))
        self._memory = mmap.mmap(self._fileno, size)
        self._poll = select.poll()
        self._poll.register(self._fileno, select.POLLIN | select.POLLERR)

    def receive(self, timeout: float) -> list[RingPacket]:
        """Return the packets of the next block, or an empty list after `timeout` seconds.

        Raise OSError if the interface went down or away.
        """
        start = self._at * BLOCK_BYTES
        status, count = _BLOCK.unpack_from(self._memory, start + _STATUS)
        if not status & _USER:
            for _, event in self._poll.poll(timeout * 1000):
                if event & select.POLLERR:
                    _raise_error(self._socket)
            status, count = _BLOCK.unpack_from(self._memory, start + _STATUS)
            if not status & _USER:
                return []
        packets = self._packets(
            start, count
        )  # copies: the kernel may write to the block after this
        struct.pack_into("=I", self._memory, start + _STATUS, 0)
        self._at = (self._at + 1) % self._blocks
        return packets

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()

    def _packets(self, start: int, count: int) -> list[RingPacket]:
        memory = self._memory
        unpack = _PACKET.unpack_from
        at = start + struct.unpack_from("=I", memory, start + _STATUS + 8)[0]
        packets = []
        for _ in range(count):
            step, seconds, nanoseconds, size, length, status, mac, _, _, tci, tpid = unpack(
                memory, at
            )
            data = memory[at + mac : at + mac + size]
            if not (self._skip_outgoing and memory[at + _PACKET_TYPE] == PACKET_OUTGOING):
                if status & _VLAN_VALID and size >= _ADDRESSES:
                    tag = tpid if status & _VLAN_TPID_VALID else _VLAN
                    data = tagged(data, tag, tci)
                    length += 4
                packets.append(RingPacket(seconds * 1_000_000_000 + nanoseconds, data, length))
            at += step
        return packets


def tagged(data: bytes, tpid: int, tci: int) -> bytes:
    """Return an Ethernet packet with the VLAN tag that the interface removed."""
    return data[:_ADDRESSES] + struct.pack("!HH", tpid, tci) + data[_ADDRESSES:]


def packet_statistics(socket: PacketSocket) -> tuple[int, int]:
    """Return packets that passed the filter and packets lost, since the last call."""
    data = socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 12)
    received, dropped = struct.unpack_from("=II", data)
    return received, dropped


def ignores_outgoing(socket: PacketSocket) -> bool:
    """Hide outgoing packets; return False if the kernel cannot (before 4.20)."""
    try:
        socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    except OSError:
        return False
    return True


def set_buffer(socket: PacketSocket, size: int) -> None:
    """Set the receive buffer of a socket without a ring, up to the system limit."""
    for name in (SO_RCVBUFFORCE, SO_RCVBUF):
        try:
            socket.setsockopt(SOL_SOCKET, name, size)
        except (OSError, AttributeError):
            continue
        return


def _raise_error(socket: PacketSocket) -> None:
    number = int.from_bytes(socket.getsockopt(SOL_SOCKET, SO_ERROR, 4), "little", signed=True)
    if number:
        raise OSError(number, os.strerror(number))
