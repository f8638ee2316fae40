"""Decrypt one TLS connection: ciphertext of both sides in, plaintext, facts, and findings out.

Rules: plaintext is returned only if its tag is valid. A hole, a record that cannot be decrypted, or
a missing secret ends a direction, with one finding. Without secrets only unencrypted parts are
read. RFC 5246, RFC 8446.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple, final

from ..findings import FindingKind
from . import key_log as labels
from .handshake import (
    CERTIFICATE,
    CLIENT_HELLO,
    ENCRYPTED_EXTENSIONS,
    END_OF_EARLY_DATA,
    FINISHED,
    KEY_UPDATE,
    SERVER_HELLO,
    TLS_1_2,
    TLS_1_3,
    ClientHello,
    HandshakeMessage,
    HandshakeReader,
    ServerHello,
    chain_of,
    client_hello_of,
    encrypted_extensions_of,
    server_hello_of,
    version_names,
)
from .key_log import KeyLog
from .key_schedule import MasterFinder, keys_of_master
from .records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEAD,
    Protection,
    Protection13,
    Record,
    RecordReader,
    protection_12,
)
from .suites import SUITES, Suite, suite_name


class Plaintext(NamedTuple):
    """Plaintext of one record."""

    side: int
    data: bytes
    """empty: no more data from this side"""
    packet: int
    """id of the packet that completed the record"""
    ts: int


class TlsFinding(NamedTuple):
    """Why something is not decrypted."""

    kind: FindingKind
    detail: str
    packet: int
    ts: int


class CertificateChain(NamedTuple):
    """The certificate chain of one side."""

    of_client: bool
    certificates: list[bytes]


class ServerExtensions(NamedTuple):
    """Encrypted extensions of a TLS 1.3 server."""

    protocol: str
    early: bool
    """it accepts early data"""


class TlsAlert(NamedTuple):
    """A readable alert."""

    name: str


TlsEvent = ClientHello | ServerHello | CertificateChain | ServerExtensions | TlsAlert


_RECORD_COST: Final = 256
"""memory bytes of a waiting record, besides its content"""


class TlsStage(IntEnum):
    """Type of the traffic secret of a TLS 1.3 direction."""

    CLEAR = 0
    EARLY = 1
    HANDSHAKE = 2
    TRAFFIC = 3


@final
class TlsSide:
    """One direction."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reader = RecordReader()
        self.handshake = HandshakeReader()
        self.queue: deque[Record] = deque()
        self.queued = 0
        """memory bytes of the queue"""
        self.protection: Protection | None = None
        self.stage = TlsStage.CLEAR
        self.sent_hello = False
        self.skipping = False
        """the first records are not encrypted with these keys"""
        self.cut = False
        """nothing after the queue can be read"""
        self.ended = False

    def add(self, record: Record) -> None:
        """Append a record to the queue."""
        self.queue.append(record)
        self.queued += len(record.content) + _RECORD_COST

    def take(self) -> None:
        """Remove the first record of the queue."""
        self.queued -= len(self.queue.popleft().content) + _RECORD_COST

    def end(self) -> None:
        """Stop reading."""
        self.ended = True
        self.protection = None
        self.queue.clear()
        self.queued = 0
        self.reader.forget()
        self.handshake.forget()


# Alert names: RFC 8446 (6), IANA's TLS Alerts.
CLOSE_NOTIFY: Final = 0
_ALERTS: Final = {
    CLOSE_NOTIFY: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    40: "handshake_failure",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    109: "missing_extension",
    110: "unsupported_extension",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}


def alert_of(content: bytes) -> str | None:
    """Return the name or number of an unencrypted alert, or None if it is none."""
    if len(content) != 2:
        return None
    return _ALERTS.get(content[1], str(content[1]))


MAX_EVENTS: Final = 32
"""maximum events of a session: hellos, chains, alerts"""
_HOLE: Final = -1
"""type of the queue entry for a hole"""


@final
class TlsSession:
    """Both directions, numbered 0 and 1."""

    def __init__(self, secrets: KeyLog, hosts: bytes = b"") -> None:
        """`hosts` identifies both ends: sessions are resumed only between the same two."""
        self.events: list[TlsEvent] = []
        """events since the list was last cleared"""
        self.findings: list[TlsFinding] = []
        """findings since the list was last cleared"""
        self._secrets = secrets
        self._wanted = secrets.wanted
        self._sides = (TlsSide(0), TlsSide(1))
        self._master = MasterFinder(secrets, hosts)
        for side in self._sides:
            side.handshake.keeps_all = self._master.keeps_all
        self._client = -1
        self._client_hello: ClientHello | None = None
        self._server_hello: ServerHello | None = None
        self._early: bool | None = None
        self._retried = False
        self._events_left = MAX_EVENTS
        self._missing_reported = False
        self._out: list[Plaintext] = []

    @property
    def done(self) -> bool:
        """Whether both directions have ended."""
        return self._sides[0].ended and self._sides[1].ended

    @property
    def held_bytes(self) -> int:
        """Memory bytes of waiting and incomplete records."""
        return sum(side.queued + side.reader.held_bytes for side in self._sides)

    @property
    def earliest_held(self) -> int:
        """Packet id of the earliest waiting record, or -1."""
        return min((side.queue[0].packet for side in self._sides if side.queue), default=-1)

    def receive(self, number: int, data: bytes, packet: int, ts: int) -> list[Plaintext]:
        """Return the plaintext that these bytes of a side complete, by packet."""
        side = self._sides[number]
        if side.ended or side.cut:
            return []
        for record in side.reader.receive(data, packet, ts):
            side.add(record)
        if side.reader.problem:
            side.cut = True
            side.add(Record(_HOLE, 0, side.reader.problem.encode(), packet, ts))
        return self._advanced()

    def receive_gap(self, number: int, packet: int, ts: int) -> list[Plaintext]:
        """Return the plaintext that can be returned now that a hole is known."""
        side = self._sides[number]
        if side.ended or side.cut:
            return []
        side.cut = True
        side.add(Record(_HOLE, 0, b"", packet, ts))
        return self._advanced()

    def give_up(self) -> list[Plaintext]:
        """Stop waiting; return the remaining plaintext."""
        for side in self._sides:
            if side.ended:
                continue
            self._read_cut_hello(side)
            if side.queue:
                self._end_without_secret(side, side.queue[0])
            else:
                side.end()
        return self._take_plaintext()

    # -- internals ------------------------------------------------------------------------------

    def _advanced(self) -> list[Plaintext]:
        """Process all records that need not wait, and return the plaintext."""
        # One side may wait for the other, such as for its hello, and then go on.
        moved = True
        while moved:
            moved = False
            for side in self._sides:
                while side.queue and self._take(side, side.queue[0]):
                    moved = True
                    if side.queue:  # not ended by this record
                        side.take()
        return self._take_plaintext()

    def _take_plaintext(self) -> list[Plaintext]:
        plaintext = self._out
        self._out = []
        # Records of one side may have waited for the other.
        plaintext.sort(key=attrgetter("packet"))
        return plaintext

    def _take(self, side: TlsSide, record: Record) -> bool:
        """Process a record; return False if it must wait."""
        if record.kind == _HOLE:
            self._take_hole(side, record)
        elif side.protection is not None:
            return self._open(side, record)
        elif record.kind == ALERT:
            self._note_alert(record.content)
        elif record.kind == HANDSHAKE and side.stage == TlsStage.CLEAR:
            for message in side.handshake.receive(record.content):
                self._read(side, message)
        else:
            return self._protect(side, record)
        return True

    def _take_hole(self, side: TlsSide, record: Record) -> None:
        """End a direction at a hole or an invalid record."""
        self._read_cut_hello(side)
        if record.content:
            self._end(side, FindingKind.TLS_BAD_RECORD, record.content.decode(), record)
        else:
            detail = "bytes that the capture does not have"
            self._end(side, FindingKind.TLS_GAP, detail, record)

    def _open(self, side: TlsSide, record: Record) -> bool:
        """Process an encrypted record."""
        protection = side.protection
        assert protection is not None
        of_13 = isinstance(protection, Protection13)
        if of_13 and record.kind == CHANGE_CIPHER_SPEC:
            return True  # for middleboxes that know only TLS 1.2
        opened = protection.opened(record)
        if opened is None:
            if not side.skipping:
                detail = f"a record of {len(record.content)} bytes is not encrypted by these keys"
                self._end(side, FindingKind.TLS_BAD_RECORD, detail, record)
            return True
        side.skipping = False
        kind, content = opened
        if kind == APPLICATION_DATA:
            if content:
                self._out.append(Plaintext(side.number, content, record.packet, record.ts))
        elif kind == HANDSHAKE:
            for message in side.handshake.receive(content):
                self._read(side, message)
        elif kind == ALERT and content[1:] != bytes((CLOSE_NOTIFY,)):  # the usual end
            self._note_alert(content)
        elif kind == CHANGE_CIPHER_SPEC and not of_13:
            return self._protect(side, record)  # a renegotiation
        return True

    def _read(self, side: TlsSide, message: HandshakeMessage) -> None:
        """Process a handshake message."""
        kind, content = message
        if kind == CLIENT_HELLO:
            self._read_client_hello(side, client_hello_of(content))
        elif kind == SERVER_HELLO:
            self._read_server_hello(side, server_hello_of(content))
        elif kind == ENCRYPTED_EXTENSIONS:
            protocol, self._early = encrypted_extensions_of(content)
            self._note(ServerExtensions(protocol, self._early))
        elif kind == CERTIFICATE:
            version = self._server_hello.version if self._server_hello else TLS_1_2
            chain = chain_of(content, version)
            if chain:
                self._note(CertificateChain(side.number == self._client, chain))
        elif isinstance(side.protection, Protection13):
            self._switch(side, side.protection, kind)
        # TLS 1.3 has no master secret, so what it encrypts is of no use there.
        if not isinstance(side.protection, Protection13):
            self._master.note(side.number == self._client, message)

    def _switch(self, side: TlsSide, protection: Protection13, kind: int) -> None:
        """Switch keys if a TLS 1.3 message requires it."""
        # Without a protection, the next record looks up the secret of the new stage.
        if kind == FINISHED and side.stage == TlsStage.HANDSHAKE:
            side.stage, side.protection = TlsStage.TRAFFIC, None
        elif kind == END_OF_EARLY_DATA and side.stage == TlsStage.EARLY:
            side.stage, side.protection = TlsStage.HANDSHAKE, None
        elif kind == KEY_UPDATE and side.stage == TlsStage.TRAFFIC:
            side.protection = protection.updated()

    def _read_client_hello(self, side: TlsSide, hello: ClientHello | None) -> None:
        side.sent_hello = True
        if hello is None:
            return
        if self._client < 0:
            self._client = side.number
        if side.number != self._client:
            return
        # After a HelloRetryRequest, early data is not permitted any more (RFC 8446, 4.1.2).
        is_second = self._client_hello is not None and self._server_hello is None
        self._client_hello = hello._replace(early=False) if is_second else hello
        if not is_second:
            self._note(hello)

    def _read_server_hello(self, side: TlsSide, hello: ServerHello | None) -> None:
        side.sent_hello = True
        if hello is None:
            return
        if self._client < 0:
            self._client = 1 - side.number
        if side.number == self._client:
            return
        if hello.retry:
            self._retried = True
            return
        self._server_hello = hello
        self._note(hello)

    def _read_cut_hello(self, side: TlsSide) -> None:
        """Record the contents of a truncated hello."""
        if side.sent_hello or side.protection is not None:
            return
        content = side.handshake.held  # of whole records, then of the incomplete one
        if side.reader.held[:1] == bytes((HANDSHAKE,)):
            content += side.reader.held[HEAD:]
        hello = client_hello_of(content) or server_hello_of(content)
        if hello is not None:
            self._note(hello)

    def _protect(self, side: TlsSide, record: Record) -> bool:
        """Set the keys of a direction; return False if it must wait."""
        if not self._wanted:
            side.end()
            return True
        if not side.sent_hello and side.stage == TlsStage.CLEAR:
            self._end_both(FindingKind.TLS_MIDSTREAM, "no handshake was captured", record)
            return True
        client, server = self._client_hello, self._server_hello
        if server is None and self._retried and record.kind == CHANGE_CIPHER_SPEC:
            return True  # TLS 1.3, where it means nothing
        if client is None or server is None:
            if not self._sides[1 - side.number].ended:
                return False
            detail = "a hello was not captured"
            self._end_both(FindingKind.TLS_MIDSTREAM, detail, record)
            return True
        suite = SUITES.get(server.suite)
        if server.version not in (TLS_1_2, TLS_1_3) or suite is None:
            detail = f"TLS {version_names((server.version,))} with {suite_name(server.suite)}"
            self._end_both(FindingKind.TLS_UNSUPPORTED, detail, record)
            return True
        if not _has_primitives():
            detail = "the package cryptography is not installed: pip install 'rmqtool[tls]'"
            self._end_both(FindingKind.TLS_UNSUPPORTED, detail, record)
            return True
        if server.version == TLS_1_3:
            return record.kind == CHANGE_CIPHER_SPEC or self._protect_13(side, suite, record)
        if record.kind != CHANGE_CIPHER_SPEC:
            detail = "encrypted before the keys were changed"
            self._end(side, FindingKind.TLS_BAD_RECORD, detail, record)
            return True
        master = self._master.find(client, server, suite)
        if master is None:
            other = self._sides[1 - side.number]
            more = self._master.needs_more(client, server) and not other.ended
            return not more and self._wait(side, record)
        pair = keys_of_master(suite, master, client.random, server.random)
        keys = pair[0 if side.number == self._client else 1]
        side.protection = protection_12(suite, keys, server.mac_behind)
        side.handshake.forget()
        return True

    def _protect_13(self, side: TlsSide, suite: Suite, record: Record) -> bool:
        """Set the keys of a TLS 1.3 direction, and decrypt the record."""
        hello = self._client_hello
        assert hello is not None
        by_client = side.number == self._client
        if side.stage == TlsStage.CLEAR:
            side.stage = TlsStage.HANDSHAKE
            if by_client and hello.early:
                if self._early is None:  # the server's response decides on early data
                    side.stage = TlsStage.CLEAR
                    if not self._sides[1 - side.number].ended:
                        return False
                    self._end_without_secret(side, record)
                    return True
                # If it declines, the client's early records remain unreadable, as for the server.
                side.skipping = not self._early
                side.stage = TlsStage.EARLY if self._early else TlsStage.HANDSHAKE
        secret = self._secrets.find(_LABELS[side.stage][by_client], hello.random)
        if secret is None and side.stage == TlsStage.HANDSHAKE and not (by_client and hello.early):
            # Some logs have only application secrets: earlier records are skipped.
            secret = self._secrets.find(_LABELS[TlsStage.TRAFFIC][by_client], hello.random)
            if secret is not None:
                side.stage, side.skipping = TlsStage.TRAFFIC, True
        if secret is None:
            return self._wait(side, record)
        side.protection = Protection13(suite, secret)
        return self._open(side, record)

    def _wait(self, side: TlsSide, record: Record) -> bool:
        """Wait for a secret if one may still arrive."""
        if self._secrets.may_grow:
            return False
        self._end_without_secret(side, record)
        return True

    def _end_without_secret(self, side: TlsSide, record: Record) -> None:
        """End a direction with an unknown secret; report it once for both."""
        hello = self._client_hello
        detail = f"of the session {hello.random[:8].hex()}…" if hello else "of an unknown session"
        self._end(side, FindingKind.TLS_SECRET_MISSING, detail, record, self._missing_reported)
        self._missing_reported = True

    def _end_both(self, kind: FindingKind, detail: str, record: Record) -> None:
        """End both directions with one finding."""
        for side in self._sides:
            self._end(side, kind, detail, record, side is self._sides[1])

    def _end(
        self, side: TlsSide, kind: FindingKind, detail: str, record: Record, reported: bool = False
    ) -> None:
        """End a direction; report why unless already `reported`."""
        if not side.ended and self._wanted:
            self._out.append(Plaintext(side.number, b"", record.packet, record.ts))
            if not reported:
                self.findings.append(TlsFinding(kind, detail, record.packet, record.ts))
        side.end()

    def _note_alert(self, content: bytes) -> None:
        name = alert_of(content)
        if name is not None:
            self._note(TlsAlert(name))

    def _note(self, event: TlsEvent) -> None:
        if self._events_left:
            self._events_left -= 1
            self.events.append(event)


_LABELS: Final = {
    TlsStage.EARLY: (labels.CLIENT_EARLY, labels.CLIENT_EARLY),
    TlsStage.HANDSHAKE: (labels.SERVER_HANDSHAKE, labels.CLIENT_HANDSHAKE),
    TlsStage.TRAFFIC: (labels.SERVER_TRAFFIC, labels.CLIENT_TRAFFIC),
}
"""by stage, for server and client"""


def _has_primitives() -> bool:
    try:
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    except ImportError:
        return False
    return True
