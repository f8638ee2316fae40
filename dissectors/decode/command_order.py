"""Commands in the order of the packets that completed them.

A direction that waits for a hole to be filled, or for its first byte if no SYN was captured, emits
its commands late; commands of later packets are held back until then. Held commands are limited by
number, by bytes, and in live use by capture time; beyond that the earliest are emitted as they are.
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
"""maximum held commands: traffic of many connections in the second that a hole is waited for"""
MOST_BYTES: Final = 64 * 1024 * 1024
"""maximum bytes of their headers and bodies"""
NO_FLOOR: Final = -1
"""no limit: no command of an earlier packet can come"""


class CommandSeen(NamedTuple):
    """A command in packet order; a response comes with its request."""

    pdu: Pdu
    request: Pdu | None
    """the request of a response, if known"""
    latency: int | None
    """nanoseconds from request to response"""


class CommandOrder:
    """Reorders commands by packet."""

    def __init__(self, patience: int = 0) -> None:
        """`patience` is the maximum time to hold a command, ns of capture time; 0: unlimited."""
        self._patience = patience
        self._held: list[Exchange] = []
        self._responses: dict[Pdu, Exchange] = {}
        self._bytes = 0
        self._now = 0
        self._last = 0
        self._sorted = True
        self._most = 0, 0

    def add(self, pdu: Pdu) -> None:
        """Add a command; the request of a response follows in `pair`."""
        # `body` may be cut or empty: only what is in memory counts.
        self._bytes += pdu.frame_bytes - pdu.body_length + len(pdu.body)
        self._now = max(self._now, pdu.ts)
        if pdu.packet < self._last:
            self._sorted = False
        self._last = pdu.packet
        if pdu.flag & 1:
            entry = self._responses[pdu] = Exchange(None, pdu)
            self._held.append(entry)
        else:
            self._held.append(Exchange(pdu, None))

    def pair(self, request: Pdu | None, response: Pdu) -> None:
        """Set the request of a response, or None if it has none."""
        entry = self._responses.pop(response, None)
        if entry is not None:
            entry.request = request

    def take(self, floor: int) -> list[Exchange]:
        """Return the commands of packets before `floor`, or all if it is negative."""
        held = self._held
        if not held:
            return held
        # Packets are nearly always in order: sort only after one that was not.
        if not self._sorted:
            held.sort(key=_packet_of)
            self._sorted = True
            self._last = _packet_of(held[-1])
        self._most = max(self._most[0], len(held)), max(self._most[1], self._bytes)
        excess = len(held) - MOST_HELD
        count = 0
        for entry in held:
            pdu = _pdu_of(entry)
            over = count < excess or self._bytes > MOST_BYTES or self._is_old(pdu)
            # The first command that must wait holds back all later ones, even if they are complete.
            if not over and (0 <= floor <= pdu.packet or self._may_be_paired(pdu)):
                break
            self._bytes -= pdu.frame_bytes - pdu.body_length + len(pdu.body)
            if pdu.flag & 1:
                self._responses.pop(pdu, None)  # a request comes too late from now on
            count += 1
        self._held = held[count:]
        return held[:count]

    def finish(self) -> list[Exchange]:
        """Return all remaining commands: the input has ended or is idle."""
        self._responses.clear()
        return self.take(NO_FLOOR)

    @property
    def first(self) -> int:
        """Packet of the first held command, or `NO_FLOOR`."""
        return _packet_of(self._held[0]) if self._held else NO_FLOOR

    def take_most_held(self) -> tuple[int, int]:
        """Return the peaks of the number and bytes of held commands since the last call."""
        peaks, self._most = self._most, (0, 0)
        return peaks

    def _is_old(self, pdu: Pdu) -> bool:
        return 0 < self._patience < self._now - pdu.ts

    def _may_be_paired(self, pdu: Pdu) -> bool:
        """Return whether the request of a response may still come, due to clock differences."""
        return pdu in self._responses and self._now - pdu.ts <= EARLY_TOLERANCE


def _pdu_of(entry: Exchange) -> Pdu:
    pdu = entry.response if entry.response is not None else entry.request
    assert pdu is not None
    return pdu


def _packet_of(entry: Exchange) -> int:
    return _pdu_of(entry).packet


@final
class CommandStages(Stages):
    """Packets in, commands with bodies out, in packet order."""

    def __init__(
        self,
        decode_as: frozenset[int],
        shard: i64 = 0,
        shards: i64 = 1,
        conversations: bool = False,
        patience: i64 = 0,
        secrets: KeyLog | None = None,
    ) -> None:
        """`patience` is the maximum time to hold a command, ns of capture time; 0: unlimited."""
        super().__init__(decode_as, KEEP_ALL, shard, shards, conversations, False, secrets)
        self._line = CommandOrder(int(patience))
        self._late: dict[Conversation, None] = {}
        self._settled: list[Exchange] = []
        self._ready: list[Exchange] = []

    def release_holes(self) -> None:
        """Emit data held behind holes, and all held commands: the input is idle."""
        super().release_holes()
        self._ready.extend(self._line.finish())

    def finish(self) -> None:
        """Finish after the last packet: emit everything held."""
        super().finish()
        self._ready.extend(self._line.finish())

    def take_commands(self) -> list[CommandSeen]:
        """Return the commands since the last call that no command of an earlier packet can
        precede.
        """
        self._ready.extend(self._line.take(self._floor()))
        commands = [_seen(entry) for entry in self._ready]
        self._ready.clear()
        return commands

    def floor(self) -> int:
        """Return the packet before which no more commands come, or `NO_FLOOR` if nothing waits."""
        floor, first = self._floor(), self._line.first
        # Held commands still come, even if no direction waits for a hole.
        return first if floor < 0 or 0 <= first < floor else floor

    def take_most_held(self) -> tuple[int, int]:
        """Return the peaks of the number and bytes of held commands since the last call."""
        return self._line.take_most_held()

    def _receive_pdu(self, pdu: Pdu) -> None:
        self._line.add(pdu)
        self.matcher.receive(pdu, self._settled)
        self._take_responses()

    def _finish_direction(self, direction: Direction) -> None:
        self.matcher.finish(direction, self._settled)
        self._take_responses()

    def _note_received(self, conversation: Conversation) -> None:
        # Only conversations that wait can hold others back; usually none does.
        if conversation.earliest_held >= 0:
            self._late[conversation] = None

    def _take_responses(self) -> None:
        """Assign the requests of settled responses."""
        for exchange in self._settled:
            response = exchange.response
            if response is not None:
                self._line.pair(exchange.request, response)
        self._settled.clear()

    def _floor(self) -> int:
        """Return the earliest packet that may still yield a command; -1: none."""
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


def _seen(exchange: Exchange) -> CommandSeen:
    """Return a lone request, or a response with its request."""
    if exchange.response is not None:
        return CommandSeen(exchange.response, exchange.request, exchange.latency)
    assert exchange.request is not None
    return CommandSeen(exchange.request, None, None)
