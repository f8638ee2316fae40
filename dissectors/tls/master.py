"""Find the master secret of a TLS 1.2 session; sources are tried in turn.

A line of the key log; a logged pre-master secret with the handshake; an earlier session of the same
two hosts, resumed by session id or ticket. RFC 5246 (7.3), 5077, 7627.
"""

from __future__ import annotations

import hashlib
from typing import Final, final

from . import key_log as labels
from .handshake import (
    CLIENT_HELLO,
    CLIENT_KEY,
    NEW_TICKET,
    SERVER_HELLO,
    SERVER_HELLO_DONE,
    ClientHello,
    HandshakeMessage,
    ServerHello,
    encrypted_premaster_of,
    ticket_of,
)
from .key_log import ENCRYPTED_BYTES, KeyLog
from .key_schedule import master_of
from .suites import Suite

MAX_KEPT: Final = 128 * 1024
"""maximum handshake bytes kept for deriving a master secret"""


@final
class MasterFinder:
    """Data of one connection about its master secret."""

    def __init__(self, secrets: KeyLog, hosts: bytes) -> None:
        """`hosts` identifies both ends: sessions of other hosts are not used."""
        self._secrets = secrets
        self._hosts = hosts
        self._by_client: list[bytes] = []
        self._by_server: list[bytes] = []
        self._kept = 0
        self._full = False
        self._key = b""
        self._ticket = b""
        self._session_id = b""
        self._master: bytes | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether the contents of all messages may be needed."""
        return self._secrets.has_premasters or self._secrets.may_grow

    def note(self, by_client: bool, message: HandshakeMessage) -> None:
        """Record a handshake message."""
        kind, content = message
        if kind == CLIENT_HELLO:
            self._by_client, self._key, self._kept = [], b"", 0
        elif kind == SERVER_HELLO:
            self._by_server, self._full = [], False
        elif kind == NEW_TICKET:
            self._ticket = ticket_of(content)
            self._remember()
        if self.keeps_all and self._kept + len(content) <= MAX_KEPT:
            if by_client and not self._key:
                self._by_client.append(content)
                self._kept += len(content)
            elif not by_client and not self._full:
                self._by_server.append(content)
                self._kept += len(content)
        if kind == SERVER_HELLO_DONE:
            self._full = True
        elif kind == CLIENT_KEY:
            self._key = content

    def find(self, client: ClientHello, server: ServerHello, suite: Suite) -> bytes | None:
        """Return the master secret, or None if unknown."""
        find = self._secrets.find
        master = find(labels.MASTER, client.random)
        master = master or find(labels.MASTER_OF_SESSION, server.session_id)
        master = master or self._made(client, server, suite) or self._of_earlier(client, server)
        if master is not None:
            self._master, self._session_id = master, server.session_id
            self._remember()
        return master

    def needs_more(self, client: ClientHello, server: ServerHello) -> bool:
        """Return whether later messages may still reveal it."""
        goes_on = client.session_id != b"" and client.session_id == server.session_id
        return self._secrets.has_premasters and not goes_on and not (self._full and self._key)

    def _made(self, client: ClientHello, server: ServerHello, suite: Suite) -> bytes | None:
        if not self._full or not self._key:
            return None
        encrypted = encrypted_premaster_of(self._key)[:ENCRYPTED_BYTES]
        premaster = self._secrets.find(labels.PREMASTER, client.random)
        premaster = premaster or self._secrets.find(labels.PREMASTER_BY_RSA, encrypted)
        if premaster is None:
            return None
        handshake = b""
        if server.extended:  # the messages up to the key exchange, as sent (RFC 7627, 3)
            hello, *others = self._by_client
            handshake = b"".join((hello, *self._by_server, *others))
        return master_of(suite, premaster, client.random, server.random, handshake)

    def _of_earlier(self, client: ClientHello, server: ServerHello) -> bytes | None:
        if self._full:  # a full handshake makes a new secret
            return None
        master = None
        if server.session_id == client.session_id:
            master = self._secrets.remembered(self._name(server.session_id))
        return master or self._secrets.remembered(self._name(client.ticket))

    def _remember(self) -> None:
        if self._master is None:
            return
        # A later connection may resume the session by either of them.
        for named in (self._session_id, self._ticket):
            if named:
                self._secrets.remember(self._name(named), self._master)

    def _name(self, session: bytes) -> bytes:
        return hashlib.sha256(self._hosts + session).digest()
