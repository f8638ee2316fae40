# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Packets of scapy as the bytes of a pcap, so that they go the way of all captures.

Rules: a packet is built when its chunk is asked for; all packets of a capture begin with the same
layer, because a pcap has one link type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from scapy.config import conf
from scapy.layers import inet, l2  # noqa: F401 (their link types are registered)

from ..live.interface import pcap_head, pcap_records
from ..live.packet_ring import RingPacket

_CHUNK: Final = 64
"""packets of a chunk"""


class UnknownLinkTypeError(ValueError):
    """Packets begin with no link layer, or with several."""


class PacketsSource:
    """Packets in memory as a capture: a `Source` of `Decode`."""

    compression = None
    problem = None
    size = None

    def __init__(self, name: str, packets: Sequence[Any]) -> None:
        """Raise UnknownLinkTypeError where the packets begin with no link layer, or with several.

        Nothing is built yet.
        """
        self.name = name
        self.bytes_read = 0
        """bytes of the pcap so far"""
        self._packets = packets
        kinds = {type(one) for one in packets}
        types = {conf.l2types.layer2num.get(kind) for kind in kinds}
        if len(types) != 1 or None in types:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise UnknownLinkTypeError(f"packets must begin with one link layer, not with {names}")
        (self.linktype,) = types
        """LINKTYPE_ number of the packets"""

    def chunks(self) -> Iterator[bytes]:
        """Give the head of the pcap, then the packets."""
        head = pcap_head(self.linktype)
        self.bytes_read += len(head)
        yield head
        for start in range(0, len(self._packets), _CHUNK):
            chunk = pcap_records([_built(one) for one in self._packets[start : start + _CHUNK]])
            self.bytes_read += len(chunk)
            yield chunk

    def close(self) -> None:
        """Do nothing: no file is open."""


def _built(packet: Any) -> RingPacket:
    data = bytes(packet)
    length = packet.wirelen or len(data)
    return RingPacket(round(packet.time * 1_000_000_000), data, max(length, len(data)))
