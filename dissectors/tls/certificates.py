"""What certificates say: who, by whom, from when to when, for which names.

The package cryptography reads them, imported with the first one. Without it, and of what it cannot
read, nothing is said. RFC 5280.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as Parsed

MAX_CERTIFICATES: Final = 8
"""certificates of a chain that are read"""
MAX_CERTIFICATE: Final = 64 * 1024
"""bytes of one that is read"""
MAX_NAMES: Final = 32
"""names of a certificate that are given"""
_KEPT: Final = 256
"""certificates whose reading is kept: servers show the same one again and again"""
_LONGEST: Final = 255
"""characters of a name"""


class Certificate(NamedTuple):
    """What one certificate says."""

    subject: str
    issuer: str
    not_before: str
    """UTC, as 2026-11-20T10:00:00Z"""
    not_after: str
    names: tuple[str, ...]
    """names and addresses that it is for"""


_read: dict[bytes, Certificate | None] = {}


def certificates_of(chain: list[bytes]) -> list[Certificate]:
    """Return what the certificates of a chain say, the server's own first."""
    found = []
    for data in chain[:MAX_CERTIFICATES]:
        digest = hashlib.sha256(data).digest()
        if digest not in _read:
            if len(_read) >= _KEPT:
                _read.clear()
            _read[digest] = _certificate_of(data)
        one = _read[digest]
        if one is None:
            break
        found.append(one)
    return found


def _certificate_of(data: bytes) -> Certificate | None:
    if len(data) > MAX_CERTIFICATE:
        return None
    try:
        from cryptography import x509

        with warnings.catch_warnings():  # of what the capture has, such as serial numbers below 1
            warnings.simplefilter("ignore")
            parsed = x509.load_der_x509_certificate(data)
        form = "%Y-%m-%dT%H:%M:%SZ"
        return Certificate(
            parsed.subject.rfc4514_string()[:_LONGEST],
            parsed.issuer.rfc4514_string()[:_LONGEST],
            parsed.not_valid_before_utc.strftime(form),
            parsed.not_valid_after_utc.strftime(form),
            _names_of(parsed),
        )
    except Exception:  # ValueError and its kin, and no package to read it
        return None


def _names_of(parsed: Parsed) -> tuple[str, ...]:
    from cryptography import x509

    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    names = []
    for one in list(extension.value)[:MAX_NAMES]:
        if isinstance(one, x509.DNSName | x509.IPAddress):
            names.append(str(one.value)[:_LONGEST])
    return tuple(names)
