"""Mapping of a conversation to the columns of its row.

Runs once per connection, when it has ended or is dropped. A retransmitted SYN makes round trips
unknown: the response may be to either (RFC 6298, Karn's algorithm).
"""

from __future__ import annotations

import itertools

from mypy_extensions import i64

from ..rows import conversation_facts as facts_of
from ..rows import conversation_record as words
from ..rows.conversation_record import ConversationRecord
from .conversation import LEAST_PAUSE, Conversation, Direction, round_trip_of

CLOSED = "closed"
"""end of an unanswered exchange whose connection was closed by FIN"""


def conversation_row_of(conversation: Conversation) -> ConversationRecord:
    """Return the row of a conversation, without the name of its capture."""
    client = client_of(conversation)
    server = client.peer
    lost_by_client, lost_by_server = _lost_at_end(client), _lost_at_end(server)
    syn_rtt, ack_rtt = _handshake(client, server, conversation.established_ts)
    rtt = round_trip_of(conversation)
    return ConversationRecord(
        capture="",
        conversation=conversation.number,
        client_address=client.src,
        server_address=server.src,
        protocol=conversation.state.protocol,
        start_time=conversation.first_ts,
        end_time=max(conversation.last_ts, conversation.first_ts),
        start=_start(client, server),
        end=_end(conversation, client, server),
        ended_by=_ended_by(conversation, client),
        rtt_us=rtt // 1000 if rtt >= 0 else None,
        syn_rtt_us=syn_rtt,
        ack_rtt_us=ack_rtt,
        syns=client.syns,
        directions=_directions(client, server),
        client_packets=client.packets,
        server_packets=server.packets,
        client_bytes=client.payload_bytes,
        server_bytes=server.payload_bytes,
        client_retransmissions=client.reassembler.retransmissions,
        server_retransmissions=server.reassembler.retransmissions,
        client_zero_windows=client.zero_windows,
        server_zero_windows=server.zero_windows,
        gaps=client.reassembler.gaps
        + server.reassembler.gaps
        + (1 if lost_by_client else 0)
        + (1 if lost_by_server else 0),
        gap_bytes=client.reassembler.gap_bytes
        + server.reassembler.gap_bytes
        + lost_by_client
        + lost_by_server,
        commands=conversation.commands,
        facts=_facts(conversation),
    )


def _facts(conversation: Conversation) -> list[str]:
    facts = list(conversation.facts or ())
    client = client_of(conversation)
    ends = ((client, words.CLIENT), (client.peer, words.SERVER))
    stalls = [stall for end, name in ends for stall in _stalls(end, name)]
    # Retransmissions right after a pause: it was idle before them, not before its end.
    stalled = any(0 < stall.first - conversation.pause_end <= LEAST_PAUSE for stall in stalls)
    idle = conversation.pause if stalled else conversation.idle
    if idle >= facts_of.LEAST_IDLE:
        facts.append(facts_of.conversation_fact(facts_of.IDLE_MS, idle // 1_000_000))
    closing = conversation.last_ts - conversation.closing_ts
    if conversation.closing_ts > 0 and closing >= facts_of.LEAST_CLOSING:
        facts.append(facts_of.conversation_fact(facts_of.CLOSING_US, closing // 1000))
    if conversation.after_fin:
        facts.append(facts_of.conversation_fact(facts_of.AFTER_FIN, conversation.after_fin))
    for direction in (conversation.first, conversation.second):
        length = conversation.decoder_of(direction).too_long
        # After a hole, these bytes may be no length at all.
        if length and not direction.reassembler.gaps:
            facts.append(facts_of.conversation_fact(facts_of.FRAME_LENGTH, length))
    late = [
        facts_of.late_fact(facts_of.Late(name, end.late, end.late_most))
        for end, name in ends
        if end.late
    ]
    return [*facts, *map(facts_of.stall_fact, stalls), *late]


def _stalls(direction: Direction, sender: str) -> list[facts_of.Stall]:
    repeats = direction.reassembler.repeats
    stalls = repeats.stalls() if repeats is not None else ()
    return [facts_of.Stall(sender, *stall) for stall in stalls]


def client_of(conversation: Conversation) -> Direction:
    """Return the end that connected, or sent the first request, or was seen first."""
    return conversation.client or conversation.first


def conversation_end(conversation: Conversation) -> str:
    """Return the current state of a connection: `reset`, `closed` or `open`."""
    if conversation.reset_by is not None:
        return words.RESET
    return CLOSED if conversation.closed_by is not None else words.OPEN


def _lost_at_end(direction: Direction) -> i64:
    """Return the bytes at the end of a direction that were sent but not captured, from the FINs."""
    if direction.conversation.ignored:
        return 0  # its bytes were not tracked
    reassembler = direction.reassembler
    lost: i64 = 0
    if direction.ended_at >= 0:
        lost = reassembler.lost_before(direction.ended_at)
    # Its own FIN may be lost as well; that of the other end acknowledges all it has received.
    if lost == 0 and direction.acked_at_end >= 0:
        lost = reassembler.lost_before(direction.acked_at_end)
    return lost


def _handshake(client: Direction, server: Direction, established: int) -> tuple[int | None, ...]:
    """Return the microseconds from SYN to SYN/ACK and from there to the final ACK."""
    if client.syns != 1 or server.syns != 1 or server.syn_ts < client.syn_ts:
        return None, None
    times = client.syn_ts, server.syn_ts, established
    # Equal times measure nothing, as in `round_trip_of`.
    return tuple(
        (end - begin) // 1000 if end > begin else None for begin, end in itertools.pairwise(times)
    )


def _start(client: Direction, server: Direction) -> str:
    if client.syns and server.syns:
        return words.HANDSHAKE
    return words.SYN_ONLY if client.syns or server.syns else words.MIDSTREAM


def _end(conversation: Conversation, client: Direction, server: Direction) -> str:
    unanswered = client.syns > 0 and server.syns == 0 and client.payload_bytes == 0
    if conversation.reset_by is not None:
        refused = unanswered and conversation.reset_by is server
        return words.REFUSED if refused else words.RESET
    if conversation.closed_by is not None:
        return words.FIN
    return words.NO_RESPONSE if unanswered and server.packets == 0 else words.OPEN


def _ended_by(conversation: Conversation, client: Direction) -> str | None:
    end = conversation.closed_by or conversation.reset_by
    if end is None:
        return None
    return words.CLIENT if end is client else words.SERVER


def _directions(client: Direction, server: Direction) -> str:
    if client.packets and server.packets:
        return words.BOTH
    return words.CLIENT if client.packets else words.SERVER
