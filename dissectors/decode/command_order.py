"""Commands put in the order of the packets that completed them.

A direction that waits for a hole to be filled, or for its first byte where no SYN was captured,
gives its commands late; commands of later packets are held back until then. What is held is
bounded by number, by bytes and, where somebody watches, by the capture's time; beyond that the
earliest are given out as they are.
"""

from __future__ import annotations

from typing import Final

from ..conversations.conversation import Pdu
from .exchange import EARLY_TOLERANCE, Exchange

MOST_HELD: Final = 20_000
"""commands that are held back: what many connections say in the second that a hole is waited for"""
MOST_BYTES: Final = 64 * 1024 * 1024
"""bytes of their headers and bodies"""
NO_FLOOR: Final = -1
"""nothing waits: no command of an earlier packet can come"""


class CommandOrder:
    """Commands in as they are found, out in the order of their packets."""

    def __init__(self, patience: int = 0) -> None:
        """`patience` is how long a command is held back, ns of capture time; 0: without limit."""
        self._patience = patience
        self._held: list[Exchange] = []
        self._responses: dict[Pdu, Exchange] = {}
        self._bytes = 0
        self._now = 0
        self._last = 0
        self._sorted = True

    def add(self, pdu: Pdu) -> None:
        """Take a command; a response without its request, which `pair` brings."""
        self._bytes += pdu.frame_bytes - pdu.body_length + len(pdu.body)
        self._now = max(self._now, pdu.ts)
        if pdu.packet < self._last:
            self._sorted = False
        self._last = pdu.packet
        if pdu.flag & 1:
            one = self._responses[pdu] = Exchange(None, pdu)
            self._held.append(one)
        else:
            self._held.append(Exchange(pdu, None))

    def pair(self, request: Pdu | None, response: Pdu) -> None:
        """Say that it is settled which request a response answers; None: no one knows."""
        one = self._responses.pop(response, None)
        if one is not None:
            one.request = request

    def take(self, floor: int) -> list[Exchange]:
        """Return the commands of packets before `floor`, and of all where there is none."""
        held = self._held
        if not held:
            return held
        if not self._sorted:
            held.sort(key=_packet_of)
            self._sorted = True
            self._last = _packet_of(held[-1])
        excess = len(held) - MOST_HELD
        count = 0
        for one in held:
            pdu = _pdu_of(one)
            over = count < excess or self._bytes > MOST_BYTES or self._is_old(pdu)
            if not over and (0 <= floor <= pdu.packet or self._may_be_paired(pdu)):
                break
            self._bytes -= pdu.frame_bytes - pdu.body_length + len(pdu.body)
            if pdu.flag & 1:
                self._responses.pop(pdu, None)
            count += 1
        self._held = held[count:]
        return held[:count]

    def finish(self) -> list[Exchange]:
        """Return what is left: nothing more comes, or nothing did for a while."""
        self._responses.clear()
        return self.take(NO_FLOOR)

    def _is_old(self, pdu: Pdu) -> bool:
        return 0 < self._patience < self._now - pdu.ts

    def _may_be_paired(self, pdu: Pdu) -> bool:
        """Return whether the request of a response may come a moment later, by another clock."""
        return pdu in self._responses and self._now - pdu.ts <= EARLY_TOLERANCE


def _pdu_of(one: Exchange) -> Pdu:
    pdu = one.response if one.response is not None else one.request
    assert pdu is not None
    return pdu


def _packet_of(one: Exchange) -> int:
    return _pdu_of(one).packet
