"""What a generated capture holds, counted while it is written, so that any decoder can be checked.

The multiset hash does not depend on the order of commands: it is the sum modulo 2**64 of the first
eight bytes of MD5 over (code, opaque, flag, total length), each a big-endian int32, where the total
length is the value of the frame's length prefix. Every language at hand can compute it.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from dataclasses import dataclass, field

_IDENTITY = struct.Struct(">iiii").pack


def identity_hash(code: int, opaque: int, flag: int, length: int) -> int:
    """Return the 64-bit hash of one command's identity."""
    return int.from_bytes(hashlib.md5(_IDENTITY(code, opaque, flag, length)).digest()[:8], "big")


@dataclass(slots=True)
class Truth:
    """Counts of what was written."""

    packets: int = 0
    """Packets in the file, pure ACKs and handshakes included."""
    data_segments: int = 0
    """Packets that carry payload, repeated ones included."""
    pure_acks: int = 0
    """Packets without payload, SYN or FIN."""
    late: int = 0
    """Data segments that were written after a later one of their direction."""
    repeated: int = 0
    """Data segments that were written a second time."""
    file_bytes: int = 0
    """Size of the capture file."""
    commands: int = 0
    """Complete frames."""
    requests: int = 0
    """Commands without the response bit."""
    responses: int = 0
    """Commands with the response bit."""
    binary_headers: int = 0
    """Commands whose header is not JSON."""
    body_bytes: int = 0
    """Bytes of all bodies."""
    messages_in_pulls: int = 0
    """Stored messages in the bodies of pull responses."""
    multiset: int = 0
    """Sum of `identity_hash` over all commands, modulo 2**64."""
    operations: Counter[int] = field(default_factory=Counter)
    """Request code -> number of requests."""
    response_codes: Counter[int] = field(default_factory=Counter)
    """Response code -> number of responses."""
    exchanges: Counter[str] = field(default_factory=Counter)
    """answered, oneway, unanswered, orphan -> number of exchanges."""

    def add_command(
        self, code: int, opaque: int, flag: int, length: int, body: int, binary: bool
    ) -> None:
        """Count one command that goes into the capture."""
        self.commands += 1
        self.body_bytes += body
        self.binary_headers += binary
        self.multiset = (self.multiset + identity_hash(code, opaque, flag, length)) % (1 << 64)
        if flag & 1:
            self.responses += 1
            self.response_codes[code] += 1
        else:
            self.requests += 1
            self.operations[code] += 1

    def as_dict(self) -> dict[str, object]:
        """Return the counts as JSON takes them: numbers, and tables with sorted keys."""
        plain: dict[str, object] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, Counter):
                value = {str(key): value[key] for key in sorted(value)}
            plain[name] = value
        plain["multiset"] = f"{self.multiset:016x}"
        return plain
