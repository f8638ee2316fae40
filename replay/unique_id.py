"""Message ids that a client makes (UNIQ_KEY), in the layout of the Java client.

Rules: one `UniqueIds` per process or producer; the clock is an argument. An id is the address, the
process id, a number that tells the producers of a process apart, the milliseconds since the month
began in local time, and a counter; in upper-case hex. Up to 65,536 ids per millisecond are unique.
RocketMQ: MessageClientIDSetter.
"""

from __future__ import annotations

import time
from ipaddress import ip_address
from typing import Final

_LONGEST_STEP_BACK_MS: Final = 1_000_000
"""a clock that goes back by less gives the month's first millisecond, as Java does"""


class UniqueIds:
    """Generates the ids of one client."""

    __slots__ = ("_begin", "_counter", "_next_begin", "_prefix")

    def __init__(self, address: str, pid: int, instance: int) -> None:
        """`address` is the client's IP (v4 or v6), `instance` 32 bits that tell clients apart.

        Raises ValueError for an invalid address.
        """
        packed = ip_address(address).packed
        packed += (pid & 0xFFFF).to_bytes(2, "big") + (instance & 0xFFFFFFFF).to_bytes(4, "big")
        self._prefix = packed.hex().upper()
        self._begin = self._next_begin = 0
        self._counter = 0

    def next(self, now_ms: int) -> str:
        """Return a new id, made at `now_ms`, ms since the epoch: 32 characters, with IPv6 56."""
        if now_ms >= self._next_begin:
            self._begin, self._next_begin = _month_of(now_ms)
        since = now_ms - self._begin
        if since < 0:  # the clock went back across the start of a month
            since = 0 if since > -_LONGEST_STEP_BACK_MS else since & 0xFFFFFFFF
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        return f"{self._prefix}{since:08X}{counter:04X}"


def _month_of(now_ms: int) -> tuple[int, int]:
    """Return the start of a time's month and of the next month, local time, in ms."""
    local = time.localtime(now_ms // 1000)
    year, month = local.tm_year, local.tm_mon
    after = (year + month // 12, month % 12 + 1)
    # -1: the system knows whether summer time holds then
    begins = (
        time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1)),
        time.mktime((*after, 1, 0, 0, 0, 0, 0, -1)),
    )
    return int(begins[0]) * 1000, int(begins[1]) * 1000
