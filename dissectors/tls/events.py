"""Events of a TLS session: plaintext, findings, and facts about its endpoints."""

from __future__ import annotations

from typing import NamedTuple

from ..findings import FindingKind
from .handshake import ClientHello, ServerHello


class Plaintext(NamedTuple):
    """Plaintext of one record."""

    side: int
    data: bytes
    """empty: no more data from this side"""
    packet: int
    """id of the packet that completed the record"""
    ts: int


class TlsFinding(NamedTuple):
    """Why something is not decrypted."""

    kind: FindingKind
    detail: str
    packet: int
    ts: int


class CertificateChain(NamedTuple):
    """The certificate chain of one side."""

    of_client: bool
    certificates: list[bytes]


class ServerExtensions(NamedTuple):
    """Encrypted extensions of a TLS 1.3 server."""

    protocol: str
    early: bool
    """it accepts early data"""


class TlsAlert(NamedTuple):
    """A readable alert."""

    name: str


TlsEvent = ClientHello | ServerHello | CertificateChain | ServerExtensions | TlsAlert
