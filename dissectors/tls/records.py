"""Cut one direction into TLS records, and decrypt them.

Rules: an invalid record header ends the direction; there is no search for another one. No byte is
returned unless its tag or MAC is valid. The package cryptography is imported when the first session
is decrypted. RFC 5246 (6.2.3.2, 6.2.3.3), RFC 7366, RFC 7905, RFC 8446 (5.1 to 5.4).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple, Protocol, final

from .key_schedule import NONCE, CipherKeys, keys_of_traffic, next_traffic_secret
from .suites import CBC, CCM, CHACHA, GCM, Suite

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
MAX_CONTENT: Final = (1 << 14) + 2048
"""maximum content bytes of a record: the TLS 1.2 limit for ciphertext"""
HEAD: Final = 5
"""bytes of a record header: type, version, length"""
_KINDS: Final = range(CHANGE_CIPHER_SPEC, APPLICATION_DATA + 1)
_MAJOR: Final = 3
_MINORS: Final = 5


class Record(NamedTuple):
    """A record and its packet."""

    kind: int
    version: int
    content: bytes
    packet: int
    """id of the packet that completed it"""
    ts: int
    """time of that packet, nanoseconds since the epoch"""


@final
class RecordReader:
    """Cuts the bytes of one direction into records."""

    def __init__(self) -> None:
        self.problem = ""
        """why nothing more is read, or empty"""
        self.offset = 0
        """stream offset after the last complete record"""
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """Bytes of the incomplete record."""
        return bytes(self._held)

    @property
    def held_bytes(self) -> int:
        """Number of held bytes."""
        return len(self._held)

    def forget(self) -> None:
        """Drop held bytes."""
        self._held.clear()

    def receive(self, data: bytes, packet: int, ts: int) -> list[Record]:
        """Return the records that these bytes complete."""
        records: list[Record] = []
        held = self._held
        held += data
        at, size = 0, len(held)
        while size - at >= HEAD and not self.problem:
            kind, major, minor = held[at], held[at + 1], held[at + 2]
            length = held[at + 3] << 8 | held[at + 4]
            if kind not in _KINDS or major != _MAJOR or minor >= _MINORS or length > MAX_CONTENT:
                self.problem = f"no head of a record: {bytes(held[at : at + HEAD]).hex()}"
                break
            end = at + HEAD + length
            if end > size:
                break
            content = bytes(held[at + HEAD : end])
            records.append(Record(kind, major << 8 | minor, content, packet, ts))
            at = end
        self.offset += at
        if self.problem:
            held.clear()
        else:
            del held[:at]
        return records


_SEQUENCE: Final = 8
_BLOCK: Final = 16
"""bytes of an AES block"""


class Aead(Protocol):
    """An AEAD cipher with its key, as in cryptography."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes) -> bytes:
        """Decrypt; raise InvalidTag if the data does not match this key."""
        ...


class Protection:
    """Keys of one direction, and its number of records."""

    def __init__(self, suite: Suite, keys: CipherKeys) -> None:
        self._suite = suite
        self._iv = keys.iv
        self._sequence = 0

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return type and content of a record, or None if these keys do not decrypt it."""
        raise NotImplementedError

    def _proved(self, record: Record, length: int) -> bytes:
        """Return the additional data of TLS 1.2: sequence number, type, version, length."""
        proved = self._sequence.to_bytes(_SEQUENCE, "big") + bytes((record.kind,))
        return proved + record.version.to_bytes(2, "big") + length.to_bytes(2, "big")


class AeadProtection(Protection):
    """An AEAD cipher."""

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
        """Return the derived nonce, XORed with the sequence number (RFC 7905, 2; RFC 8446, 5.3)."""
        mixed = int.from_bytes(self._iv, "big") ^ self._sequence
        return mixed.to_bytes(NONCE, "big")


class CbcProtection(Protection):
    """TLS 1.2 with CBC: the MAC is encrypted with the content, or follows the ciphertext."""

    def __init__(self, suite: Suite, keys: CipherKeys, mac_behind: bool) -> None:
        super().__init__(suite, keys)
        self._key = keys.key
        self._mac_key = keys.mac
        self._mac_behind = mac_behind
        self._mac_size = hashlib.new(suite.mac).digest_size

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return type and content of a record, or None if these keys do not decrypt it."""
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
        """Decrypt and remove the padding; return None if the padding is invalid."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC as CBC_MODE

        if len(sealed) < 2 * _BLOCK or len(sealed) % _BLOCK:  # the first block is the IV
            return None
        cipher = Cipher(AES(self._key), CBC_MODE(sealed[:_BLOCK])).decryptor()
        content: bytes = cipher.update(sealed[_BLOCK:]) + cipher.finalize()
        padding = content[-1] + 1  # with the byte that has its length
        if len(content) < padding or content[-padding:] != content[-1:] * padding:
            return None
        return content[:-padding]


class Protection12(AeadProtection):
    """TLS 1.2: the sequence number is authenticated, but not in the record."""

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return type and content of a record, or None if these keys do not decrypt it."""
        explicit = self._suite.explicit
        sealed = record.content
        length = len(sealed) - explicit - self._suite.tag
        if length < 0:
            return None
        nonce = self._iv + sealed[:explicit] if explicit else self._mixed()
        content = self._decrypted(nonce, sealed[explicit:], self._proved(record, length))
        return None if content is None else (record.kind, content)


class Protection13(AeadProtection):
    """TLS 1.3: the type is inside, after the content, and may be followed by zeros."""

    def __init__(self, suite: Suite, secret: bytes) -> None:
        super().__init__(suite, keys_of_traffic(suite, secret))
        self._secret = secret

    def opened(self, record: Record) -> tuple[int, bytes] | None:
        """Return type and content of a record, or None if these keys do not decrypt it."""
        sealed = record.content
        if record.kind != APPLICATION_DATA or len(sealed) <= self._suite.tag:
            return None
        extra = bytes((record.kind,)) + record.version.to_bytes(2, "big")
        extra += len(sealed).to_bytes(2, "big")  # the header of the record, as sent
        inner = self._decrypted(self._mixed(), sealed, extra)
        if inner is None:
            return None
        inner = inner.rstrip(b"\0")  # padding of any length (RFC 8446, 5.4)
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def updated(self) -> Protection13:
        """Return the protection after a key update."""
        return Protection13(self._suite, next_traffic_secret(self._suite, self._secret))


def protection_12(suite: Suite, keys: CipherKeys, mac_behind: bool) -> Protection:
    """Return the protection of a TLS 1.2 direction; `mac_behind`: encrypt-then-MAC."""
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
