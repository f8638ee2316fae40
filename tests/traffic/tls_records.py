"""Records and hellos of TLS, byte by byte."""

from __future__ import annotations

from dissectors.tls.key_log import (
    CLIENT_HANDSHAKE,
    CLIENT_TRAFFIC,
    SERVER_HANDSHAKE,
    SERVER_TRAFFIC,
)
from dissectors.tls.key_schedule import keys_of_traffic
from dissectors.tls.suites import SUITES

RANDOM = bytes(range(32))
"""random number of the client"""
SUITE = b"\x13\x01"
"""TLS_AES_128_GCM_SHA256"""

_SECRET = bytes(32)
_LABELS = (CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_TRAFFIC, SERVER_TRAFFIC)
KEY_LOG = "".join(f"{label} {RANDOM.hex()} {_SECRET.hex()}\n" for label in _LABELS).encode()
"""secrets of the session that `RANDOM` begins: all the same, of nobody"""
PREMASTERS = f"RSA {bytes(8).hex()} {bytes(48).hex()}\n".encode()
"""what makes the master secret of a session in which a client encrypts zeros"""
APPLICATION, HANDSHAKE, ALERT = b"\x17", b"\x16", b"\x15"
"""last byte of what is sealed: what is in it"""
FINISHED = b"\x14\0\0\x20" + bytes(32) + HANDSHAKE


def sealed(inside: bytes, number: int) -> bytes:
    """A record of TLS 1.3 of that session, the one of this number by its keys."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    keys = keys_of_traffic(SUITES[0x1301], _SECRET)
    nonce = (int.from_bytes(keys.iv, "big") ^ number).to_bytes(12, "big")
    head = b"\x17\x03\x01" + (len(inside) + 16).to_bytes(2, "big")
    return head + AESGCM(keys.key).encrypt(nonce, inside, head)


def extension(kind: int, value: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value


def record(kind: int, content: bytes) -> bytes:
    return bytes([kind, 3, 1]) + len(content).to_bytes(2, "big") + content


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def client_hello(
    name: bytes = b"broker.example",
    versions: bytes = b"\x03\x04\x03\x03",
    random: bytes = bytes(32),
) -> bytes:
    names = b"\x00" + len(name).to_bytes(2, "big") + name
    extensions = extension(0, len(names).to_bytes(2, "big") + names)
    extensions += extension(43, bytes([len(versions)]) + versions)
    body = b"\x03\x03" + random + b"\x00" + b"\x00\x02" + SUITE + b"\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return record(0x16, message(1, body))


def server_hello(version: bytes | None, suite: bytes = SUITE) -> bytes:
    extensions = extension(43, version) if version else b""
    body = b"\x03\x03" + bytes(32) + b"\x00" + suite + b"\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return record(0x16, message(2, body))
