"""Facts of a TLS connection, from the handshake of both ends."""

from __future__ import annotations

from collections.abc import Iterable

from ..rows import conversation_facts as facts_of
from ..rows.conversation_facts import conversation_fact
from ..tls.certificates import certificates_of
from ..tls.handshake import ClientHello, ServerHello, version_names
from ..tls.session import CertificateChain, ServerExtensions, TlsAlert, TlsEvent
from ..tls.suites import suite_name


def tls_facts(events: Iterable[TlsEvent]) -> list[str]:
    """Return the facts in these events."""
    return [
        conversation_fact(name, value) for event in events for name, value in _facts(event) if value
    ]


def _facts(event: TlsEvent) -> list[tuple[str, str]]:
    """Return names and values; empty values are not facts."""
    if isinstance(event, ClientHello):
        return [
            (facts_of.TLS_OFFERED, version_names(event.versions)),
            (facts_of.TLS_NAME, event.server_name),
            (facts_of.TLS_PROTOCOLS, ",".join(event.protocols)),
            (facts_of.TLS_EARLY_DATA, "offered" if event.early else ""),
        ]
    if isinstance(event, ServerHello):
        return [
            (facts_of.TLS_CHOSEN, version_names((event.version,))),
            (facts_of.TLS_SUITE, suite_name(event.suite)),
            (facts_of.TLS_PROTOCOL, event.protocol),
            (facts_of.TLS_RESUMED, "yes" if event.resumed_13 else ""),
        ]
    if isinstance(event, ServerExtensions):
        return [
            (facts_of.TLS_PROTOCOL, event.protocol),
            (facts_of.TLS_EARLY_DATA, "accepted" if event.early else ""),
        ]
    if isinstance(event, TlsAlert):
        return [(facts_of.TLS_ALERT, event.name)]
    return _certificate_facts(event)


def _certificate_facts(chain: CertificateChain) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    certificates = certificates_of(chain.certificates)
    if chain.of_client:
        return [
            (facts_of.TLS_CLIENT_SUBJECT, certificate.subject) for certificate in certificates[:1]
        ]
    for certificate in certificates:
        facts += [
            (facts_of.TLS_SUBJECT, certificate.subject),
            (facts_of.TLS_ISSUER, certificate.issuer),
            (facts_of.TLS_NOT_BEFORE, certificate.not_before),
            (facts_of.TLS_NOT_AFTER, certificate.not_after),
            (facts_of.TLS_NAMES, ",".join(certificate.names)),
        ]
    return facts
