"""IP fragment reassembly: a datagram is returned when its last missing fragment arrives.

The first copy of a byte wins. Waiting fragments are limited in number, bytes, and parts; the oldest
datagram is dropped first, with a finding. A datagram is at most 65,535 bytes (RFC 791, RFC 8200).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..findings import Finding, FindingKind
from .capture import Packet

MAX_DATAGRAM: Final = 65535
MAX_DATAGRAMS: Final = 512
"""maximum number of incomplete datagrams"""
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""maximum bytes of all waiting fragments"""
MAX_PARTS: Final = 256
"""maximum fragments of one datagram: 65,535 bytes in the smallest sensible ones"""

MAX_AGE: Final = 30_000_000_000
"""nanoseconds that a fragment waits for others, as in Linux"""


@final
class _Datagram:
    """The fragments of one incomplete datagram."""

    def __init__(self, packet: i64, ts: i64) -> None:
        self.packet: i64 = packet
        self.ts: i64 = ts
        self.parts: list[tuple[int, bytes]] = []
        """offset and bytes, in order, without overlaps"""
        self.size: i64 = 0
        self.total: i64 = -1

    def add(self, offset: i64, part: bytes) -> i64:
        """Insert the bytes that are still missing; return how many there were."""
        parts = self.parts
        end: i64 = offset + len(part)
        at: i64 = offset
        index: i64 = 0
        before: i64 = self.size
        while at < end:
            while index < len(parts) and parts[index][0] + len(parts[index][1]) <= at:
                index += 1
            stop: i64 = min(end, parts[index][0]) if index < len(parts) else end
            if at < stop:
                parts.insert(index, (at, part[at - offset : stop - offset]))
                self.size += stop - at
                at = stop
            elif index < len(parts):
                at = parts[index][0] + len(parts[index][1])
        return self.size - before

    def whole(self) -> bytes | None:
        """Return the payload if it is complete, else None."""
        if self.total < 0 or self.size < self.total:
            return None
        # Parts may lie beyond `total`, so the size alone does not prove that nothing is missing.
        have: i64 = 0
        for start, part in self.parts:
            if start != have:
                break
            have += len(part)
        if have < self.total:
            return None
        return b"".join([part for _, part in self.parts])[: self.total]


@final
class FragmentTable:
    """Incomplete datagrams, oldest first."""

    def __init__(self, findings: list[Finding]) -> None:
        self.received: i64 = 0
        """number of fragments received"""
        self._findings = findings
        self._waiting: dict[bytes, _Datagram] = {}
        self._bytes: i64 = 0

    def receive(
        self, packet: Packet, key: bytes, offset: i64, more: bool, part: bytes
    ) -> bytes | None:
        """Return the whole payload if this fragment completes its datagram, else None."""
        self.received += 1
        end: i64 = offset + len(part)
        if end > MAX_DATAGRAM or not part:  # damage, or an attack
            return None
        if offset == 0 and not more:
            return part  # an atomic fragment (RFC 6946)
        datagram = self._waiting.get(key)
        if datagram is not None and not -MAX_AGE <= packet.ts - datagram.ts <= MAX_AGE:
            self._give_up(key)  # the identification is reused
            datagram = None
        if datagram is None:
            datagram = _Datagram(packet.packet, packet.ts)
            self._waiting[key] = datagram
        if len(datagram.parts) >= MAX_PARTS:
            self._give_up(key)
            return None
        self._bytes += datagram.add(offset, part)
        if not more and datagram.total < 0:
            datagram.total = end
        whole = datagram.whole()
        if whole is not None:
            self._remove(key)
        while self._bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_DATAGRAMS:
            self._give_up(next(iter(self._waiting)))
        return whole

    def finish(self) -> None:
        """Drop all incomplete datagrams."""
        while self._waiting:
            self._give_up(next(iter(self._waiting)))

    def _remove(self, key: bytes) -> _Datagram:
        datagram = self._waiting.pop(key)
        self._bytes -= datagram.size
        return datagram

    def _give_up(self, key: bytes) -> None:
        datagram = self._remove(key)
        detail = f"{len(datagram.parts)} fragments of {datagram.size} bytes are not complete"
        self._findings.append(
            Finding(FindingKind.FRAGMENT_LOST, detail, datagram.ts, datagram.packet, -1, -1)
        )
