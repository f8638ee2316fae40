"""The stages joined: packets in; exchanges or commands, and findings out.

`Stages` is the way of a datum from a packet to a PDU, with the table of conversations in between;
`ExchangeStages`, and `CommandStages` of `command_order`, say what becomes of the PDUs. It may be
one of several shards that all read every packet: a conversation is decoded by one of them.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from ..conversations.conversation import Conversation, Direction, Pdu
from ..conversations.conversation_table import (
    SWEEP_BYTES,
    SWEEP_PACKETS,
    ConversationTable,
    GivenOut,
)
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..remoting import code_sets, row_bodies
from ..remoting.broker_addresses import broker_addresses_of
from ..remoting.framing.frame_decoder import KEEP_ALL, KEEP_CARRIED
from ..remoting.heartbeat import groups_of
from ..remoting.messages.counting import count_batch, count_messages
from ..remoting.row_facts.bodies import (
    BODY_REQUESTS,
    message_facts,
    request_body_facts,
    response_body_facts,
)
from ..tcp.capture import Packet
from ..tcp.segment import Segment
from ..tcp.segment_reader import SegmentReader
from ..tls.key_log import KeyLog
from .exchange import Exchange, ExchangeMatcher

MAX_EXPERTS: Final = 100_000
"""findings that wait to be taken; the rest is only counted"""
_COUNTED: Final = row_bodies.COUNTED_REQUEST
_NAMING: Final = row_bodies.NAMING_REQUEST
_WANTED: Final = row_bodies.WANTED_RESPONSE
_CARRIERS: Final = code_sets.MESSAGE_BODIES
LAST: Final = 1 << 62
"""order of what is given out at the end"""
OWN: Final = 1 << 30
"""place of a packet's own results behind those of conversations that it ended"""
SWEPT: Final = OWN + 1
"""place of results of a sweep behind the packet's own"""


class Stages:
    """Packets in; PDUs to the classes below, and findings out."""

    def __init__(
        self,
        decode_as: frozenset[int],
        keep: i64,
        shard: i64 = 0,
        shards: i64 = 1,
        conversations: bool = False,
        messages: bool = False,
        secrets: KeyLog | None = None,
    ) -> None:
        """`messages`: bodies with messages are kept until their exchange is settled."""
        self.experts: list[ExpertInfo] = []
        """findings since they were last taken"""
        self.packets: i64 = 0
        self.segments = SegmentReader()
        self.table = ConversationTable(
            decode_as,
            KEEP_CARRIED if messages and keep != KEEP_ALL else keep,
            self.experts,
            shard,
            shards,
            conversations,
            secrets,
        )
        self.matcher = ExchangeMatcher(self.experts)
        self._keep_all = keep == KEEP_ALL
        self._keep_messages = messages
        self._waiting: i64 = 0
        self._shaking: i64 = 0
        self._swept: i64 = 0
        self._bytes: i64 = 0
        self._given: list[GivenOut] = []
        self._found: list[Pdu] = []

    def receive(self, packets: list[Packet], passed: i64 = 0, size: i64 = 0) -> None:
        """Receive the next packets of the capture, and sweep where it is time to.

        `passed`: how many there were between them of other shards; `size`: bytes of the capture
        that they were found in, 0: those that the first of them came with.
        """
        self.take(packets)
        if not packets:
            return
        self.packets += len(packets) + passed
        self._bytes += size or len(packets[0].data)
        if self.packets - self._swept >= SWEEP_PACKETS or self._bytes >= SWEEP_BYTES:
            self._swept = self.packets
            self._bytes = 0
            self.sweep(packets[-1].ts, packets[-1].packet)

    def take(self, packets: list[Packet]) -> None:
        """Receive packets; whoever gives them calls `sweep` now and then."""
        reader = self.segments
        for packet in packets:
            segment = reader.segment_of(packet)
            if segment is not None:
                self.take_segment(segment)

    def take_segment(self, segment: Segment) -> None:
        """Receive the TCP part of a packet."""
        table = self.table
        given = self._given
        found = self._found
        direction = table.direction_of(segment, given)
        if table.shaking != self._shaking:
            self._want_acks()
        if given:
            self._take_given(segment.packet)
        if direction is None or not direction.conversation.mine:
            return
        conversation = direction.conversation
        waited = conversation.waiting
        conversation.receive(direction, segment, found)
        if found:
            self._receive_pdus(found, segment.packet, OWN)
        if waited != conversation.waiting:
            self._waiting += -1 if waited else 1
            self._want_acks()
        self._note_received(conversation)

    def sweep(self, now: i64, packet: i64) -> None:
        """End the conversations that were closed well before this packet, and hold less."""
        self.table.sweep(now, self._given)
        self._take_given(packet, SWEPT)

    def release_holes(self) -> None:
        """Give out what waits for holes to be filled, as no packets came for a while."""
        self.table.release_holes(self._given)
        self._take_given(LAST)

    def release_quiet_holes(self, quiet_since: i64) -> None:
        """Give out what waits for holes in connections of which no packets came since then."""
        self.table.release_holes(self._given, quiet_since)
        self._take_given(LAST)

    def finish(self) -> None:
        """Finish after the last packet: give out what is still held."""
        self.segments.finish()
        self.table.finish(self._given)
        self._take_given(LAST)

    def take_experts(self) -> list[ExpertInfo]:
        """Return the findings since the last call."""
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

    def _take_given(self, packet: i64, first: i64 = 0) -> None:
        """Take the results of conversations that ended or were made to give out what they hold.

        `first`: the place of the first of them.
        """
        for place, one in enumerate(self._given, first):
            conversation = one.conversation
            if one.waited:
                self._waiting -= 1
            if conversation.mine:
                if one.pdus:
                    self._receive_pdus(one.pdus, packet, place)
                if one.ended:
                    self._finish_direction(conversation.first)
                    self._finish_direction(conversation.second)
                    self._note_place(packet, place)
        self._given.clear()
        self._want_acks()

    def _want_acks(self) -> None:
        """Ask for pure ACKs only while a hole or the end of a handshake is waited for."""
        self._shaking = self.table.shaking
        self.segments.acks_wanted = self._waiting > 0 or self._shaking > 0

    def _receive_pdus(self, pdus: list[Pdu], packet: i64, place: i64) -> None:
        for pdu in pdus:
            if pdu.body:
                self._read_body(pdu)
            self._receive_pdu(pdu)
        pdus.clear()
        self._note_place(packet, place)

    def _receive_pdu(self, pdu: Pdu) -> None:
        """Take the next PDU, its body read."""
        raise NotImplementedError

    def _finish_direction(self, direction: Direction) -> None:
        """Finish a direction of which no more bytes come."""
        raise NotImplementedError

    def _note_received(self, conversation: Conversation) -> None:
        """Note a segment of this conversation."""

    def _note_place(self, packet: i64, place: i64) -> None:
        """Note that what came out since the last call was given out by this packet, at this
        place.
        """

    def _read_body(self, pdu: Pdu) -> None:
        """Take from a body what a row needs; let it go where bodies are not kept."""
        try:
            self._count_and_name(pdu)
        except Exception as error:  # the last line of defence: one body never ends a run
            self.experts.append(pdu.say(ExpertKind.BAD_BODY, undecoded(error)))
        if not self._keep_all and not (self._keep_messages and _may_carry_messages(pdu)):
            pdu.body = b""

    def _count_and_name(self, pdu: Pdu) -> None:
        """Count the messages of a body, or name the groups of a heartbeat."""
        code = pdu.head.code
        if pdu.flag & 1:
            count: i64 = 0
            if code == _WANTED:
                count = count_messages(pdu.body, pdu.missing)
                if count == 0:
                    pdu.brokers = broker_addresses_of(pdu.body)
                    pdu.facts = response_body_facts(pdu.body) or None
                else:
                    pdu.facts = message_facts(pdu.body)
        elif code == _COUNTED:
            count = count_batch(pdu.body, pdu.missing)
        else:
            count = 0
            if code == _NAMING:
                groups = groups_of(pdu.body)
                pdu.groups = groups.names
                if groups.problem is not None and not pdu.missing:
                    self.experts.append(pdu.say(ExpertKind.BAD_BODY, groups.problem))
                if groups.note is not None:
                    self.experts.append(pdu.say(ExpertKind.RELEASES_DIFFER, groups.note))
            if code in BODY_REQUESTS:
                pdu.facts = request_body_facts(code, pdu.body) or None
        if count > 0:
            pdu.message_count = count


@final
class ExchangeStages(Stages):
    """Packets in, exchanges out, in the order they are settled."""

    def __init__(
        self,
        decode_as: frozenset[int],
        keep: i64,
        shard: i64 = 0,
        shards: i64 = 1,
        conversations: bool = False,
        messages: bool = False,
        secrets: KeyLog | None = None,
    ) -> None:
        super().__init__(decode_as, keep, shard, shards, conversations, messages, secrets)
        self.exchanges: list[Exchange] = []
        """exchanges since they were last taken"""
        self._places = BytesWriter()
        self._placed: i64 = 0
        self._ordered = shards > 1

    def take_exchanges(self) -> list[Exchange]:
        """Return the exchanges since the last call."""
        return self.take_ordered()[0]

    def take_ordered(self) -> tuple[list[Exchange], bytes]:
        """Return the exchanges since the last call, and where there are several shards their places
        among those of all: two 64-bit integers each, the packet that gave it out, the place there.
        """
        taken = self.exchanges, self._places.getvalue()
        self.exchanges = []
        self._places.truncate(0)
        self._placed = 0
        return taken

    def _receive_pdu(self, pdu: Pdu) -> None:
        self.matcher.receive(pdu, self.exchanges)

    def _finish_direction(self, direction: Direction) -> None:
        self.matcher.finish(direction, self.exchanges)

    def _note_place(self, packet: i64, place: i64) -> None:
        if self._ordered:
            settled: i64 = len(self.exchanges)
            while self._placed < settled:
                write_i64_le(self._places, packet)
                write_i64_le(self._places, place)
                self._placed += 1


def _may_carry_messages(pdu: Pdu) -> bool:
    """Return whether rows of messages need the body of a command."""
    if pdu.head.is_call:
        return True
    code = pdu.head.code
    return code == _WANTED if pdu.flag & 1 else code in _CARRIERS
