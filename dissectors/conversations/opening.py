"""Initial state of a conversation: undecided, or as set with `--decode-as`.

`--decode-as` applies to the payload: TLS is removed first if a secret decrypts it.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..findings import Finding
from ..tcp.pieces import Data, Piece
from ..tls.key_log import KeyLog
from .conversation import Conversation, ConversationState, Direction, Pdu
from .conversation_states import RocketMq, Undecided
from .recognition import TLS, protocol_of
from .tls_state import Tls

TLS_KINDS: Final = b"\x14\x15\x16\x17"
"""first bytes of TLS records: as a frame length they would far exceed the largest"""
TLS_HEAD: Final = 3
"""bytes that identify TLS"""
MOST_EARLY: Final = 8
"""deliveries of data after which the decision no longer waits for the first bytes"""


def open_conversation(
    number: i64,
    key: bytes,
    keep: i64,
    findings: list[Finding],
    is_rocketmq: bool,
    secrets: KeyLog,
) -> Conversation:
    """Return a new conversation; `is_rocketmq`: set by the user."""
    conversation = Conversation(number, key, keep, findings)
    if is_rocketmq:
        conversation.state = Announced(conversation, secrets)
    else:
        conversation.state = Undecided(conversation, secrets)
    return conversation


@final
class Announced(ConversationState):
    """RocketMQ as set by the user, until the first bytes show whether it is inside TLS."""

    __slots__ = ("_early", "_head", "_secrets")

    def __init__(self, conversation: Conversation, secrets: KeyLog) -> None:
        super().__init__(conversation, True, True)
        self._secrets = secrets
        self._early: list[tuple[Direction, list[Piece]]] = []
        self._head = b""

    @property
    def protocol(self) -> str:
        """Name of the protocol, as in the conversation's row."""
        return "ROCKETMQ"

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction: its first byte begins a frame, or TLS."""
        decoder = self.conversation.decoder_of(direction)
        decoder.started = True
        decoder.synchronized = True

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Detect TLS in the first bytes of the first sender, and continue with that state."""
        self._early.append((direction, list(pieces)))
        waits = True
        if self._early[0][0] is direction:
            for piece in pieces:
                if isinstance(piece, Data):
                    self._head += piece.data[piece.start : piece.end]
                elif not self._head:
                    waits = False  # captured midway
        head = self._head
        if head:
            waits = waits and head[0] in TLS_KINDS and len(head) < TLS_HEAD
        if not waits or len(self._early) > MOST_EARLY:
            self._go_on(out)

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded."""
        if self.conversation.state is self:
            self._go_on(out)
        self.conversation.state.finish(direction, out)

    def _go_on(self, out: list[Pdu]) -> None:
        conversation = self.conversation
        state: ConversationState = RocketMq(conversation, True)
        if protocol_of(self._head) == TLS:
            conversation.protocol = TLS
            state = Tls(conversation, state, self._secrets)
        conversation.state = state
        for direction, pieces in self._early:
            state.receive(direction, pieces, out)
        self._early = []
