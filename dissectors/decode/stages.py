"""Decode stages: packets in; exchanges or commands, and findings out.

`Stages` processes packets into PDUs with the conversation table; `ExchangeStages`, and
`CommandStages` in `command_order`, process the PDUs. Stages may be one of several shards that all
read every packet: each conversation is decoded by one of them.
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
    ReleasedPdus,
)
from ..findings import Finding, FindingKind, undecoded
from ..remoting import code_sets, row_bodies
from ..remoting.broker_addresses import broker_addresses_of
from ..remoting.framing.frame_decoder import KEEP_ALL, KEEP_CARRIED
from ..remoting.heartbeat import groups_of
from ..remoting.messages.record_layout import count_batch, count_messages
from ..remoting.row_facts.bodies import (
    BODY_REQUESTS,
    message_facts,
    request_body_facts,
    response_body_facts,
)
from ..remoting.row_facts.names import FAULT, fact
from ..tcp.capture import Packet
from ..tcp.segment import Segment
from ..tcp.segment_reader import SegmentReader
from ..tls.key_log import KeyLog
from .exchange import Exchange, ExchangeMatcher

MAX_FINDINGS: Final = 100_000
"""maximum findings not yet taken; others are only counted"""
_COUNTED: Final = row_bodies.COUNTED_REQUEST
_NAMING: Final = row_bodies.NAMING_REQUEST
_WANTED: Final = row_bodies.WANTED_RESPONSE
_CARRIERS: Final = code_sets.MESSAGE_BODIES
LAST: Final = 1 << 62
"""order of results emitted at the end"""
OWN: Final = 1 << 30
"""place of a packet's own results, after those of conversations that it ended"""
SWEPT: Final = OWN + 1
"""place of results of a sweep, after the packet's own"""


class Stages:
    """Packets in; PDUs to subclasses, and findings out."""

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
        """`messages`: keep bodies with messages until their exchange is settled."""
        self.findings: list[Finding] = []
        """findings since the last take"""
        self.marks: dict[int, str] = {}
        """packet id → fault that rmqtool injected into the request completed by it"""
        self.packets: i64 = 0
        self.segments = SegmentReader()
        self.table = ConversationTable(
            decode_as,
            KEEP_CARRIED if messages and keep != KEEP_ALL else keep,
            self.findings,
            shard,
            shards,
            conversations,
            secrets,
        )
        self.matcher = ExchangeMatcher(self.findings)
        self._keep_all = keep == KEEP_ALL
        self._keep_messages = messages
        self._waiting: i64 = 0
        self._shaking: i64 = 0
        self._swept: i64 = 0
        self._bytes: i64 = 0
        self._results: list[ReleasedPdus] = []
        self._pdus: list[Pdu] = []

    def receive(self, packets: list[Packet], passed: i64 = 0, size: i64 = 0) -> None:
        """Process the next packets of the capture, and sweep if it is due.

        `passed` is the number of skipped packets of other shards among them; `size` the capture
        bytes that contained them, 0 for the chunk of the first packet.
        """
        if not packets:
            return
        reader = self.segments
        for packet in packets:
            segment = reader.segment_of(packet)
            if segment is not None:
                self._take_segment(segment)
        self.packets += len(packets) + passed
        self._bytes += size or len(packets[0].data)  # the whole chunk, of which packets are ranges
        if self.packets - self._swept >= SWEEP_PACKETS or self._bytes >= SWEEP_BYTES:
            self._swept = self.packets
            self._bytes = 0
            self.sweep(packets[-1].ts, packets[-1].packet)

    def _take_segment(self, segment: Segment) -> None:
        """Process the TCP segment of a packet."""
        table = self.table
        ended = self._results
        pdus = self._pdus
        direction = table.direction_of(segment, ended)
        if table.shaking != self._shaking:
            self._want_acks()
        if ended:  # their results precede those of this segment
            self._take_results(segment.packet)
        if direction is None or not direction.conversation.mine:
            return
        conversation = direction.conversation
        waited = conversation.waiting  # for a hole to be filled
        conversation.receive(direction, segment, pdus)
        if pdus:
            self._receive_pdus(pdus, segment.packet, OWN)
        if waited != conversation.waiting:
            self._waiting += -1 if waited else 1
            self._want_acks()
        self._note_received(conversation)

    def sweep(self, now: i64, packet: i64) -> None:
        """End conversations closed well before this packet, and reduce the held bytes."""
        self.table.sweep(now, self._results)
        self._take_results(packet, SWEPT)

    def release_holes(self) -> None:
        """Release data held behind holes: no packets came for a while."""
        self.table.release_holes(self._results)
        self._take_results(LAST)

    def release_quiet_holes(self, quiet_since: i64) -> None:
        """Release data held behind holes in connections without packets since then."""
        self.table.release_holes(self._results, quiet_since)
        self._take_results(LAST)

    def finish(self) -> None:
        """Finish after the last packet: emit everything held."""
        self.segments.finish()
        self.table.finish(self._results)
        self._take_results(LAST)

    def take_findings(self) -> list[Finding]:
        """Return the findings since the last call."""
        findings = self.segments.findings[:]
        self.segments.findings.clear()
        findings.extend(self.findings)
        self.findings.clear()
        if len(findings) > MAX_FINDINGS:
            last = findings[-1]
            left = len(findings) - MAX_FINDINGS
            del findings[MAX_FINDINGS:]
            detail = f"{left} more"
            findings.append(Finding(FindingKind.EXPERT_LIMIT, detail, last.ts, last.packet, -1, -1))
        return findings

    def _take_results(self, packet: i64, first: i64 = 0) -> None:
        """Process the results of conversations that ended or were released.

        `first` is the place of the first result.
        """
        for place, result in enumerate(self._results, first):
            conversation = result.conversation
            if result.waited:
                self._waiting -= 1
            if conversation.mine:
                if result.pdus:
                    self._receive_pdus(result.pdus, packet, place)
                if result.ended:
                    self._finish_direction(conversation.first)
                    self._finish_direction(conversation.second)
                    self._note_place(packet, place)  # of unanswered requests, now exchanges
        self._results.clear()
        self._want_acks()

    def _want_acks(self) -> None:
        """Request pure ACKs only while waiting for a hole or the end of a handshake."""
        self._shaking = self.table.shaking
        self.segments.acks_wanted = self._waiting > 0 or self._shaking > 0

    def _receive_pdus(self, pdus: list[Pdu], packet: i64, place: i64) -> None:
        for pdu in pdus:
            if pdu.body:
                self._read_body(pdu)
            if self.marks:
                self._mark(pdu)
            self._receive_pdu(pdu)
        pdus.clear()
        self._note_place(packet, place)

    def _mark(self, pdu: Pdu) -> None:
        """Record the fault injected into a request, if any."""
        mark = self.marks.pop(pdu.packet, None)
        if mark is not None:
            pdu.facts = [*(pdu.facts or ()), fact(FAULT, mark)]
            self.findings.append(pdu.say(FindingKind.FAULT_INJECTED, mark))

    def _receive_pdu(self, pdu: Pdu) -> None:
        """Process the next PDU, whose body was read."""
        raise NotImplementedError

    def _finish_direction(self, direction: Direction) -> None:
        """Finish a direction without further bytes."""
        raise NotImplementedError

    def _note_received(self, conversation: Conversation) -> None:
        """Record a segment of this conversation."""

    def _note_place(self, packet: i64, place: i64) -> None:
        """Record this packet and place for the results since the last call."""

    def _read_body(self, pdu: Pdu) -> None:
        """Extract from a body what a row needs; drop it unless bodies are kept."""
        try:
            self._count_and_name(pdu)
        except Exception as error:  # last line of defence: a bad body must not end the run
            self.findings.append(pdu.say(FindingKind.BAD_BODY, undecoded(error)))
        # Before pairing, since thousands of requests may wait with their bodies.
        if not self._keep_all and not (self._keep_messages and _may_carry_messages(pdu)):
            pdu.body = b""

    def _count_and_name(self, pdu: Pdu) -> None:
        """Count the messages of a body, or name the groups of a heartbeat."""
        code = pdu.head.code
        if pdu.flag & 1:
            count: i64 = 0
            # The response is not paired yet, so only its bytes tell messages from a route.
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
                    self.findings.append(pdu.say(FindingKind.BAD_BODY, groups.problem))
                if groups.note is not None:
                    self.findings.append(pdu.say(FindingKind.RELEASES_DIFFER, groups.note))
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
        """exchanges since the last take"""
        self._places = BytesWriter()
        self._placed: i64 = 0
        self._ordered = shards > 1

    def take_exchanges(self) -> list[Exchange]:
        """Return the exchanges since the last call."""
        return self.take_ordered()[0]

    def take_ordered(self) -> tuple[list[Exchange], bytes]:
        """Return the exchanges since the last call, and their places if there are several shards.

        A place is two 64-bit integers: the packet that emitted the exchange, and the place within
        it.
        """
        result = self.exchanges, self._places.getvalue()
        self.exchanges = []
        self._places.truncate(0)
        self._placed = 0
        return result

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
    """Return whether message rows need the body of a command."""
    if pdu.head.is_call:
        return True
    code = pdu.head.code
    return code == _WANTED if pdu.flag & 1 else code in _CARRIERS
