"""Connection setup and teardown, from SYN, FIN, RST, and acknowledgements."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from ..tcp.segment import ACK, FIN, RST, SYN, Segment
from .conversation import Conversation, Direction

LINGER: Final = 2_000_000_000
"""ns that a closed conversation waits for packets captured late"""
HALF_LINGER: Final = 120_000_000_000
"""ns of the same wait if only one end has closed: the other may still send"""
LEAST_PAUSE: Final = 1_000_000_000
"""shortest recorded pause without payload, ns"""


def note_start(direction: Direction, segment: Segment) -> None:
    """Track setup and teardown, which separate connections on the same ports."""
    if direction.first_seq < 0:
        direction.first_seq = segment.seq
    conversation = direction.conversation
    if segment.flags & SYN:
        if direction.isn < 0:
            direction.isn = segment.seq
        _note_syn(direction, segment)
    closing = segment.flags & (FIN | RST) != 0
    # Of several FIN and RST, the first one tells how long the connection was idle before its end.
    open_till_now = conversation.reset_by is None and conversation.closed_by is None
    if closing and open_till_now:
        conversation.closing_ts = segment.ts
        if conversation.payload_ts > 0:
            conversation.idle = segment.ts - conversation.payload_ts
            if segment.flags & RST and segment.ts - conversation.pause_end < LEAST_PAUSE:
                # A RST to a reused connection means that the peer had forgotten it.
                conversation.idle = conversation.pause
    if segment.flags & FIN and not direction.finished:
        _note_fin(direction, segment)
    direction.finished = direction.finished or closing
    if segment.flags & RST:
        if conversation.reset_by is None:
            conversation.reset_by = direction
    elif closing and conversation.closed_by is None:
        conversation.closed_by = direction
    conversation.closing = closing  # a SYN, or data later on, opens it again
    half = not (segment.flags & RST or direction.peer.finished)
    conversation.linger = HALF_LINGER if half else LINGER


def _note_fin(direction: Direction, segment: Segment) -> None:
    """Record the end of both streams from the numbers of a FIN: bytes missing before it were
    lost.
    """
    direction.ended_at = (segment.seq + segment.end - segment.start + segment.missing) & 0xFFFFFFFF
    if segment.flags & ACK and not direction.peer.finished:
        direction.peer.acked_at_end = segment.ack


def note_ack(direction: Direction, segment: Segment) -> None:
    """Handle a packet without payload, SYN, FIN, or RST."""
    if segment.window == 0:
        direction.zero_windows += 1
    conversation = direction.conversation
    if conversation.shaking and conversation.client is direction and segment.flags & ACK:
        conversation.shaking = False
        conversation.established_ts = segment.ts


def round_trip_of(conversation: Conversation) -> i64:
    """Return the ns from SYN to the ACK of the SYN/ACK, or -1 if unknown."""
    client = conversation.client
    established: i64 = conversation.established_ts
    if client is None or established == 0:
        return -1
    # The acknowledgement of a retransmitted SYN or SYN/ACK may be for either. Equal times measure
    # nothing: a recording of `rmqtool` has a synthesized handshake, or the clock is too coarse.
    if client.syns != 1 or client.peer.syns != 1 or established <= client.syn_ts:
        return -1
    return established - client.syn_ts


def _note_syn(direction: Direction, segment: Segment) -> None:
    conversation = direction.conversation
    direction.syns += 1
    direction.syn_ts = segment.ts
    if segment.flags & ACK == 0:
        if conversation.client is None:
            conversation.client = direction
    elif direction.peer.syns > 0 and direction.syns == 1:
        conversation.shaking = conversation.mine  # pure ACKs are asked for, which costs time
    elif conversation.client is None:
        conversation.client = direction.peer
