"""Derive keys from secrets: the pseudorandom function of TLS 1.2, the key schedule of TLS 1.3.

RFC 5246 (5, 6.3, 8.1), RFC 5869, RFC 7627, RFC 8446 (7.1 to 7.3).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

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
