"""Keys of conversations: the addresses, ports and tunnels that a segment was seen with.

A key is the bytes of source and destination address, source and destination port, then 5 bytes for
each tunnel.
"""

from __future__ import annotations

import ipaddress

from mypy_extensions import i64

from ..endpoint import endpoint_text


def reversed_key(key: bytes) -> bytes:
    """Return the key of the other direction: both ends change places, the tunnel stays."""
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
    """Return the bytes of an address: a key is addresses, ports (4 bytes), 5 for each tunnel."""
    return 16 if len(key) % 5 == 1 else 4


def port_of(key: bytes) -> i64:
    """Return the source port of a direction."""
    at: i64 = 2 * address_size(key)
    return (key[at] << 8) | key[at + 1]


def hosts_of(key: bytes) -> bytes:
    """Return what names both hosts, whichever of them sends in this direction."""
    size: i64 = address_size(key)
    one, other = key[:size], key[size : 2 * size]
    return one + other if one < other else other + one


def source_of(key: bytes) -> str:
    """Return `address:port` of the sender, IPv6 in brackets."""
    size: i64 = address_size(key)
    port: i64 = port_of(key)
    if size == 4:
        return f"{key[0]}.{key[1]}.{key[2]}.{key[3]}:{port}"
    return endpoint_text(ipaddress.IPv6Address(key[:16]).compressed, port)
