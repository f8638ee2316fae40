"""TCP segments: flags, sequence numbers, the range of the payload, and the key of their direction.

A key is source and destination address, source and destination port, then 5 bytes per tunnel.
"""

from __future__ import annotations

import ipaddress
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ..endpoint import endpoint_text

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


# In C, the garbage collector does not track it, and the next one reuses its memory.
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Segment:
    """The TCP segment of one packet."""

    __slots__ = (
        "ack",
        "data",
        "end",
        "flags",
        "key",
        "missing",
        "packet",
        "seq",
        "start",
        "ts",
        "window",
    )

    def __init__(
        self,
        packet: i64,
        ts: i64,
        key: bytes,
        sequence: i64,
        flags: i64,
        window: i64,
        data: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> None:
        """`sequence` has sequence and acknowledgement number, in the order of the header."""
        self.packet: i64 = packet
        """packet id"""
        self.ts: i64 = ts
        """nanoseconds since the epoch"""
        self.key = key
        """key of the direction: source and destination address, ports, tunnel"""
        self.seq: i64 = (sequence >> 32) & 0xFFFFFFFF
        """sequence number of the first payload byte, or of the SYN"""
        self.ack: i64 = sequence & 0xFFFFFFFF
        """acknowledgement number; undefined without the ACK flag"""
        self.flags: i64 = flags
        self.window: i64 = window
        """window as sent, unscaled"""
        self.data = data
        """the chunk that contains the payload"""
        self.start: i64 = start
        """offset of the first payload byte in `data`"""
        self.end: i64 = end
        """offset after the last captured payload byte in `data`"""
        self.missing: i64 = missing
        """payload bytes cut off by the snap length"""


def reversed_key(key: bytes) -> bytes:
    """Return the key of the other direction: ends swapped, same tunnel."""
    size: i64 = address_size(key)
    ports: i64 = 2 * size
    return (
        key[size:ports]
        + key[:size]
        + key[ports + 2 : ports + 4]
        + key[ports : ports + 2]
        + key[ports + 4 :]
    )


def address_size(key: bytes) -> i64:
    """Return the bytes of an address in a key of addresses, ports (4 bytes), and tunnels (5
    each).
    """
    # Two addresses and the ports are 36 or 12 bytes; tunnels do not change the remainder.
    return 16 if len(key) % 5 == 1 else 4


def port_of(key: bytes) -> i64:
    """Return the source port of a direction."""
    at: i64 = 2 * address_size(key)
    return (key[at] << 8) | key[at + 1]


def hosts_of(key: bytes) -> bytes:
    """Return a key for the pair of hosts, equal in both directions."""
    size: i64 = address_size(key)
    source, target = key[:size], key[size : 2 * size]
    return source + target if source < target else target + source


def source_of(key: bytes) -> str:
    """Return `address:port` of the sender, IPv6 in brackets."""
    size: i64 = address_size(key)
    port: i64 = port_of(key)
    if size == 4:
        return f"{key[0]}.{key[1]}.{key[2]}.{key[3]}:{port}"
    return endpoint_text(ipaddress.IPv6Address(key[:16]).compressed, port)
