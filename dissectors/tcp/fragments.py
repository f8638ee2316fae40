"""IP fragments put together: the datagram is given when its last missing part arrives.

The first copy of a byte wins. What waits is bounded in number, in bytes and in parts; the oldest
is given up first, and said. A datagram is at most 65,535 bytes (RFC 791, RFC 8200).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..expert import ExpertInfo, ExpertKind
from .capture import Packet

MAX_DATAGRAM: Final = 65535
MAX_DATAGRAMS: Final = 512
"""datagrams that wait for fragments at the same time"""
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""bytes of all waiting fragments"""
MAX_PARTS: Final = 256
"""fragments of one datagram; 65,535 bytes in the smallest sensible fragments"""


@final
class _Datagram:
    """The fragments of one datagram that are there."""

    def __init__(self, packet: i64, ts: i64) -> None:
        self.packet: i64 = packet
        self.ts: i64 = ts
        self.parts: list[tuple[int, bytes]] = []
        self.size: i64 = 0
        self.total: i64 = -1

    def whole(self) -> bytes | None:
        """The payload when every byte is there."""
        if self.total < 0 or self.size < self.total:
            return None
        self.parts.sort(key=_start_of)  # stable: of two at one place the first came first
        joined = b""
        for start, part in self.parts:
            have: i64 = len(joined)
            if start > have:
                return None
            joined += part[have - start :]
        return joined[: self.total] if len(joined) >= self.total else None


def _start_of(part: tuple[int, bytes]) -> int:
    return part[0]


@final
class FragmentTable:
    """The datagrams that wait for fragments, oldest first."""

    def __init__(self, experts: list[ExpertInfo]) -> None:
        self._experts = experts
        self._waiting: dict[bytes, _Datagram] = {}
        self._bytes: i64 = 0

    def receive(
        self, packet: Packet, key: bytes, offset: i64, more: bool, part: bytes
    ) -> bytes | None:
        """The whole payload if this fragment completes its datagram, else None."""
        end: i64 = offset + len(part)
        if end > MAX_DATAGRAM or not part:
            return None
        datagram = self._waiting.get(key)
        if datagram is None:
            datagram = _Datagram(packet.packet, packet.ts)
            self._waiting[key] = datagram
        if len(datagram.parts) >= MAX_PARTS:
            self._give_up(key)
            return None
        datagram.parts.append((offset, part))
        datagram.size += len(part)
        self._bytes += len(part)
        if not more:
            datagram.total = end
        whole = datagram.whole()
        if whole is not None:
            self._remove(key)
        while self._bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_DATAGRAMS:
            self._give_up(next(iter(self._waiting)))
        return whole

    def finish(self) -> None:
        """What still waits is lost."""
        while self._waiting:
            self._give_up(next(iter(self._waiting)))

    def _remove(self, key: bytes) -> _Datagram:
        datagram = self._waiting.pop(key)
        self._bytes -= datagram.size
        return datagram

    def _give_up(self, key: bytes) -> None:
        datagram = self._remove(key)
        detail = f"{len(datagram.parts)} fragments of {datagram.size} bytes wait in vain"
        self._experts.append(
            ExpertInfo(ExpertKind.FRAGMENT_LOST, detail, datagram.ts, datagram.packet, -1, -1)
        )
