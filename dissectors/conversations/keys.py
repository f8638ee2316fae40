"""Keys of conversations: addresses, ports, and tunnels of a segment.

A key is source and destination address, source and destination port, then 5 bytes per tunnel.
"""

from __future__ import annotations

import ipaddress

from mypy_extensions import i64

from ..endpoint import endpoint_text


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
