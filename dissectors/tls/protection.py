"""Records of one direction, decrypted: never a byte that its tag, or its MAC, does not prove.

The primitives are those of the package cryptography, which is imported here, and only when the
first session is decrypted. RFC 5246 (6.2.3.2, 6.2.3.3), RFC 7366, RFC 7905, RFC 8446 (5.2 to 5.4).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Protocol

from .key_schedule import NONCE, CipherKeys, keys_of_traffic, next_traffic_secret
from .records import APPLICATION_DATA, Record
from .suites import CBC, CCM, CHACHA, GCM, Suite

_SEQUENCE: Final = 8
_BLOCK: Final = 16
"""bytes of a block of AES"""


class Aead(Protocol):
    """A cipher with a key, as the package has them."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes) -> bytes:
        """Return what is encrypted; raise InvalidTag where it is not by this key."""
        ...


class Protection:
    """What one direction is encrypted with now, and how many records were."""

    def __init__(self, suite: Suite, keys: CipherKeys) -> None:
        self._suite = suite
        self._iv = keys.iv
        self._sequence = 0

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return kind and content of a record; None where it is not encrypted by these keys."""
        raise NotImplementedError

    def _proved(self, record: Record, length: int) -> bytes:
        """Return what TLS 1.2 proves beside the content: number, kind, version, length."""
        proved = self._sequence.to_bytes(_SEQUENCE, "big") + bytes((record.kind,))
        return proved + record.version.to_bytes(2, "big") + length.to_bytes(2, "big")


class AeadProtection(Protection):
    """A cipher that proves what it encrypts."""

    def __init__(self, suite: Suite, keys: CipherKeys) -> None:
        super().__init__(suite, keys)
        self._aead = _aead_of(suite, keys.key)

    def _decrypted(self, nonce: bytes, sealed: bytes, extra: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            content = self._aead.decrypt(nonce, sealed, extra)
        except (InvalidTag, ValueError):
            return None
        self._sequence += 1
        return content

    def _mixed(self) -> bytes:
        """Return the nonce that is the number of the record mixed into the derived one."""
        mixed = int.from_bytes(self._iv, "big") ^ self._sequence
        return mixed.to_bytes(NONCE, "big")


class CbcProtection(Protection):
    """TLS 1.2 with CBC: a MAC is encrypted with the content, or is behind what is encrypted."""

    def __init__(self, suite: Suite, keys: CipherKeys, mac_behind: bool) -> None:
        super().__init__(suite, keys)
        self._key = keys.key
        self._mac_key = keys.mac
        self._mac_behind = mac_behind
        self._mac_size = hashlib.new(suite.mac).digest_size

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return kind and content of a record; None where it is not encrypted by these keys."""
        sealed = record.content
        if self._mac_behind:
            sealed, mac = sealed[: -self._mac_size], sealed[-self._mac_size :]
            if not self._is_proved(record, sealed, mac):
                return None
        content = self._decrypted(sealed)
        if content is None:
            return None
        if not self._mac_behind:
            content, mac = content[: -self._mac_size], content[-self._mac_size :]
            if not self._is_proved(record, content, mac):
                return None
        self._sequence += 1
        return record.kind, content

    def _is_proved(self, record: Record, content: bytes, mac: bytes) -> bool:
        proved = self._proved(record, len(content)) + content
        return hmac.compare_digest(hmac.digest(self._mac_key, proved, self._suite.mac), mac)

    def _decrypted(self, sealed: bytes) -> bytes | None:
        """Return what is encrypted without its padding; None where that is none."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC as CBC_MODE

        if len(sealed) < 2 * _BLOCK or len(sealed) % _BLOCK:
            return None
        cipher = Cipher(AES(self._key), CBC_MODE(sealed[:_BLOCK])).decryptor()
        content: bytes = cipher.update(sealed[_BLOCK:]) + cipher.finalize()
        padding = content[-1] + 1
        if len(content) < padding or content[-padding:] != content[-1:] * padding:
            return None
        return content[:-padding]


class Protection12(AeadProtection):
    """TLS 1.2: the number of the record is in what is proved, not in the record."""

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return kind and content of a record; None where it is not encrypted by these keys."""
        explicit = self._suite.explicit
        sealed = record.content
        length = len(sealed) - explicit - self._suite.tag
        if length < 0:
            return None
        nonce = self._iv + sealed[:explicit] if explicit else self._mixed()
        content = self._decrypted(nonce, sealed[explicit:], self._proved(record, length))
        return None if content is None else (record.kind, content)


class Protection13(AeadProtection):
    """TLS 1.3: the kind is inside, behind the content, and zero bytes may follow it."""

    def __init__(self, suite: Suite, secret: bytes) -> None:
        super().__init__(suite, keys_of_traffic(suite, secret))
        self._secret = secret

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return kind and content of a record; None where it is not encrypted by these keys."""
        sealed = record.content
        if record.kind != APPLICATION_DATA or len(sealed) <= self._suite.tag:
            return None
        extra = bytes((record.kind,)) + record.version.to_bytes(2, "big")
        extra += len(sealed).to_bytes(2, "big")
        inner = self._decrypted(self._mixed(), sealed, extra)
        if inner is None:
            return None
        inner = inner.rstrip(b"\0")
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def updated(self) -> Protection13:
        """Return the protection behind a key update."""
        return Protection13(self._suite, next_traffic_secret(self._suite, self._secret))


def protection_12(suite: Suite, keys: CipherKeys, mac_behind: bool) -> Protection:
    """Return the protection of a direction of TLS 1.2; `mac_behind`: the MAC is not encrypted."""
    if suite.cipher == CBC:
        return CbcProtection(suite, keys, mac_behind)
    return Protection12(suite, keys)


def _aead_of(suite: Suite, key: bytes) -> Aead:
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    aead: Aead
    if suite.cipher == GCM:
        aead = AESGCM(key)
    elif suite.cipher == CHACHA:
        aead = ChaCha20Poly1305(key)
    else:
        assert suite.cipher == CCM
        aead = AESCCM(key, suite.tag)
    return aead
