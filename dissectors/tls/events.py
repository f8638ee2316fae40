"""What a TLS session gives: plaintext, findings, and what its ends say of themselves."""

from __future__ import annotations

from typing import NamedTuple

from ..expert import ExpertKind
from .handshake import ClientHello, ServerHello


class Plaintext(NamedTuple):
    """Plaintext of one record."""

    side: int
    data: bytes
    """empty: no more comes of this side"""
    packet: int
    """id of the packet that completed the record"""
    ts: int


class TlsFinding(NamedTuple):
    """Why something is not decrypted."""

    kind: ExpertKind
    detail: str
    packet: int
    ts: int


class CertificateChain(NamedTuple):
    """The certificates that an end showed."""

    of_client: bool
    certificates: list[bytes]


class ServerExtensions(NamedTuple):
    """What a server of TLS 1.3 chose under encryption."""

    protocol: str
    early: bool
    """it takes the data that came before the handshake was done"""


class TlsAlert(NamedTuple):
    """An alert that could be read."""

    name: str


TlsEvent = ClientHello | ServerHello | CertificateChain | ServerExtensions | TlsAlert
