"""The stages joined: packets in; PDUs, exchanges and findings out.

`Stages` is the way of a datum from a packet to an exchange, with the table of conversations in
between. It may be one of several shards that all read every packet: a conversation is decoded by
one of them, and `order` says where its results belong among those of the others.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from .conversation import Pdu
from .exchange import Exchange, ExchangeMatcher
from .expert import ExpertInfo, ExpertKind
from .remoting.counting import count_batch, count_messages
from .remoting.frame import KEEP_ALL
from .remoting.heartbeat import groups_of
from .table import SWEEP_BYTES, SWEEP_PACKETS, ConversationTable, GivenOut
from .tcp.capture import Packet
from .tcp.segment import SegmentReader

MAX_EXPERTS: Final = 100_000
"""findings that wait to be taken; the rest is only counted"""
SEND_BATCH_MESSAGE: Final = 320
HEART_BEAT: Final = 34
LAST: Final = 1 << 62
"""order of what is given out at the end"""
OWN: Final = 1 << 30
"""place of a packet's own results behind those of conversations that it ended"""


@final
class Stages:
    """Packets in; PDUs, exchanges and findings out."""

    def __init__(
        self,
        decode_as: frozenset[int],
        keep: i64,
        commands: bool,
        shard: i64 = 0,
        shards: i64 = 1,
        conversations: bool = False,
    ) -> None:
        self.experts: list[ExpertInfo] = []
        """findings since they were last taken"""
        self.exchanges: list[Exchange] = []
        """exchanges since they were last taken; where `commands` were asked for, one for each
        command when it is seen: a request alone, a response with its request"""
        self.order: list[tuple[int, int]] = []
        """for each exchange the packet and the place that gave it out; only with several shards"""
        self.packets: i64 = 0
        self.segments = SegmentReader()
        self.table = ConversationTable(decode_as, keep, self.experts, shard, shards, conversations)
        self.matcher = ExchangeMatcher(self.experts)
        self._commands = commands
        self._settled: list[Exchange] = []
        self._keep_all = keep == KEEP_ALL
        self._ordered = shards > 1
        self._waiting: i64 = 0
        self._shaking: i64 = 0
        self._swept: i64 = 0
        self._bytes: i64 = 0
        self._given: list[GivenOut] = []
        self._found: list[Pdu] = []

    def receive(self, packets: list[Packet]) -> None:
        """The next packets of the capture."""
        reader = self.segments
        table = self.table
        given = self._given
        found = self._found
        ts: i64 = 0
        for packet in packets:
            segment = reader.segment_of(packet)
            if segment is None:
                continue
            direction = table.direction_of(segment, given)
            if table.shaking != self._shaking:
                self._want_acks()
            if given:
                self._take_given(packet.packet)
            if direction is None or not direction.conversation.mine:
                continue
            conversation = direction.conversation
            waited = conversation.waiting
            conversation.receive(direction, segment, found)
            if found:
                self._receive_pdus(found, packet.packet, OWN)
            if waited != conversation.waiting:
                self._waiting += -1 if waited else 1
                self._want_acks()
        if not packets:
            return
        ts = packets[-1].ts
        self.packets += len(packets)
        self._bytes += len(packets[0].data)
        if self.packets - self._swept >= SWEEP_PACKETS or self._bytes >= SWEEP_BYTES:
            self._swept = self.packets
            self._bytes = 0
            table.sweep(ts, given)
            self._take_given(packets[-1].packet)

    def release_holes(self) -> None:
        """No packets for a while: gives out what waits for holes to be filled."""
        self.table.release_holes(self._given)
        self._take_given(LAST)

    def finish(self) -> None:
        """The last packet was given: what is still held is given out."""
        self.segments.finish()
        self.table.finish(self._given)
        self._take_given(LAST)

    def take_exchanges(self) -> list[Exchange]:
        """The exchanges since the last call."""
        taken = self.exchanges
        self.exchanges = []
        return taken

    def take_order(self) -> list[tuple[int, int]]:
        """The places of the exchanges since the last call."""
        taken = self.order
        self.order = []
        return taken

    def take_experts(self) -> list[ExpertInfo]:
        """The findings since the last call."""
        taken = self.segments.experts[:]
        self.segments.experts.clear()
        taken.extend(self.experts)
        self.experts.clear()
        if len(taken) > MAX_EXPERTS:
            last = taken[-1]
            left = len(taken) - MAX_EXPERTS
            del taken[MAX_EXPERTS:]
            detail = f"{left} more"
            taken.append(ExpertInfo(ExpertKind.EXPERT_LIMIT, detail, last.ts, last.packet, -1, -1))
        return taken

    def _take_given(self, packet: i64) -> None:
        """Results of conversations that ended or were made to give out what they hold."""
        for place, one in enumerate(self._given):
            conversation = one.conversation
            if one.waited:
                self._waiting -= 1
            if conversation.mine:
                if one.pdus:
                    self._receive_pdus(one.pdus, packet, place)
                if one.ended:
                    before: i64 = len(self.exchanges)
                    out = self._settled if self._commands else self.exchanges
                    self.matcher.finish(conversation.first, out)
                    self.matcher.finish(conversation.second, out)
                    self._take_responses()
                    self._note_order(before, packet, place)
        self._given.clear()
        self._want_acks()

    def _want_acks(self) -> None:
        """Pure ACKs are looked at only while a hole or the end of a handshake is waited for."""
        self._shaking = self.table.shaking
        self.segments.acks_wanted = self._waiting > 0 or self._shaking > 0

    def _receive_pdus(self, pdus: list[Pdu], packet: i64, place: i64) -> None:
        before: i64 = len(self.exchanges)
        for pdu in pdus:
            if pdu.body:
                self._read_body(pdu)
            if not self._commands:
                self.matcher.receive(pdu, self.exchanges)
                continue
            if pdu.flag & 1 == 0:
                self.exchanges.append(Exchange(pdu, None))
            self.matcher.receive(pdu, self._settled)
            self._take_responses()
        pdus.clear()
        self._note_order(before, packet, place)

    def _take_responses(self) -> None:
        """The responses among what is settled; requests were given out when they were seen."""
        for one in self._settled:
            if one.response is not None:
                self.exchanges.append(one)
        self._settled.clear()

    def _note_order(self, before: i64, packet: i64, place: i64) -> None:
        if self._ordered:
            for _ in range(len(self.exchanges) - before):
                self.order.append((packet, place))

    def _read_body(self, pdu: Pdu) -> None:
        """Takes from a body what a row needs; it is let go where bodies are not kept."""
        command = pdu.command
        if pdu.flag & 1:
            count: i64 = count_messages(pdu.body, pdu.missing) if command.code == 0 else 0
        elif command.code == SEND_BATCH_MESSAGE:
            count = count_batch(pdu.body, pdu.missing)
        else:
            count = 0
            if command.code == HEART_BEAT:
                pdu.groups = groups_of(pdu.body)
        if count > 0:
            pdu.message_count = count
        if not self._keep_all:
            pdu.body = b""
