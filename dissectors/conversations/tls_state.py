"""TLS conversations: ciphertext pieces in, plaintext pieces to the inner state.

Offsets are those of the plaintext; packet and time are those of the packet that completed the
record. The inner state begins undecided. Without decryption, only the facts of the handshake are
recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from ..findings import FindingKind, undecoded
from ..replication.progress import Replication
from ..tcp.reassembly import Data, Gap, Piece
from ..tcp.segment import hosts_of
from ..tls.key_log import KeyLog
from .conversation import Conversation, ConversationState, Direction, Pdu
from .recognition import UNKNOWN

if TYPE_CHECKING:
    from ..tls.session import Plaintext

MAX_WAITING: Final = 256 * 1024
"""bytes of a conversation held for a secret or for the other end's handshake"""


@final
class Tls(ConversationState):
    """Encrypted bytes, with an inner state for the decrypted ones."""

    __slots__ = ("_begun", "_first_offset", "_second_offset", "_session")

    def __init__(
        self, conversation: Conversation, inside: ConversationState, secrets: KeyLog
    ) -> None:
        """`inside` is the undecided state that gets the plaintext."""
        from ..tls.session import TlsSession  # most runs have no TLS

        super().__init__(conversation, False, secrets.wanted)
        self.inside = inside
        self._session = TlsSession(secrets, hosts_of(conversation.first.key))
        self._begun = False
        self._first_offset: i64 = 0
        self._second_offset: i64 = 0
        conversation.forget_frames()

    @property
    def protocol(self) -> str:
        """Name of the protocol, or of the inner one if decrypted."""
        inside = self.inside
        if self._begun and inside is not None:
            return inside.protocol
        return self.conversation.protocol

    def start(self, direction: Direction) -> None:
        """Handle the SYN of a direction, which begins no frame."""

    def receive(self, direction: Direction, pieces: list[Piece], out: list[Pdu]) -> None:
        """Append the PDUs that these pieces complete."""
        conversation = self.conversation
        session = self._session
        number = 0 if direction is conversation.first else 1
        for piece in pieces:
            if conversation.ignored:
                return
            try:
                if isinstance(piece, Data):
                    data = piece.data[piece.start : piece.end]
                    plaintext = session.receive(number, data, piece.packet, piece.ts)
                else:
                    plaintext = session.receive_gap(number, piece.packet, piece.ts)
                if session.held_bytes > MAX_WAITING:  # the secret may never come
                    plaintext += session.give_up()
            except Exception as error:  # last line of defence: a bad piece must not end the run
                kind, detail = FindingKind.TLS_BAD_RECORD, undecoded(error)
                conversation.report(kind, detail, piece.ts, piece.packet, -1)
                plaintext = session.give_up()
            self._note()
            if plaintext:
                self._give(plaintext, out)
        if session.done:
            conversation.ignore()

    def finish(self, direction: Direction, out: list[Pdu]) -> None:
        """Append what can still be decoded, without further waiting."""
        plaintext = self._session.give_up()
        self._note()
        self._give(plaintext, out)
        if self._begun and self.inside is not None:
            self.inside.finish(direction, out)

    def give_up(self) -> None:
        """Settle the inner protocol if it is undecided."""
        if self._begun and self.inside is not None:
            self.inside.give_up()

    def release(self) -> None:
        """Stop waiting: memory is short."""
        if self.held > 0:
            plaintext = self._session.give_up()
            self._note()
            self._give(plaintext, [])  # only the end of the plaintext

    def replication(self) -> Replication | None:
        """Return the inner replication so far."""
        return None if self.inside is None else self.inside.replication()

    # -- inside ---------------------------------------------------------------------------------

    def _give(self, plaintext: list[Plaintext], out: list[Pdu]) -> None:
        """Pass plaintext to the inner state, which may be replaced by another one."""
        conversation = self.conversation
        for part in plaintext:
            if conversation.ignored:
                return
            if not self._begun:
                if not part.data:  # it ends without plaintext: it stays TLS
                    continue
                self._begin()
            is_first = part.side == 0
            offset = self._first_offset if is_first else self._second_offset
            end: i64 = len(part.data)
            piece: Piece
            if end:
                piece = Data(offset, part.packet, part.ts, part.data, 0, end)
            else:
                piece = Gap(offset, part.packet, part.ts, 0)  # no more will be decrypted
            if is_first:
                self._first_offset += end
            else:
                self._second_offset += end
            inside = self.inside
            assert inside is not None
            inside.receive(conversation.first if is_first else conversation.second, [piece], out)

    def _begin(self) -> None:
        """Handle the first plaintext: the inner protocol is undecided."""
        self._begun = True
        conversation = self.conversation
        conversation.protocol = UNKNOWN
        inside = self.inside
        assert inside is not None
        self.is_rocketmq = inside.is_rocketmq
        inside.start(conversation.first)
        inside.start(conversation.second)

    def _note(self) -> None:
        """Record facts and findings of the session."""
        session = self._session
        if session.events:
            from .tls_facts import tls_facts

            self.conversation.note(tls_facts(session.events))
            session.events.clear()
        for finding in session.findings:
            self.conversation.report(finding.kind, finding.detail, finding.ts, finding.packet, -1)
        session.findings.clear()
        self.held = session.held_bytes
        self.earliest = session.earliest_held
