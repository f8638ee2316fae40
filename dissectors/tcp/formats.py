"""The format of a capture by its first bytes, and of files commonly mistaken for captures."""

from __future__ import annotations

import os
from typing import Final

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


JSON_ARRAY: Final = "a JSON array; rows are read as JSON lines"
"""description of a file that begins with ``[``"""
TO_JSON_LINES: Final = "write them with -o NAME.jsonl, or convert: jq -c '.[]' OLD.json > NEW.jsonl"
"""hint for such a file"""
_SIGNS: tuple[tuple[bytes, str, str], ...] = (
    (b"{", "not a capture but JSON", "a decoded log? `rmqtool report` reads those"),
    (
        b"[",
        "not a capture but a JSON array",
        f"`rmqtool report` and `diagnose` read JSON lines: {TO_JSON_LINES}",
    ),
    (b"PAR1", "not a capture but Parquet", "a decoded log? `rmqtool report` reads those"),
    (b"PK\x03\x04", "not a capture but a zip archive", "unpack it first"),
    (b"snoop\0\0\0", "a snoop capture", "editcap -F pcapng IN OUT"),
    (b"BZh", "compressed by bzip2", "decompress it first: gzip, zstd, lz4 and xz are read"),
)
"""first bytes, description, and hint of files that are mistaken for captures"""


def what_it_is(head: bytes, problem: str | None) -> tuple[str, str]:
    """Return why a file that begins with `head` is not a capture, and a hint.

    `problem` is the read error, if any.
    """
    if problem:
        return problem, "fetch or record it again"
    if not head:
        return "the file is empty", "a capture file is at least 24 bytes long"
    for sign, what, hint in _SIGNS:
        if head.startswith(sign):
            return what, hint
    kind = "pcap" if head[:4] in PCAP_MAGICS else "pcapng" if head[:4] == PCAPNG_MAGIC else ""
    if kind:
        return f"the {kind} is cut short within its header: {len(head)} bytes", "record it again"
    return "not a pcap or pcapng file", f"it begins with {head[:8].hex(' ')}"
