"""Captures cut as `tcpdump -C` cuts them: the same packets in several files."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = 24


def rotated(capture: Path, folder: Path, parts: int) -> list[Path]:
    """Write the packets of a classic pcap to several files in order; return those."""
    data = capture.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    ends, at = [], _HEADER
    while at < len(data):
        (length,) = struct.unpack_from(f"{order}I", data, at + 8)
        at += 16 + length
        ends.append(at)
    files, start = [], _HEADER
    for part in range(parts):
        end = ends[len(ends) * (part + 1) // parts - 1]
        path = folder / f"{capture.stem}.pcap{part}"
        path.write_bytes(data[:_HEADER] + data[start:end])
        files.append(path)
        start = end
    return files
