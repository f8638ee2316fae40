"""Table of the supported cipher suites: AEAD suites, and AES-CBC.

IANA's TLS Cipher Suites; RFC 5246, 5289 (CBC), 5288, 5289 (GCM), 6655, 7251 (CCM), 7905 (ChaCha20),
8446.
"""

from __future__ import annotations

from typing import Final, NamedTuple

GCM: Final = "GCM"
CCM: Final = "CCM"
CHACHA: Final = "CHACHA20_POLY1305"
CBC: Final = "CBC"


class Suite(NamedTuple):
    """A cipher suite."""

    name: str
    cipher: str
    """`GCM`, `CCM`, `CHACHA` or `CBC`"""
    key: int
    """key bytes"""
    hash: str
    """hash of the key schedule, named as in `hashlib`"""
    tag: int = 16
    """tag bytes of each record"""
    mac: str = ""
    """MAC hash, for `CBC`"""

    @property
    def explicit(self) -> int:
        """Nonce bytes in each TLS 1.2 record."""
        # ChaCha20 derives its whole nonce from the keys and the sequence number (RFC 7905, 2).
        return 0 if self.cipher == CHACHA else 8


_EXCHANGES: Final = {
    "RSA": (0x009C, 0x009D, 0xC09C, 0xC09D, 0xC0A0, 0xC0A1, 0),
    "DHE_RSA": (0x009E, 0x009F, 0xC09E, 0xC09F, 0xC0A2, 0xC0A3, 0xCCAA),
    "ECDHE_ECDSA": (0xC02B, 0xC02C, 0xC0AC, 0xC0AD, 0xC0AE, 0xC0AF, 0xCCA9),
    "ECDHE_RSA": (0xC02F, 0xC030, 0, 0, 0, 0, 0xCCA8),
    "DHE_DSS": (0x00A2, 0x00A3, 0, 0, 0, 0, 0),
    "DH_RSA": (0x00A0, 0x00A1, 0, 0, 0, 0, 0),
    "DH_DSS": (0x00A4, 0x00A5, 0, 0, 0, 0, 0),
    "ECDH_ECDSA": (0xC02D, 0xC02E, 0, 0, 0, 0, 0),
    "ECDH_RSA": (0xC031, 0xC032, 0, 0, 0, 0, 0),
    "PSK": (0x00A8, 0x00A9, 0xC0A4, 0xC0A5, 0xC0A8, 0xC0A9, 0xCCAB),
    "DHE_PSK": (0x00AA, 0x00AB, 0xC0A6, 0xC0A7, 0, 0, 0xCCAD),
    "ECDHE_PSK": (0xD001, 0xD002, 0xD005, 0, 0xD003, 0, 0xCCAC),
    "DH_anon": (0x00A6, 0x00A7, 0, 0, 0, 0, 0),
}
"""TLS 1.2 suite numbers by key exchange, in the order of `_KINDS`; 0 if there is none"""
_KINDS: Final = (
    ("AES_128_GCM_SHA256", GCM, 16, "sha256", 16),
    ("AES_256_GCM_SHA384", GCM, 32, "sha384", 16),
    ("AES_128_CCM", CCM, 16, "sha256", 16),
    ("AES_256_CCM", CCM, 32, "sha256", 16),
    ("AES_128_CCM_8", CCM, 16, "sha256", 8),
    ("AES_256_CCM_8", CCM, 32, "sha256", 8),
    ("CHACHA20_POLY1305_SHA256", CHACHA, 32, "sha256", 16),
)

_CBC_EXCHANGES: Final = {
    "RSA": (0x002F, 0x0035, 0x003C, 0x003D, 0),
    "DH_DSS": (0x0030, 0x0036, 0x003E, 0x0068, 0),
    "DH_RSA": (0x0031, 0x0037, 0x003F, 0x0069, 0),
    "DHE_DSS": (0x0032, 0x0038, 0x0040, 0x006A, 0),
    "DHE_RSA": (0x0033, 0x0039, 0x0067, 0x006B, 0),
    "DH_anon": (0x0034, 0x003A, 0x006C, 0x006D, 0),
    "PSK": (0x008C, 0x008D, 0x00AE, 0, 0x00AF),
    "DHE_PSK": (0x0090, 0x0091, 0x00B2, 0, 0x00B3),
    "RSA_PSK": (0x0094, 0x0095, 0x00B6, 0, 0x00B7),
    "ECDH_ECDSA": (0xC004, 0xC005, 0xC025, 0, 0xC026),
    "ECDHE_ECDSA": (0xC009, 0xC00A, 0xC023, 0, 0xC024),
    "ECDH_RSA": (0xC00E, 0xC00F, 0xC029, 0, 0xC02A),
    "ECDHE_RSA": (0xC013, 0xC014, 0xC027, 0, 0xC028),
    "ECDH_anon": (0xC018, 0xC019, 0, 0, 0),
    "ECDHE_PSK": (0xC035, 0xC036, 0xC037, 0, 0xC038),
}
"""CBC suite numbers by key exchange, in the order of `_CBC_KINDS`"""
_CBC_KINDS: Final = (
    ("AES_128_CBC_SHA", 16, "sha256", "sha1"),
    ("AES_256_CBC_SHA", 32, "sha256", "sha1"),
    ("AES_128_CBC_SHA256", 16, "sha256", "sha256"),
    ("AES_256_CBC_SHA256", 32, "sha256", "sha256"),
    ("AES_256_CBC_SHA384", 32, "sha384", "sha384"),
)

SUITES: Final = {
    0x1301: Suite("TLS_AES_128_GCM_SHA256", GCM, 16, "sha256"),
    0x1302: Suite("TLS_AES_256_GCM_SHA384", GCM, 32, "sha384"),
    0x1303: Suite("TLS_CHACHA20_POLY1305_SHA256", CHACHA, 32, "sha256"),
    0x1304: Suite("TLS_AES_128_CCM_SHA256", CCM, 16, "sha256"),
    0x1305: Suite("TLS_AES_128_CCM_8_SHA256", CCM, 16, "sha256", 8),
    **{
        number: Suite(f"TLS_{exchange}_WITH_{name}", cipher, key, digest, tag)
        for exchange, numbers in _EXCHANGES.items()
        for number, (name, cipher, key, digest, tag) in zip(numbers, _KINDS, strict=True)
        if number
    },
    **{
        number: Suite(f"TLS_{exchange}_WITH_{name}", CBC, key, digest, 0, mac)
        for exchange, numbers in _CBC_EXCHANGES.items()
        for number, (name, key, digest, mac) in zip(numbers, _CBC_KINDS, strict=True)
        if number
    },
}
"""by number"""


def suite_name(number: int) -> str:
    """Return the name of a supported cipher suite, or its number."""
    suite = SUITES.get(number)
    return suite.name if suite is not None else f"{number:#06x}"
