"""Read certificates: subject, issuer, validity, names.

Parsed by the package cryptography, imported on first use. Without it, and for unreadable
certificates, nothing is returned. RFC 5280.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as Parsed

MAX_CERTIFICATES: Final = 8
"""maximum certificates read of a chain"""
MAX_CERTIFICATE: Final = 64 * 1024
"""maximum bytes of a certificate"""
MAX_NAMES: Final = 32
"""maximum names of a certificate"""
_KEPT: Final = 256
"""cached certificates: servers send the same ones again and again"""
_LONGEST: Final = 255
"""maximum characters of a name"""


class Certificate(NamedTuple):
    """A parsed certificate."""

    subject: str
    issuer: str
    not_before: str
    """UTC, as 2026-11-20T10:00:00Z"""
    not_after: str
    names: tuple[str, ...]
    """names and addresses that it is valid for"""


_read: dict[bytes, Certificate | None] = {}


def certificates_of(chain: list[bytes]) -> list[Certificate]:
    """Parse the certificates of a chain, the server's own first."""
    certificates = []
    for data in chain[:MAX_CERTIFICATES]:
        digest = hashlib.sha256(data).digest()
        if digest not in _read:
            if len(_read) >= _KEPT:
                _read.clear()
            _read[digest] = _certificate_of(data)
        certificate = _read[digest]
        if certificate is None:  # what follows would seem to be the issuer of another one
            break
        certificates.append(certificate)
    return certificates


def _certificate_of(data: bytes) -> Certificate | None:
    if len(data) > MAX_CERTIFICATE:
        return None
    try:
        from cryptography import x509

        with warnings.catch_warnings():  # of captured certificates, such as serial numbers below 1
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
    except Exception:  # ValueError and the like, or a missing package
        return None


def _names_of(parsed: Parsed) -> tuple[str, ...]:
    from cryptography import x509

    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    names = []
    for name in list(extension.value)[:MAX_NAMES]:
        if isinstance(name, x509.DNSName | x509.IPAddress):
            names.append(str(name.value)[:_LONGEST])
    return tuple(names)
