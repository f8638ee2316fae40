"""A conversation over TLS: pieces of ciphertext in, pieces of plaintext to the state inside.

Offsets are those of the plaintext; packet and time are those of the packet that completed the
record. The state inside begins undecided, as any conversation does. Where nothing is decrypted,
only the facts of the handshake are taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..expert import ExpertInfo, ExpertKind, undecoded
from ..replication.progress import Replication
from ..tcp.pieces import Data, Gap, Piece
from ..tls.key_log import KeyLog
from .conversation import Conversation, ConversationState, Direction, Pdu
from .keys import hosts_of
from .recognition import UNKNOWN

if TYPE_CHECKING:
    from ..tls.events import Plaintext

MAX_WAITING: Final = 256 * 1024
"""bytes of a conversation that wait for a secret or for what the other end says"""


@final
class Tls(ConversationState):
    """What is encrypted, and what it is inside as far as it is decrypted."""

    __slots__ = ("_begun", "_first_offset", "_second_offset", "_session")

    def __init__(
        self, conversation: Conversation, inside: ConversationState, secrets: KeyLog
    ) -> None:
        """`inside` is the undecided state that gets the plaintext."""
        from ..tls.session import TlsSession  # most runs meet no TLS

        super().__init__(conversation, False, secrets.wanted)
        self.inside = inside
        self._session = TlsSession(secrets, hosts_of(conversation.first.key))
        self._begun = False
        self._first_offset: i64 = 0
        self._second_offset: i64 = 0
        conversation.first.decoder.forget()
        conversation.second.decoder.forget()

    @property
    def protocol(self) -> str:
        """What the conversation speaks, inside where that was decrypted."""
        inside = self.inside
        if self._begun and inside is not None:
            return inside.protocol
        return self.conversation.protocol

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction, which begins no frame."""

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Append the PDUs that are complete with these pieces."""
        conversation = self.conversation
        session = self._session
        number = 0 if direction is conversation.first else 1
        for piece in pieces:
            if conversation.ignored:
                return
            try:
                if isinstance(piece, Data):
                    data = piece.data[piece.start : piece.end]
                    given = session.receive(number, data, piece.packet, piece.ts)
                else:
                    given = session.receive_gap(number, piece.packet, piece.ts)
                if session.held_bytes > MAX_WAITING:
                    given += session.give_up()
            except Exception as error:  # the last line of defence: one piece never ends a run
                self._say(ExpertKind.TLS_BAD_RECORD, undecoded(error), piece.ts, piece.packet)
                given = session.give_up()
            self._note()
            if given:
                self._give(given, out)
        if session.done:
            self._ignore()

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded: nothing is waited for any more."""
        given = self._session.give_up()
        self._note()
        self._give(given, out)
        if self._begun and self.inside is not None:
            self.inside.finish(direction, out)

    def give_up(self) -> None:
        """Decide what it is inside, as far as that is open."""
        if self._begun and self.inside is not None:
            self.inside.give_up()

    def release(self) -> None:
        """Wait for nothing more: too much memory is in use."""
        if self.held > 0:
            given = self._session.give_up()
            self._note()
            self._give(given, [])  # only says where the plaintext ends

    def replication(self) -> Replication | None:
        """Return what is known of a replication inside."""
        return None if self.inside is None else self.inside.replication()

    # -- inside ---------------------------------------------------------------------------------

    def _give(self, given: list[Plaintext], out: list[Pdu]) -> None:
        """Pass plaintext to the state inside, which may become another one by it."""
        conversation = self.conversation
        for one in given:
            if conversation.ignored:
                return
            if not self._begun:
                if not one.data:
                    continue
                self._begin()
            is_first = one.side == 0
            offset = self._first_offset if is_first else self._second_offset
            end: i64 = len(one.data)
            piece: Piece
            if end:
                piece = Data(offset, one.packet, one.ts, one.data, 0, end)
            else:
                piece = Gap(offset, one.packet, one.ts, 0)
            if is_first:
                self._first_offset += end
            else:
                self._second_offset += end
            inside = self.inside
            assert inside is not None
            inside.receive(conversation.first if is_first else conversation.second, [piece], out)

    def _begin(self) -> None:
        """Handle the first plaintext: nobody knows yet what it is."""
        self._begun = True
        conversation = self.conversation
        conversation.protocol = UNKNOWN
        inside = self.inside
        assert inside is not None
        self.is_rocketmq = inside.is_rocketmq
        inside.start(conversation.first)
        inside.start(conversation.second)

    def _note(self) -> None:
        """Take facts and findings of the session."""
        session = self._session
        if session.events:
            from .tls_facts import tls_facts

            self.conversation.note(tls_facts(session.events))
            session.events.clear()
        for one in session.findings:
            self._say(one.kind, one.detail, one.ts, one.packet)
        session.findings.clear()
        self.held = session.held_bytes
        self.earliest = session.earliest_held

    def _say(self, kind: ExpertKind, detail: str, ts: i64, packet: i64) -> None:
        conversation = self.conversation
        conversation.experts.append(ExpertInfo(kind, detail, ts, packet, conversation.number, -1))

    def _ignore(self) -> None:
        """Ignore all that follows in the conversation."""
        conversation = self.conversation
        conversation.ignored = True
        conversation.first.reassembler.forget()
        conversation.second.reassembler.forget()
