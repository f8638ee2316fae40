"""Derive keys from secrets (TLS 1.2 and 1.3), and find the master secret of a TLS 1.2 session.

RFC 5246 (5, 6.3, 8.1), RFC 5869, RFC 7627, RFC 8446 (7.1 to 7.3).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple, final

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
from .suites import CBC, CHACHA, Suite

NONCE: Final = 12
"""nonce bytes of all ciphers"""
_SALT: Final = 4
"""nonce bytes that TLS 1.2 derives if records carry the rest"""
_MASTER: Final = 48
"""bytes of a master secret"""


class CipherKeys(NamedTuple):
    """Keys of one direction."""

    key: bytes
    iv: bytes
    """the nonce, or its first bytes if records carry the rest"""
    mac: bytes = b""
    """MAC key, for CBC suites"""


def keys_of_master(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes
) -> tuple[CipherKeys, CipherKeys]:
    """Return the client and server keys of a TLS 1.2 session."""
    iv = NONCE if suite.cipher == CHACHA else 0 if suite.cipher == CBC else _SALT
    mac = hashlib.new(suite.mac).digest_size if suite.mac else 0
    seed = b"key expansion" + server_random + client_random
    block = _expanded(suite.hash, master, seed, 2 * (mac + suite.key + iv))
    # The block has the MAC keys of client and server, then their keys, then their nonces.
    parts = []
    for size in (mac, suite.key, iv):
        parts.append((block[:size], block[size : 2 * size]))
        block = block[2 * size :]
    macs, keys, ivs = parts
    return CipherKeys(keys[0], ivs[0], macs[0]), CipherKeys(keys[1], ivs[1], macs[1])


def master_of(
    suite: Suite, premaster: bytes, client_random: bytes, server_random: bytes, handshake: bytes
) -> bytes:
    """Derive the master secret from a pre-master secret.

    `handshake`: with extended master secret, all messages up to the client key exchange; else
    empty.
    """
    if handshake:
        seed = b"extended master secret" + hashlib.new(suite.hash, handshake).digest()
    else:
        seed = b"master secret" + client_random + server_random
    return _expanded(suite.hash, premaster, seed, _MASTER)


def _expanded(digest: str, secret: bytes, seed: bytes, length: int) -> bytes:
    """Return P_hash."""
    made = b""
    link = seed
    while len(made) < length:
        link = hmac.digest(secret, link, digest)
        made += hmac.digest(secret, link + seed, digest)
    return made[:length]


def keys_of_traffic(suite: Suite, secret: bytes) -> CipherKeys:
    """Return the keys of a TLS 1.3 traffic secret."""
    return CipherKeys(
        _labelled(suite.hash, secret, b"key", suite.key),
        _labelled(suite.hash, secret, b"iv", NONCE),
    )


def next_traffic_secret(suite: Suite, secret: bytes) -> bytes:
    """Return the next secret after a key update."""
    return _labelled(suite.hash, secret, b"traffic upd", len(secret))


def _labelled(digest: str, secret: bytes, label: bytes, length: int) -> bytes:
    """Return HKDF-Expand-Label without a context."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    made = block = b""
    number = 0
    while len(made) < length:
        number += 1
        block = hmac.digest(secret, block + info + bytes((number,)), digest)
        made += block
    return made[:length]


MAX_KEPT: Final = 128 * 1024
"""maximum handshake bytes kept for deriving a master secret"""


@final
class MasterFinder:
    """Finds the master secret of one TLS 1.2 connection; sources are tried in turn.

    A line of the key log; a logged pre-master secret with the handshake; an earlier session of the
    same two hosts, resumed by session id or ticket. RFC 5246 (7.3), 5077, 7627.
    """

    def __init__(self, secrets: KeyLog, hosts: bytes) -> None:
        """`hosts` identifies both ends: sessions of other hosts are not used."""
        self._secrets = secrets
        self._hosts = hosts
        self._by_client: list[bytes] = []
        self._by_server: list[bytes] = []
        self._kept = 0
        self._incomplete = False
        """messages were too long to be kept"""
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
            self._incomplete = False
        elif kind == SERVER_HELLO:
            self._by_server, self._full = [], False
        elif kind == NEW_TICKET:
            self._ticket = ticket_of(content)
            self._remember()
        if self.keeps_all and not (self._key if by_client else self._full):
            self._kept += len(content)
            if self._kept > MAX_KEPT:
                self._incomplete = True
            else:
                (self._by_client if by_client else self._by_server).append(content)
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
            if self._incomplete:
                return None
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
