"""Detection of the capture format by the first bytes of a file."""

from __future__ import annotations

import os

from .capture import CaptureReader
from .pcap import PCAP_HEADER as PCAP_HEADER
from .pcap import PCAP_MAGICS as PCAP_MAGICS
from .pcap import PcapReader
from .pcapng import BLOCK_HEADER, PcapngReader
from .pcapng import PCAPNG_MAGIC as PCAPNG_MAGIC


def reader_of(index: int, head: bytes) -> CaptureReader | None:
    """Return the reader for a file with this head, or None if it is neither format.

    `head` has at least `PCAP_HEADER` bytes. The reader keeps them: `receive` continues after them,
    and also returns the packets in them.
    """
    if head[:4] in PCAP_MAGICS and len(head) >= PCAP_HEADER:
        return PcapReader(index, head)
    if head[:4] == PCAPNG_MAGIC and len(head) >= BLOCK_HEADER:
        return PcapngReader(index, head)
    return None


def is_capture(name: str) -> bool:
    """Return whether a file begins as an uncompressed capture."""
    if not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        head = file.read(4)
    return head in PCAP_MAGICS or head == PCAPNG_MAGIC
