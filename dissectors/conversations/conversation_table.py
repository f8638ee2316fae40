"""Table of conversations: maps segments to them, and enforces the memory limits.

The key is two addresses, two ports, and the tunnel. A SYN with another initial sequence number on
the same ports is a new conversation. When a limit is reached, the stalest conversations are emitted
as they are, with a finding.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, final

from mypy_extensions import i64

from ..findings import Finding, FindingKind
from ..replication.progress import MAX_REPLICATIONS, Replication, first_of
from ..rows.conversation_record import ConversationRecord
from ..tcp.passed_flows import PassedFlows
from ..tcp.reassembly import MAX_PENDING
from ..tcp.segment import FIN, RST, SYN, Segment, hosts_of, port_of, reversed_key
from ..tls.key_log import KeyLog
from .conversation import LEAST_PAUSE, Conversation, Direction, Pdu, note_ack, note_start
from .conversation_row import conversation_row_of
from .conversation_states import open_conversation
from .recognition import NO_PAYLOAD

MAX_CONVERSATIONS: Final = 16384
"""conversations tracked at the same time; each takes about 2 KiB"""
MAX_HELD: Final = 16 * 1024 * 1024
"""bytes held for all conversations: behind holes, and in kept bodies"""
SWEEP_PACKETS: Final = 16384
"""packets between two sweeps for closed conversations and held bytes"""
SWEEP_BYTES: Final = MAX_HELD
"""capture bytes between two sweeps: packets may be large"""

ANY_TIME: Final = 1 << 62
"""later than any packet"""


@final
class ReleasedPdus:
    """Last results of a conversation that ended or held too much."""

    def __init__(
        self, conversation: Conversation, pdus: list[Pdu], ended: bool, waited: bool
    ) -> None:
        self.conversation = conversation
        self.pdus = pdus
        self.ended = ended
        self.waited = waited
        """it was waiting for a hole to be filled"""


@final
class ConversationTable:
    """Finds the conversation of each segment."""

    def __init__(
        self,
        decode_as: frozenset[int],
        keep: i64,
        findings: list[Finding],
        shard: i64,
        shards: i64,
        keep_ended: bool = False,
        secrets: KeyLog | None = None,
    ) -> None:
        """`secrets` is the key log for TLS; entries may be added later."""
        self.conversations: i64 = 0
        """conversations seen so far"""
        self.rocketmq: i64 = 0
        """ended RocketMQ conversations of this shard"""
        self.not_decoded: dict[str, int] = {}
        """other ended conversations of this shard, by protocol"""
        self.replication: i64 = 0
        """ended slave-master conversations of this shard"""
        self.replications: list[Replication] = []
        """their replications; at least the first `MAX_REPLICATIONS` by number"""
        self.frames: i64 = 0
        self.commands: i64 = 0
        self.gaps: i64 = 0
        self.gap_bytes: i64 = 0
        self.most_held: i64 = 0
        """peak of the held bytes at sweeps, since this was set to 0"""
        self.shaking: i64 = 0
        """conversations of this shard that wait for the final ACK of the handshake"""
        self.ended: list[tuple[int, ConversationRecord]] = []
        """rows of ended conversations of this shard with the id of their first packet, if
        requested"""
        self.passed = PassedFlows() if shards > 1 else None
        """flows of other shards whose packets may be skipped; None: skip nothing"""
        self._keep_ended = keep_ended
        self._secrets = KeyLog() if secrets is None else secrets
        self._directions: dict[bytes, Direction] = {}
        self._decode_as = decode_as
        self._keep: i64 = keep
        self._findings = findings
        self._shard: i64 = shard
        self._shards: i64 = shards

    def direction_of(self, segment: Segment, out: list[ReleasedPdus]) -> Direction | None:
        """Return the direction of a segment; this may end an earlier conversation.

        Return None for an acknowledgement without a known conversation.
        """
        flags: i64 = segment.flags & (SYN | FIN | RST)
        direction = self._directions.get(segment.key)
        payload: i64 = segment.end - segment.start + segment.missing
        if flags == 0 and payload == 0:  # an acknowledgement, which opens no conversation
            if direction is not None:
                self._note_ack(direction, segment)
            return direction
        if direction is None:
            direction = self._open(segment, out)
        elif flags & SYN and is_another(direction, segment):  # the ports are used again
            out.append(self._end(direction.conversation))
            direction = self._open(segment, out)
        conversation = direction.conversation
        conversation.last_ts = segment.ts
        if payload:
            pause: i64 = segment.ts - conversation.payload_ts
            # A segment that is retransmitted repeatedly also comes after pauses.
            if (
                pause >= LEAST_PAUSE
                and conversation.payload_ts > 0
                and direction.reassembler.is_next(segment.seq)
            ):
                conversation.pause = pause
                conversation.pause_end = segment.ts
            conversation.payload_ts = segment.ts
            closed_by = conversation.closed_by
            if closed_by is not None and closed_by is not direction:
                conversation.after_fin += 1
        direction.packets += 1
        direction.payload_bytes += payload
        if segment.window == 0 and flags & RST == 0:
            direction.zero_windows += 1
        if flags or direction.first_seq < 0:  # few packets: setup and teardown
            before = conversation.shaking
            self._look_again(conversation)
            note_start(direction, segment)
            if conversation.shaking != before:
                self.shaking += -1 if before else 1
        else:
            if conversation.closing:
                conversation.closing = False
            if conversation.shaking:  # the final ACK was not captured
                conversation.shaking = False
                self.shaking -= 1
            # Of a conversation of another process, only its setup and end matter here.
            if not conversation.mine and self.passed is not None:
                self.passed.add(segment.key, conversation)
        return direction

    def sweep(self, now: i64, out: list[ReleasedPdus]) -> None:
        """End conversations closed a while ago, and reduce the held bytes below the limit."""
        held: i64 = 0
        closed: list[Conversation] = []
        for conversation in self._all_open():
            held += held_bytes_of(conversation)
            if conversation.closing and now - conversation.last_ts > conversation.linger:
                closed.append(conversation)
        self.most_held = max(self.most_held, held)
        for conversation in closed:  # after the loop over the table, which this changes
            out.append(self._end(conversation))
        if held > MAX_HELD:
            self._release(held, out)

    def release_holes(self, out: list[ReleasedPdus], quiet_since: i64 = ANY_TIME) -> None:
        """Release data held behind holes in connections quiet since then; end nothing."""
        for conversation in self._all_open():
            if conversation.waiting and conversation.last_ts <= quiet_since:
                pdus: list[Pdu] = []
                conversation.release_holes(pdus)
                out.append(ReleasedPdus(conversation, pdus, False, True))

    def finish(self, out: list[ReleasedPdus]) -> None:
        """End all conversations in order of appearance, after the last packet."""
        for conversation in self._all_open():
            out.append(self._end(conversation))

    def open_conversations(self) -> list[Conversation]:
        """Return the open conversations of this shard in order of appearance."""
        return [conversation for conversation in self._all_open() if conversation.mine]

    def _all_open(self) -> list[Conversation]:
        """Return the open conversations of all shards in order of appearance."""
        conversations: list[Conversation] = []
        for direction in self._directions.values():
            conversation = direction.conversation
            if conversation.first is direction:  # each has two directions here
                conversations.append(conversation)
        return conversations

    def count_open(self) -> tuple[i64, i64, i64, i64, i64]:
        """Return RocketMQ conversations, frames, commands, gaps, and gap bytes of open
        conversations.
        """
        rocketmq: i64 = 0
        frames: i64 = 0
        commands: i64 = 0
        gaps: i64 = 0
        gap_bytes: i64 = 0
        for conversation in self.open_conversations():
            frames += conversation.frames
            commands += conversation.commands
            if conversation.state.is_rocketmq:
                rocketmq += 1
                for side in (conversation.first, conversation.second):
                    gaps += side.reassembler.gaps
                    gap_bytes += side.reassembler.gap_bytes
        return rocketmq, frames, commands, gaps, gap_bytes

    def open_replications(self) -> list[Replication]:
        """Return the replications of open slave-master conversations."""
        replications: list[Replication] = []
        for conversation in self.open_conversations():
            replication = conversation.state.replication()
            if replication is not None:
                replications.append(replication)
        return replications

    def _look_again(self, conversation: Conversation) -> None:
        """Stop skipping packets of a conversation: it begins or ends."""
        if not conversation.mine and self.passed is not None:
            self.passed.remove(conversation.first.key)
            self.passed.remove(conversation.second.key)

    def _note_ack(self, direction: Direction, segment: Segment) -> None:
        before = direction.conversation.shaking
        note_ack(direction, segment)
        if before and not direction.conversation.shaking:
            self.shaking -= 1

    def _open(self, segment: Segment, out: list[ReleasedPdus]) -> Direction:
        key = segment.key
        if len(self._directions) >= 2 * MAX_CONVERSATIONS:
            self._end_stalest(segment, out)
        number: i64 = self.conversations
        self.conversations += 1
        is_rocketmq = False
        if self._decode_as:
            is_rocketmq = (
                port_of(key) in self._decode_as or port_of(reversed_key(key)) in self._decode_as
            )
        conversation = open_conversation(
            number, key, self._keep, self._findings, is_rocketmq, self._secrets
        )
        conversation.first_packet = segment.packet
        conversation.first_ts = segment.ts
        if self._shards > 1:
            conversation.mine = self._place_of(number, key) % self._shards == self._shard
        self._directions[conversation.second.key] = conversation.second
        self._directions[key] = conversation.first  # last: both keys are equal if the ends are
        if self.passed is not None:  # there is room for new flows, or nothing is skipped
            self.passed.crowded = len(self._directions) >= MAX_CONVERSATIONS
        return conversation.first

    def _place_of(self, number: i64, key: bytes) -> i64:
        """Return the sharding key: the number, or the hosts if TLS sessions may be resumed."""
        if not self._secrets.wanted:
            return number
        # A resumed TLS session needs what an earlier connection of the same hosts has shown.
        place: i64 = 0
        for byte in hosts_of(key):  # the same in all processes, unlike `hash`
            place = place * 31 + byte & 0xFFFF
        return place

    def _end(self, conversation: Conversation) -> ReleasedPdus:
        self._look_again(conversation)
        self._directions.pop(conversation.first.key, None)
        self._directions.pop(conversation.second.key, None)  # the same key if the ends are equal
        pdus: list[Pdu] = []
        waited = conversation.waiting
        if conversation.shaking:
            conversation.shaking = False
            self.shaking -= 1
        if conversation.mine:
            conversation.finish(pdus)
            if self._keep_ended:
                row = conversation_row_of(conversation)
                self.ended.append((conversation.first_packet, row))
            self.frames += conversation.frames
            self.commands += conversation.commands
            self._count_ended(conversation)
        return ReleasedPdus(conversation, pdus, True, waited)

    def _count_ended(self, conversation: Conversation) -> None:
        replication = conversation.state.replication()
        if replication is not None:
            self._add_replication(replication)
        elif conversation.state.is_rocketmq:
            self.rocketmq += 1
            for side in (conversation.first, conversation.second):
                self.gaps += side.reassembler.gaps
                self.gap_bytes += side.reassembler.gap_bytes
        else:
            protocol = conversation.protocol
            self._report_not_rocketmq(conversation)
            self.not_decoded[protocol] = self.not_decoded.get(protocol, 0) + 1

    def _add_replication(self, replication: Replication) -> None:
        self.replication += 1
        self.replications.append(replication)
        if len(self.replications) >= 2 * MAX_REPLICATIONS:
            self.replications = first_of(self.replications)

    def _report_not_rocketmq(self, conversation: Conversation) -> None:
        if conversation.protocol == NO_PAYLOAD:
            return
        detail = f"{conversation.protocol}: {conversation.first.src}, {conversation.second.src}"
        conversation.report(FindingKind.NOT_ROCKETMQ, detail, conversation.last_ts, 0, -1)

    def _end_stalest(self, segment: Segment, out: list[ReleasedPdus]) -> None:
        """End an eighth of the conversations, those idle for the longest time."""
        stale = self._all_open()
        # Many at once, so that sorting is rare.
        stale.sort(key=attrgetter("last_ts"))
        del stale[MAX_CONVERSATIONS // 8 :]
        detail = f"{len(stale)} of {MAX_CONVERSATIONS} are ended"
        self._findings.append(
            Finding(FindingKind.CONVERSATION_LIMIT, detail, segment.ts, segment.packet, -1, -1)
        )
        for conversation in stale:
            out.append(self._end(conversation))

    def _release(self, held: i64, out: list[ReleasedPdus]) -> None:
        """Release the largest holders until half of the limit is free."""
        holders = [one for one in self._all_open() if held_bytes_of(one) > 0]
        holders.sort(key=held_bytes_of, reverse=True)
        for conversation in holders:
            if held <= MAX_HELD // 2:
                return
            detail = f"{held_bytes_of(conversation)} bytes are given up"
            conversation.report(FindingKind.REASSEMBLY_LIMIT, detail, conversation.last_ts, 0, -1)
            held -= held_bytes_of(conversation)
            pdus: list[Pdu] = []
            waited = conversation.waiting
            conversation.state.release()
            if conversation.state.inside is not None:
                conversation.state.inside.release()
            conversation.first_decoder.release()
            conversation.second_decoder.release()
            conversation.release_holes(pdus)
            out.append(ReleasedPdus(conversation, pdus, False, waited))


def is_another(direction: Direction, segment: Segment) -> bool:
    """Return whether a SYN opens a new connection on known ports."""
    if direction.isn >= 0:
        return segment.seq != direction.isn
    if direction.first_seq < 0:
        return False
    # A SYN captured late: it comes just before the first segment seen.
    behind: i64 = (direction.first_seq - segment.seq - 1) & 0xFFFFFFFF
    return behind > MAX_PENDING


def held_bytes_of(conversation: Conversation) -> i64:
    """Return the approximate memory of the bytes held for a conversation."""
    held: i64 = conversation.state.held
    inside = conversation.state.inside
    if inside is not None:
        held += inside.held
    held += conversation.first_decoder.held_memory + conversation.second_decoder.held_memory
    return (
        held
        + conversation.first.reassembler.held_bytes
        + conversation.second.reassembler.held_bytes
    )
