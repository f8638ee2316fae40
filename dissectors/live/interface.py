"""Live packets of a network interface, read in bulk from an open socket.

`with_scapy.sockets` opens the socket. On Linux packets come from the kernel's ring (`packet_ring`)
with kernel times, elsewhere one by one. Errors are raised only for user mistakes: no permission, no
such interface, a bad filter.
"""

from __future__ import annotations

import errno
import select
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from .packet_ring import (
    RING_BYTES,
    PacketRing,
    PacketSocket,
    RingPacket,
    ignores_outgoing,
    packet_statistics,
    set_buffer,
)

LINKTYPE_ETHERNET: Final = 1
LINKTYPE_RAW: Final = 101
WAIT: Final = 0.2
"""seconds without a packet until `LiveSource` yields an empty chunk"""
BATCH: Final = 512
"""packets read at a time without a ring"""
MTU: Final = 0xFFFF
ALL_PROTOCOLS: Final = 3
"""ETH_P_ALL"""

_LINKTYPES: Final = {1: LINKTYPE_ETHERNET, 772: LINKTYPE_ETHERNET}
"""ARPHRD_ numbers of Linux; all others that scapy opens begin with the IP header"""
_LOOPBACK: Final = 772
_LAYER_LINKTYPES: Final = {"Ethernet": LINKTYPE_ETHERNET, "Loopback": 0, "cooked linux": 113}
_PCAP_NANOSECONDS: Final = 0xA1B23C4D
_RECORD: Final = struct.Struct("<IIII")
SNAPLEN: Final = 262144
"""captured bytes per packet: the default of tcpdump"""


class LiveError(Exception):
    """An interface cannot be captured; the text says which, why, and what to do."""

    def __init__(self, interface: str, reason: str, hint: str = "") -> None:
        super().__init__(interface, reason, hint)
        self.interface = interface
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        hints = "".join(f"\n  {line}" for line in self.hint.splitlines())
        return f"{self.interface}: {self.reason}{hints}"


class Interface(NamedTuple):
    """A network interface of this machine."""

    name: str
    addresses: tuple[str, ...]
    """IP addresses"""
    is_up: bool
    is_loopback: bool
    mac: str
    """hardware address, or empty"""


class ListeningSocket(Protocol):
    """The used part of scapy's listening sockets."""

    ins: PacketSocket
    LL: object

    def fileno(self) -> int: ...
    def recv_raw(self, size: int = ...) -> tuple[object, bytes | None, float | None]: ...
    def close(self) -> None: ...


class LiveCapture:
    """An open capture on one interface."""

    def __init__(
        self,
        opened: ListeningSocket,
        interface: str,
        *,
        buffer_bytes: int = RING_BYTES,
        ring: bool = True,
    ) -> None:
        """Take over a socket: from now on packets are kept, as many as fit into the buffer.

        `ring` False: read them one by one, like systems without a ring.
        """
        self.interface = interface
        self.received = 0
        """packets that passed the filter, as of the last `count`"""
        self.dropped = 0
        """packets lost because they were not read in time"""
        self._socket = opened
        self.linktype = _linktype_of(self._socket)
        """LINKTYPE_ number of the packets"""
        self._sees_twice = _sees_twice(self._socket)
        self._ring = self._open_ring(buffer_bytes) if ring else None
        if self._ring is None:
            set_buffer(self._socket.ins, buffer_bytes)
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLIN)
        self._closed = False
        self.count()
        self.received = self.dropped = 0  # reset the counters

    @property
    def reads_ring(self) -> bool:
        """Whether packets come from the kernel's ring."""
        return self._ring is not None

    def fileno(self) -> int:
        """Return the file descriptor for `select`."""
        return self._socket.fileno()

    def bind_again(self) -> None:
        """Rebind to an interface of this name that went down or was recreated.

        Needs no privilege. Raise LiveError if the interface is still absent.
        """
        try:
            self._socket.ins.bind((self.interface, ALL_PROTOCOLS))  # type: ignore[attr-defined]
        except OSError as error:
            raise LiveError(self.interface, reason_of(error)) from None

    def receive(self, timeout: float) -> list[RingPacket]:
        """Return the next packets, or an empty list after `timeout` seconds.

        Raise LiveError if the interface went down or away.
        """
        try:
            if self._ring is not None:
                return self._ring.receive(timeout)
            return self._receive_singly(timeout)
        except OSError as error:
            raise LiveError(self.interface, reason_of(error)) from None

    def count(self) -> None:
        """Update `received` and `dropped`, if the system counts."""
        # The kernel clears its counters when they are read.
        try:
            received, dropped = packet_statistics(self._socket.ins)
        except (OSError, AttributeError, TypeError):
            return
        self.received += received
        self.dropped += dropped

    def close(self) -> None:
        """End the capture, after a last update of the counters."""
        if self._closed:
            return
        self._closed = True
        self.count()
        if self._ring is not None:
            self._ring.close()
        self._socket.close()

    def _open_ring(self, buffer_bytes: int) -> PacketRing | None:
        try:
            return PacketRing(
                self._socket.ins, skip_outgoing=self._sees_twice, ring_bytes=buffer_bytes
            )
        except (OSError, AttributeError, TypeError):
            return None  # not Linux, or a kernel without this ring

    def _receive_singly(self, timeout: float) -> list[RingPacket]:
        packets: list[RingPacket] = []
        wait = timeout
        while len(packets) < BATCH and self._poll.poll(wait * 1000):
            wait = 0  # then only what is there already
            _, data, seconds = self._socket.recv_raw(MTU)
            if data:
                ts = time.time_ns() if seconds is None else round(float(seconds) * 1e9)
                packets.append(RingPacket(ts, data, len(data)))
        return packets


class LiveSource:
    """A live capture as chunks of a pcap with nanosecond times.

    It is a `Source` of `Decode`.
    """

    compression = None
    size = None

    def __init__(
        self,
        capture: LiveCapture,
        *,
        duration: float | None = None,
        keep: Callable[[Sequence[RingPacket]], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`duration` in seconds, None: unlimited; `keep` receives all packets as they arrive."""
        self.name = capture.interface
        self.problem: str | None = None
        """why it ended by itself"""
        self.bytes_read = 0
        """bytes of the pcap so far"""
        self._capture = capture
        self._keep = keep
        self._now = now
        self._end = None if duration is None else now() + duration

    def chunks(self) -> Iterator[bytes]:
        """Yield the pcap header, then records as packets arrive; an empty chunk without packets."""
        head = pcap_head(self._capture.linktype)
        self.bytes_read += len(head)
        yield head
        while True:
            wait = WAIT if self._end is None else min(WAIT, self._end - self._now())
            if wait <= 0:
                return
            try:
                packets = self._capture.receive(wait)
            except LiveError as error:
                self.problem = error.reason
                return
            if packets and self._keep is not None:
                self._keep(packets)
            chunk = pcap_records(packets)
            self.bytes_read += len(chunk)
            yield chunk

    def close(self) -> None:
        """End the capture."""
        self._capture.close()


def pcap_head(linktype: int) -> bytes:
    """Return the header of a little-endian pcap with nanosecond times."""
    return struct.pack("<IHHiIII", _PCAP_NANOSECONDS, 2, 4, 0, 0, SNAPLEN, linktype)


def pcap_records(packets: Sequence[RingPacket]) -> bytes:
    """Return packets as records of a little-endian pcap with nanosecond times."""
    pack = _RECORD.pack
    parts = []
    for ts, data, length in packets:
        seconds, nanoseconds = divmod(ts, 1_000_000_000)
        parts.append(pack(seconds & 0xFFFFFFFF, nanoseconds, len(data), length))
        parts.append(data)
    return b"".join(parts)


def reason_of(error: OSError) -> str:
    if error.errno == errno.ENETDOWN:
        return "the interface is down"
    if error.errno in (errno.ENODEV, errno.ENXIO):
        return "the interface is gone"
    return error.strerror or str(error)


def _hardware_of(opened: ListeningSocket) -> int:
    """Return the ARPHRD_ number of the interface of a Linux packet socket."""
    name: tuple[object, ...] = opened.ins.getsockname()  # type: ignore[attr-defined]
    return int(name[3])  # type: ignore[call-overload,no-any-return]


def _sees_twice(opened: ListeningSocket) -> bool:
    """Return whether packets appear both outgoing and incoming: loopback before Linux 4.20."""
    try:
        return _hardware_of(opened) == _LOOPBACK and not ignores_outgoing(opened.ins)
    except (AttributeError, TypeError, IndexError):
        return False


def _linktype_of(opened: ListeningSocket) -> int:
    try:
        return _LINKTYPES.get(_hardware_of(opened), LINKTYPE_RAW)
    except (AttributeError, TypeError, IndexError):
        return _LAYER_LINKTYPES.get(str(getattr(opened.LL, "name", "")), LINKTYPE_RAW)
