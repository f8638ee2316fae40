"""A client sends a frame that is longer than the server accepts."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.framing.frame import MAX_FRAME
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import FRAME_LENGTH, conversation_number_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...keys import keep
from ...names import first_of
from ...outages import named, server_of, subject_at
from ...problem import Case, ProblemSeverity, connected
from ...rule import DiagnosisRule, TallyFold

ABSURD: Final = 1 << 30
"""a larger declared length is no message, but bytes of something else"""


class _Fold(TallyFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.longest = 0
        self.clients: set[str] = set()
        self.closed = 0

    def add_connection(self, row: ConversationRecord) -> None:
        length = conversation_number_in(row.facts, FRAME_LENGTH) or 0
        what = f"{row.client_address} announces a frame of {length:,} bytes"
        self.tally.add(connected(row, what))
        self.longest = max(self.longest, length)
        self.closed += row.ended_by == tcp.SERVER
        keep(self.clients, row.client_address, MAX_CLIENTS)

    def case(self, context: Context) -> Case:
        up_to = "up to " if self.tally.count > 1 else ""
        case = self.tally.case(
            f"{named(context, self.key)} received {counted(self.tally.count, 'frame')} over its"
            f" limit: {up_to}{self.longest:,} bytes (limit {MAX_FRAME:,})",
            subject_at(context, self.key),
        )
        clients = first_of(map(context.client, self.clients))
        case.details = [f"clients: {clients}"]
        if not self.closed:
            case.doubt("the server was not seen closing the connection")
        return case


MAX_CLIENTS: Final = 256


def _key(row: ConversationRecord) -> str | None:
    if not row.facts or not row.commands:
        return None
    length = conversation_number_in(row.facts, FRAME_LENGTH)
    return server_of(row) if length is not None and length < ABSURD else None


RULE = DiagnosisRule(
    id="frame-too-long",
    severity=ProblemSeverity.ERROR,
    title="A client sends a frame that exceeds the server's limit",
    searched=("Adjusted frame length exceeds 16777216", "TooLongFrameException: discarded"),
    proof=(
        "A frame on a RocketMQ connection announces more than 16,777,216 bytes, and the server then"
        " closes the connection."
    ),
    explanation=(
        "The server reads no frame longer than com.rocketmq.remoting.frameMaxLength. It discards"
        " the request, logs TooLongFrameException, and closes the connection: all pending requests"
        " on it fail. Usually, it is a batch, or a message with a huge body or many properties."
    ),
    advice=(
        "Send smaller batches: maxMessageSize of producer and broker is 4 MB by default, but a"
        " client may have a higher limit. Raise -Dcom.rocketmq.remoting.frameMaxLength (default"
        " 16777216) on servers and clients only if large messages are intended."
    ),
    grpc="Not covered: HTTP/2 has its own frames and limits.",
    fold=_Fold,
    connections=_key,
    references=("apache/rocketmq#8086",),
    limits="Lengths are not checked if bytes are missing in the capture.",
    needs={Need.CONNECTIONS},
    consequence_of={"oversize-message"},
    lasts=None,
)
