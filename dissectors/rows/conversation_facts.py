"""Facts of a TCP connection: data for diagnosis without a column of its own.

Rules: a fact is `name=value`, as for exchanges (`remoting.row_facts`); names and formats are
declared here. Only unusual connections have facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..facts import value_in
from ..foreign import natural_of
from ..remoting.row_facts.names import FactKind
from .conversation_record import CLIENT, SERVER, ConversationRecord

TLS_OFFERED: Final = "tls_offered"
TLS_CHOSEN: Final = "tls_chosen"
TLS_NAME: Final = "tls_name"
TLS_ALERT: Final = "tls_alert"
TLS_PROTOCOLS: Final = "tls_protocols"
TLS_PROTOCOL: Final = "tls_protocol"
TLS_SUITE: Final = "tls_suite"
TLS_RESUMED: Final = "tls_resumed"
TLS_EARLY_DATA: Final = "tls_early_data"
TLS_SUBJECT: Final = "tls_subject"
TLS_ISSUER: Final = "tls_issuer"
TLS_NOT_BEFORE: Final = "tls_not_before"
TLS_NOT_AFTER: Final = "tls_not_after"
TLS_NAMES: Final = "tls_names"
TLS_CLIENT_SUBJECT: Final = "tls_client_subject"
IDLE_MS: Final = "idle_ms"
CLOSING_US: Final = "closing_us"
AFTER_FIN: Final = "after_fin"
FRAME_LENGTH: Final = "frame_length"
FIRST_BYTES: Final = "first_bytes"
STALL: Final = "stall"
LATE: Final = "late"

CONVERSATION_FACTS: Final = (
    FactKind(TLS_OFFERED, "TLS versions that the client offers", "ClientHello"),
    FactKind(TLS_NAME, "name of the server that the client asks for", "ClientHello"),
    FactKind(TLS_CHOSEN, "TLS version that the server chose", "ServerHello"),
    FactKind(TLS_PROTOCOLS, "protocols that the client offers (ALPN)", "ClientHello"),
    FactKind(TLS_PROTOCOL, "protocol that the server chose", "ServerHello, EncryptedExtensions"),
    FactKind(TLS_SUITE, "cipher suite that the server chose", "ServerHello"),
    FactKind(TLS_RESUMED, "`yes`: a TLS 1.3 session is resumed", "ServerHello"),
    FactKind(
        TLS_EARLY_DATA,
        "`offered`: the client sends data before the handshake is done; `accepted`: the server"
        " accepts this data",
        "ClientHello, EncryptedExtensions",
    ),
    FactKind(TLS_ALERT, "alert of either end, in the clear or decrypted", "TLS record"),
    FactKind(
        TLS_SUBJECT,
        "subject of a certificate of the server; this fact and the next four appear once per"
        " certificate of the chain",
        "Certificate",
    ),
    FactKind(TLS_ISSUER, "issuer of this certificate", "Certificate"),
    FactKind(TLS_NOT_BEFORE, "time from which it is valid, UTC", "Certificate"),
    FactKind(TLS_NOT_AFTER, "time until which it is valid, UTC", "Certificate"),
    FactKind(TLS_NAMES, "names and addresses that it is for", "Certificate"),
    FactKind(TLS_CLIENT_SUBJECT, "subject of the client's certificate", "Certificate"),
    FactKind(
        IDLE_MS,
        "length of a pause without payload, ms, if at least 3 s: before the first FIN or RST,"
        " before payload that an RST answers within a second, or before a segment that was"
        " retransmitted repeatedly",
        "TCP",
    ),
    FactKind(
        CLOSING_US,
        "µs from the first FIN or RST to the last packet that is not a pure ACK, where they are at"
        " least 50 ms",
        "TCP",
    ),
    FactKind(
        AFTER_FIN, "segments with payload that an end sent when the other one had sent FIN", "TCP"
    ),
    FactKind(
        FRAME_LENGTH, "declared length of a frame that is longer than any may be", "frame prefix"
    ),
    FactKind(
        FIRST_BYTES, "first bytes of the client if no protocol was recognized", "payload, hex"
    ),
    FactKind(
        STALL,
        "segment that was retransmitted repeatedly: sender (`client` or `server`), times of the"
        " first and the last retransmission (µs since the epoch), number of retransmissions,"
        " bytes of payload; one fact per segment, at most eight per sender",
        "TCP",
    ),
    FactKind(
        LATE,
        "segments that took 50 ms or more to reach the other end, according to its"
        " acknowledgements: sender (`client` or `server`), number of these segments (only one at a"
        " time is measured), lower bound of the longest delay, µs",
        "TCP",
    ),
)
"""All names, in document order."""


class Stall(NamedTuple):
    """A segment that was retransmitted repeatedly without acknowledgement."""

    sender: str
    """`client` or `server`"""
    first: int
    """time of the first retransmission, ns since the epoch; the fact has µs"""
    last: int
    """time of the last retransmission"""
    repeats: int
    size: int = 0
    """payload of the segment, bytes; 0: unknown, in logs of older releases"""


class Late(NamedTuple):
    """Segments of one end that were delivered late."""

    sender: str
    """`client` or `server`"""
    number: int
    most: int
    """lower bound of the delay of the slowest segment, ns; the fact has µs"""


_MICROSECOND: Final = 1000
_STALL_PARTS: Final = (len(Stall._fields) - 1, len(Stall._fields))
LEAST_IDLE: Final = 3_000_000_000
"""shortest recorded pause without payload, ns"""
LEAST_CLOSING: Final = 50_000_000
"""shortest recorded time from the first FIN to the last packet, ns"""


conversation_fact_in = value_in


def conversation_fact(name: str, value: object) -> str:
    """Return a fact in column form."""
    return f"{name}={value}"


def conversation_number_in(facts: Iterable[str], name: str) -> int | None:
    """Return the number in the first fact of this name, or None."""
    value = conversation_fact_in(facts, name) or ""
    return natural_of(value)


def left_at(row: ConversationRecord) -> int:
    """Return when the first end closed a connection, ns; the other may still send."""
    closing = (conversation_number_in(row.facts, CLOSING_US) or 0) * _MICROSECOND
    return max(row.end_time - closing, row.start_time)


def stall_fact(stall: Stall) -> str:
    """Return a stall in column form."""
    first, last = stall.first // _MICROSECOND, stall.last // _MICROSECOND
    return conversation_fact(STALL, f"{stall.sender} {first} {last} {stall.repeats} {stall.size}")


def _said_of_ends(row: ConversationRecord, name: str) -> Iterator[list[str]]:
    """Yield the parts of the facts of a name; the first part is the end that each is about."""
    for text in row.facts:
        found, _, value = text.partition("=")
        parts = value.split(" ")
        if found == name and parts[0] in (CLIENT, SERVER):
            yield parts


def stalls_in(row: ConversationRecord) -> list[Stall]:
    """Return the stalls of a connection, without implausible ones."""
    stalls = []
    for parts in _said_of_ends(row, STALL):
        if len(parts) not in _STALL_PARTS:
            continue
        # In logs of older releases, the size is missing.
        first, last, repeats, size = map(natural_of, [*parts[1:], "0"][:4])
        if first is None or last is None or repeats is None or size is None:
            continue
        first, last = first * _MICROSECOND, last * _MICROSECOND
        # The times of the row are exact, those of the fact are cut to microseconds.
        if row.start_time - _MICROSECOND < first <= last <= row.end_time:
            stalls.append(Stall(parts[0], first, last, repeats, size))
    return stalls


def late_fact(late: Late) -> str:
    """Return late segments in column form."""
    return conversation_fact(LATE, f"{late.sender} {late.number} {late.most // _MICROSECOND}")


def late_in(row: ConversationRecord) -> list[Late]:
    """Return the late segments of both ends of a connection."""
    result = []
    for parts in _said_of_ends(row, LATE):
        if len(parts) != len(Late._fields):
            continue
        number, most = natural_of(parts[1]), natural_of(parts[2])
        if number is not None and most is not None:
            result.append(Late(parts[0], number, most * _MICROSECOND))
    return result
