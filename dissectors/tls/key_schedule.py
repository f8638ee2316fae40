"""Secrets to keys: the pseudorandom function of TLS 1.2, the key schedule of TLS 1.3.

RFC 5246 (5, 6.3, 8.1), RFC 5869, RFC 7627, RFC 8446 (7.1 to 7.3).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

from .suites import CBC, CHACHA, Suite

NONCE: Final = 12
"""bytes of a nonce of all ciphers"""
_SALT: Final = 4
"""bytes of it that TLS 1.2 derives where records carry the rest"""
_MASTER: Final = 48
"""bytes of a master secret"""


class CipherKeys(NamedTuple):
    """What one direction is encrypted with."""

    key: bytes
    iv: bytes
    """all of the nonce, or its first bytes where records carry the rest"""
    mac: bytes = b""
    """key by which records are proved, of suites with CBC"""


def keys_of_master(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes
) -> tuple[CipherKeys, CipherKeys]:
    """Return the keys of client and server of a session of TLS 1.2."""
    iv = NONCE if suite.cipher == CHACHA else 0 if suite.cipher == CBC else _SALT
    mac = hashlib.new(suite.mac).digest_size if suite.mac else 0
    seed = b"key expansion" + server_random + client_random
    block = _expanded(suite.hash, master, seed, 2 * (mac + suite.key + iv))
    parts = []
    for size in (mac, suite.key, iv):
        parts.append((block[:size], block[size : 2 * size]))
        block = block[2 * size :]
    macs, keys, ivs = parts
    return CipherKeys(keys[0], ivs[0], macs[0]), CipherKeys(keys[1], ivs[1], macs[1])


def master_of(
    suite: Suite, premaster: bytes, client_random: bytes, server_random: bytes, handshake: bytes
) -> bytes:
    """Return the master secret of a pre-master secret.

    `handshake`: all messages up to the client's key exchange where the ends agreed to take them in
    (extended master secret), else empty.
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
    """Return the keys of a traffic secret of TLS 1.3."""
    return CipherKeys(
        _labelled(suite.hash, secret, b"key", suite.key),
        _labelled(suite.hash, secret, b"iv", NONCE),
    )


def next_traffic_secret(suite: Suite, secret: bytes) -> bytes:
    """Return the secret behind a key update."""
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
