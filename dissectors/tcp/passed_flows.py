"""Skipping of unwanted packets by their bytes, without making packets or segments of them.

Each of several processes decodes a share of the connections; of the others it only needs begin and
end. Their data packets are recognized here by addresses and ports. Nothing unusual is skipped:
tags, tunnels, IPv6, options, fragments, SYN, FIN, RST, truncated bytes, inconsistent lengths.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from .segment import FIN, RST, SYN

BUCKETS: Final = 4096
MOST_ALIKE: Final = 8
"""flows per bucket; others are not skipped, so that collisions cannot slow down the lookup"""
VLAN_ETHERTYPES: Final = frozenset((0x8100, 0x88A8, 0x9100))
SHORTEST: Final = 54
"""bytes of Ethernet, IPv4, and TCP headers without options"""
KEY: Final = 12
"""bytes of the key of a direction over IPv4, without a tunnel"""


class Followed:
    """A connection whose packets may be skipped."""

    __slots__ = ("last_ts",)

    def __init__(self) -> None:
        self.last_ts: i64 = 0
        """time of the last segment"""


@final
class _Flow:
    """One direction of a connection whose packets may be skipped."""

    __slots__ = ("connection", "hosts", "next", "ports")

    def __init__(self, hosts: i64, ports: i64, connection: Followed, following: _Flow | None):
        self.hosts: i64 = hosts
        self.ports: i64 = ports
        self.connection = connection
        self.next = following


@final
class PassedFlows:
    """The directions of open connections whose packets may be skipped."""

    def __init__(self) -> None:
        self.crowded = False
        """the connection table is so full that any packet may evict a connection"""
        # Not a dict: its keys would be new objects for each packet.
        self._buckets: list[_Flow | None] = [None] * BUCKETS
        self._unsure = False
        """an earlier packet of this chunk may belong to any flow, and begin or end it"""

    def begin(self) -> None:
        """Start a new chunk: all earlier packets were processed."""
        self._unsure = False

    def add(self, key: bytes, connection: Followed) -> None:
        """Skip the packets of a direction from now on, if they can be recognized."""
        if len(key) != KEY:
            return
        hosts = read_i64_be(key, 0)
        ports = i64(read_i32_be(key, 8))
        bucket: i64 = _bucket_of(hosts, ports)
        alike: i64 = 0
        first = flow = self._buckets[bucket]
        while flow is not None:
            if flow.hosts == hosts and flow.ports == ports:
                flow.connection = connection
                return
            alike += 1
            flow = flow.next
        if alike < MOST_ALIKE:
            self._buckets[bucket] = _Flow(hosts, ports, connection, first)

    def remove(self, key: bytes) -> None:
        """Stop skipping the packets of a direction."""
        if len(key) != KEY:
            return
        hosts = read_i64_be(key, 0)
        ports = i64(read_i32_be(key, 8))
        bucket: i64 = _bucket_of(hosts, ports)
        before: _Flow | None = None
        flow = self._buckets[bucket]
        while flow is not None:
            if flow.hosts == hosts and flow.ports == ports:
                if before is None:
                    self._buckets[bucket] = flow.next
                else:
                    before.next = flow.next
                return
            before = flow
            flow = flow.next

    def passes(self, data: bytes, at: i64, end: i64, ts: i64) -> bool:
        """Return whether the Ethernet frame in this range may be skipped.

        If it has payload, its time is recorded in the connection.
        """
        if end - at < SHORTEST or self._unsure or self.crowded:
            return False
        head = read_i64_be(data, at + 12)  # Ethernet type, version, TOS, length, identification
        if (head >> 40) & 0xFFFFFF != 0x080045:  # IPv4, with a header of 20 bytes
            kind: i64 = (head >> 48) & 0xFFFF
            self._unsure = kind == 0x0800 or kind in VLAN_ETHERTYPES
            return False
        middle = read_i64_be(data, at + 20)  # flags and offset, TTL, protocol, checksum, …
        if (middle >> 48) & 0x3FFF != 0:  # a fragment: the ports are in the first one only
            self._unsure = True
            return False
        if (middle >> 32) & 0xFF != 6:
            return False
        stop: i64 = at + 14 + ((head >> 16) & 0xFFFF)
        last: i64 = read_i64_be(data, at + 42) & 0xFFFFFFFF  # length, flags, window
        start: i64 = at + 34 + ((last >> 26) & 0x3C)
        if (last >> 16) & (SYN | FIN | RST) != 0:
            # A chunk is checked before its packets are processed, so the table of conversations
            # does not know of this packet when the next one is checked.
            source, target = data[at + 26 : at + 30], data[at + 30 : at + 34]
            from_port, to_port = data[at + 34 : at + 36], data[at + 36 : at + 38]
            self.remove(source + target + from_port + to_port)
            self.remove(target + source + to_port + from_port)
            return False
        if start - at < SHORTEST or start > stop or stop > end:
            return False
        hosts = read_i64_be(data, at + 26)
        ports = i64(read_i32_be(data, at + 34))
        flow = self._buckets[_bucket_of(hosts, ports)]
        while flow is not None:
            if flow.hosts == hosts and flow.ports == ports:
                if stop > start:
                    flow.connection.last_ts = ts
                return True
            flow = flow.next
        return False


def _bucket_of(hosts: i64, ports: i64) -> i64:
    mixed: i64 = hosts ^ (hosts >> 32) ^ (ports >> 16) ^ (ports << 3)
    return (mixed ^ (mixed >> 12)) & (BUCKETS - 1)
