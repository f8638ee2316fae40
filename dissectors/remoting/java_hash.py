"""Java's String.hashCode, by which clients choose queues and brokers filter tags."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 units, signed 32 bits."""
    number = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        number = (31 * number + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return number - 0x100000000 if number & 0x80000000 else number
