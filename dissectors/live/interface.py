"""Packets of a network interface, live: opened and filtered by scapy, read in bulk.

Rules: scapy opens the socket and compiles the filter; packets are not dissected by it, for that
takes longer than most packets leave. On Linux they are read from the kernel's ring
(`packet_ring`), with the kernel's times; elsewhere one by one. What was lost is counted.
`LiveSource` gives the packets as the bytes of a pcap, so that a live capture goes the way of all
others. Errors are raised only for what the user did: no right, no such interface, a bad filter.
"""

from __future__ import annotations

import errno
import select
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from .packet_ring import (
    RING_BYTES,
    SO_ATTACH_FILTER,
    SOL_SOCKET,
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
"""seconds without a packet until `LiveSource` says that there is nothing new"""
BATCH: Final = 512
"""packets that are read at a time where there is no ring"""
MTU: Final = 0xFFFF

_LINKTYPES: Final = {1: LINKTYPE_ETHERNET, 772: LINKTYPE_ETHERNET}
"""ARPHRD_ numbers of Linux; all others that scapy opens begin with the IP header"""
_LOOPBACK: Final = 772
_LAYER_LINKTYPES: Final = {"Ethernet": LINKTYPE_ETHERNET, "Loopback": 0, "cooked linux": 113}
_PCAP_NANOSECONDS: Final = 0xA1B23C4D
_RECORD: Final = struct.Struct("<IIII")
_SNAPLEN: Final = 262144
"""bytes of a packet that are kept: tcpdump's own"""
_RETURN: Final = 0x06
"""BPF_RET|BPF_K: a filter's verdict, the bytes that it accepts"""


class LiveError(Exception):
    """An interface cannot be captured from; says which, why, and the way out."""

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
    """hardware address; empty: none"""


class _ScapySocket(Protocol):
    """What is used of scapy's listening sockets."""

    ins: PacketSocket
    LL: object

    def fileno(self) -> int: ...
    def recv_raw(self, size: int = ...) -> tuple[object, bytes | None, float | None]: ...
    def close(self) -> None: ...


def list_interfaces() -> list[Interface]:
    """Return the interfaces of this machine by name; no right is needed. Raises LiveError: no
    scapy.
    """
    load_scapy()
    from scapy.config import conf

    conf.ifaces.reload()
    found = []
    for one in conf.ifaces.values():
        flags = int(one.flags)
        addresses = tuple(str(ip) for version in (4, 6) for ip in one.ips.get(version, ()))
        mac = str(one.mac or "")
        mac = "" if mac == "00:00:00:00:00:00" else mac
        name = str(one.network_name)
        found.append(Interface(name, addresses, bool(flags & 1), bool(flags & 8), mac))
    return sorted(found)


def load_scapy() -> None:
    """Import the parts of scapy that are needed; raises LiveError where it is not installed."""
    try:
        import scapy.arch
        import scapy.layers.inet  # noqa: F401 (its link types are registered)
    except ImportError as error:
        raise LiveError(
            "live capture", f"scapy cannot be imported ({error})", "pip install 'rmqtool[live]'"
        ) from None


class LiveCapture:
    """An open capture on one interface."""

    def __init__(
        self,
        interface: str,
        filter_text: str = "",
        *,
        promiscuous: bool = True,
        buffer_bytes: int = RING_BYTES,
        ring: bool = True,
    ) -> None:
        """Open it: from here on packets are kept, as many as fit into the buffer.

        `ring` False: they are read one by one, as where there is no ring.

        Raises LiveError for a missing right, an unknown interface, a filter that is none.
        """
        load_scapy()
        self.interface = interface
        self.filter_text = filter_text
        self.received = 0
        """packets that passed the filter, by the last call of `count`"""
        self.dropped = 0
        """those of them that were lost because nobody read them in time"""
        self._socket = _open(interface, filter_text, promiscuous)
        self.linktype = _linktype_of(self._socket)
        """LINKTYPE_ number of the packets"""
        if filter_text:
            _widen_filter(self._socket, filter_text, interface)
        self._sees_twice = _sees_twice(self._socket)
        self._ring = self._open_ring(buffer_bytes) if ring else None
        if self._ring is None:
            set_buffer(self._socket.ins, buffer_bytes)
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLIN)
        self._closed = False
        self.count()
        self.received = self.dropped = 0  # nothing was asked for before now

    @property
    def reads_ring(self) -> bool:
        """Whether packets come from the kernel's ring, not one by one."""
        return self._ring is not None

    def receive(self, timeout: float) -> list[RingPacket]:
        """Return the next packets; empty where none came for `timeout` seconds.

        Raises LiveError where the interface went down or away.
        """
        try:
            if self._ring is not None:
                return self._ring.receive(timeout)
            return self._receive_singly(timeout)
        except OSError as error:
            raise LiveError(self.interface, _reason_of(error)) from None

    def count(self) -> None:
        """Brings `received` and `dropped` up to date, where the system counts."""
        try:
            received, dropped = packet_statistics(self._socket.ins)
        except (OSError, AttributeError, TypeError):
            return
        self.received += received
        self.dropped += dropped

    def close(self) -> None:
        """End the capture; the counts are the last ones."""
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
            return None  # no Linux, or one without such a ring

    def _receive_singly(self, timeout: float) -> list[RingPacket]:
        found: list[RingPacket] = []
        wait = timeout
        while len(found) < BATCH and self._poll.poll(wait * 1000):
            wait = 0
            _, data, seconds = self._socket.recv_raw(MTU)
            if data:
                ts = time.time_ns() if seconds is None else round(float(seconds) * 1e9)
                found.append(RingPacket(ts, data, len(data)))
        return found


class LiveSource:
    """A live capture as the bytes of a pcap with times in nanoseconds, chunk by chunk.

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
        """`duration` in seconds, None: without end; `keep` is given all packets as they come."""
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
        """Yield the head of the pcap, then records as packets come; empty: there is nothing new."""
        head = struct.pack(
            "<IHHiIII", _PCAP_NANOSECONDS, 2, 4, 0, 0, _SNAPLEN, self._capture.linktype
        )
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


def pcap_records(packets: Sequence[RingPacket]) -> bytes:
    """Packets as records of a little-endian pcap with times in nanoseconds."""
    pack = _RECORD.pack
    parts = []
    for ts, data, length in packets:
        seconds, nanoseconds = divmod(ts, 1_000_000_000)
        parts.append(pack(seconds & 0xFFFFFFFF, nanoseconds, len(data), length))
        parts.append(data)
    return b"".join(parts)


def _open(interface: str, filter_text: str, promiscuous: bool) -> _ScapySocket:
    from scapy.config import conf
    from scapy.error import Scapy_Exception

    names = [one.name for one in list_interfaces()]
    if interface not in names:
        raise LiveError(interface, "no such interface", f"there are: {', '.join(names)}")
    try:
        opened: _ScapySocket = conf.L2listen(
            iface=interface, filter=filter_text or None, promisc=promiscuous
        )
    except PermissionError:
        raise LiveError(
            interface, "no right to capture packets", _way_to_rights(interface)
        ) from None
    except Scapy_Exception as error:
        reason, hint = _filter_reason(str(error)), "see pcap-filter(7); e.g. 'tcp port 10911'"
        raise LiveError(interface, f"the filter {filter_text!r} {reason}", hint) from None
    except OSError as error:
        raise LiveError(interface, _reason_of(error)) from None
    return opened


def _widen_filter(opened: _ScapySocket, filter_text: str, interface: str) -> None:
    """Lets a filter accept packets whole: scapy's cuts them to 65,535 bytes, and a loopback has
    larger ones."""
    if not sys.platform.startswith("linux"):
        return
    from scapy.arch.common import compile_filter, free_filter
    from scapy.libs.structures import sock_fprog

    program = compile_filter(filter_text, interface)
    for index in range(program.bf_len):
        step = program.bf_insns[index]
        if step.code == _RETURN and step.k:
            step.k = _SNAPLEN
    opened.ins.setsockopt(
        SOL_SOCKET, SO_ATTACH_FILTER, bytes(sock_fprog(program.bf_len, program.bf_insns))
    )
    free_filter(program)


def _filter_reason(text: str) -> str:
    if "libpcap is not available" in text:
        return "needs libpcap, which is not installed"
    inner = text.rpartition(" (")[2].rstrip(")")
    return f"is no capture filter: {inner}"


def _way_to_rights(interface: str) -> str:
    return (
        "run it as root, or let another program capture:\n"
        f"sudo tcpdump -i {interface} -U -w - | rmqtool decode pcap -"
    )


def _reason_of(error: OSError) -> str:
    if error.errno == errno.ENETDOWN:
        return "the interface is down"
    if error.errno in (errno.ENODEV, errno.ENXIO):
        return "the interface is gone"
    return error.strerror or str(error)


def _hardware_of(opened: _ScapySocket) -> int:
    """Return the ARPHRD_ number of the interface that a Linux packet socket is bound to."""
    name: tuple[object, ...] = opened.ins.getsockname()  # type: ignore[attr-defined]
    return int(name[3])  # type: ignore[call-overload,no-any-return]


def _sees_twice(opened: _ScapySocket) -> bool:
    """Whether packets are shown going out and coming in: a loopback before Linux 4.20."""
    try:
        return _hardware_of(opened) == _LOOPBACK and not ignores_outgoing(opened.ins)
    except (AttributeError, TypeError, IndexError):
        return False


def _linktype_of(opened: _ScapySocket) -> int:
    try:
        return _LINKTYPES.get(_hardware_of(opened), LINKTYPE_RAW)
    except (AttributeError, TypeError, IndexError):
        return _LAYER_LINKTYPES.get(str(getattr(opened.LL, "name", "")), LINKTYPE_RAW)
