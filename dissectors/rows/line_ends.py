"""Where lines end, as 64-bit integers: what cuts them apart again without a look at each."""

from __future__ import annotations

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64


def add_ends(ends: BytesWriter, lines: bytes, begin: i64) -> None:
    """Add where each of the lines ends; the first begins at `begin`."""
    at: i64 = lines.find(b"\n")
    while at >= 0:
        write_i64_le(ends, begin + at + 1)
        at = lines.find(b"\n", at + 1)


def ends_of(lines: bytes) -> bytes:
    """Return where each of the lines ends."""
    ends = BytesWriter()
    add_ends(ends, lines, 0)
    return ends.getvalue()
