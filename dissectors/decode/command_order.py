"""Commands put in the order of the packets that completed them.

A direction that waits for a hole to be filled, or for its first byte where no SYN was captured,
gives its commands late; commands of later packets are held back until then. What is held is
bounded by number, by bytes and, where somebody watches, by the capture's time; beyond that the
earliest are given out as they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from mypy_extensions import i64

from ..conversations.conversation import Conversation, Direction, Pdu
from ..remoting.framing.frame_decoder import KEEP_ALL
from ..tls.key_log import KeyLog
from .exchange import EARLY_TOLERANCE, Exchange
from .stages import Stages

MOST_HELD: Final = 20_000
"""commands that are held back: what many connections say in the second that a hole is waited for"""
MOST_BYTES: Final = 64 * 1024 * 1024
"""bytes of their headers and bodies"""
NO_FLOOR: Final = -1
"""nothing waits: no command of an earlier packet can come"""


class CommandSeen(NamedTuple):
    """A command in the order of packets, with the request where it is a response."""

    pdu: Pdu
    request: Pdu | None
    """the request of a response, where it is known"""
    latency: int | None
    """nanoseconds from request to response"""


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
        self._most = 0, 0

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
        self._most = max(self._most[0], len(held)), max(self._most[1], self._bytes)
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

    @property
    def first(self) -> int:
        """Packet of the first command that is held back; `NO_FLOOR` where there is none."""
        return _packet_of(self._held[0]) if self._held else NO_FLOOR

    def take_most_held(self) -> tuple[int, int]:
        """Return how many commands were held, and their bytes, at the most since the last call."""
        most, self._most = self._most, (0, 0)
        return most

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


@final
class CommandStages(Stages):
    """Packets in, commands with their bodies out, in the order of packets."""

    def __init__(
        self,
        decode_as: frozenset[int],
        shard: i64 = 0,
        shards: i64 = 1,
        conversations: bool = False,
        patience: i64 = 0,
        secrets: KeyLog | None = None,
    ) -> None:
        """`patience` is how long a command is held back, ns of capture time; 0: without limit."""
        super().__init__(decode_as, KEEP_ALL, shard, shards, conversations, False, secrets)
        self._line = CommandOrder(int(patience))
        self._late: dict[Conversation, None] = {}
        self._settled: list[Exchange] = []
        self._ready: list[Exchange] = []

    def release_holes(self) -> None:
        """Give out what waits for holes to be filled, and its order, as no packets come."""
        super().release_holes()
        self._ready.extend(self._line.finish())

    def finish(self) -> None:
        """Finish after the last packet: give out what is still held."""
        super().finish()
        self._ready.extend(self._line.finish())

    def take_commands(self) -> list[CommandSeen]:
        """Return the commands since the last call, as far as none of an earlier packet can come."""
        self._ready.extend(self._line.take(self._floor()))
        taken = [_seen(one) for one in self._ready]
        self._ready.clear()
        return taken

    def floor(self) -> int:
        """Return the packet before which no command comes any more; `NO_FLOOR`: no one waits."""
        floor, first = self._floor(), self._line.first
        return first if floor < 0 or 0 <= first < floor else floor

    def take_most_held(self) -> tuple[int, int]:
        """Return how many commands were held, and their bytes, at the most since the last call."""
        return self._line.take_most_held()

    def _receive_pdu(self, pdu: Pdu) -> None:
        self._line.add(pdu)
        self.matcher.receive(pdu, self._settled)
        self._take_responses()

    def _finish_direction(self, direction: Direction) -> None:
        self.matcher.finish(direction, self._settled)
        self._take_responses()

    def _note_received(self, conversation: Conversation) -> None:
        if conversation.earliest_held >= 0:
            self._late[conversation] = None

    def _take_responses(self) -> None:
        """Note which requests the responses among what is settled answer."""
        for one in self._settled:
            response = one.response
            if response is not None:
                self._line.pair(one.request, response)
        self._settled.clear()

    def _floor(self) -> int:
        """Return the id of the earliest packet of which a command may still come; -1: of none."""
        floor: i64 = -1
        settled: list[Conversation] = []
        for conversation in self._late:
            earliest: i64 = conversation.earliest_held
            if earliest < 0:
                settled.append(conversation)
            elif floor < 0 or earliest < floor:
                floor = earliest
        for conversation in settled:
            del self._late[conversation]
        return int(floor)


def _seen(one: Exchange) -> CommandSeen:
    """Return what the order of commands gives: a request alone, or a response with its request."""
    if one.response is not None:
        return CommandSeen(one.response, one.request, one.latency)
    assert one.request is not None
    return CommandSeen(one.request, None, None)
