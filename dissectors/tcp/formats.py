"""Which reader a capture file needs, told by its first bytes."""

from __future__ import annotations

from .capture import CaptureReader
from .pcap import PCAP_HEADER as PCAP_HEADER
from .pcap import PCAP_MAGICS
from .pcap import PcapReader as PcapReader
from .pcapng import BLOCK_HEADER, PCAPNG_MAGIC, PcapngReader


def reader_of(index: int, head: bytes) -> CaptureReader | None:
    """The reader for a file that begins with these (at least 24) bytes, or None if it is neither.

    A pcap reader is to be given the bytes after the first 24, a pcapng reader all of them.
    """
    if head[:4] in PCAP_MAGICS and len(head) >= PCAP_HEADER:
        return PcapReader(index, head)
    if head[:4] == PCAPNG_MAGIC and len(head) >= BLOCK_HEADER:
        return PcapngReader(index)
    return None
