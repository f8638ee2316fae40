"""What the first bytes of a TLS connection say in the clear: versions, server name, alerts.

Rules: nothing raises because of what was captured; a hello that is cut says what it says up to
there. RFC 8446 (records, ClientHello, ServerHello, alerts), RFC 6066 (server name).
"""

from __future__ import annotations

from typing import Final

from ..rows.conversation_facts import (
    TLS_ALERT,
    TLS_CHOSEN,
    TLS_NAME,
    TLS_OFFERED,
    conversation_fact,
)

_ALERT: Final = 0x15
_HANDSHAKE: Final = 0x16
_CLIENT_HELLO: Final = 1
_SERVER_HELLO: Final = 2
_SERVER_NAME: Final = 0
_SUPPORTED_VERSIONS: Final = 43
_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "1.0", 0x0302: "1.1", 0x0303: "1.2", 0x0304: "1.3"}
_ALERTS: Final = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    40: "handshake_failure",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    90: "user_canceled",
    109: "missing_extension",
    112: "unrecognized_name",
    116: "certificate_required",
    120: "no_application_protocol",
}
_RECORD: Final = 5
"""bytes before the content of a record: type, version, length"""


def tls_facts(data: bytes) -> list[str]:
    """Return the facts in the first bytes of one direction of a TLS connection."""
    facts: list[str] = []
    at = 0
    while at + _RECORD < len(data):
        kind = data[at]
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        content = data[at + _RECORD : at + _RECORD + length]
        if kind == _HANDSHAKE and at == 0:
            facts.extend(_hello(content))
        elif kind == _ALERT and length == 2 and len(content) == 2:
            number = content[1]
            facts.append(conversation_fact(TLS_ALERT, _ALERTS.get(number, str(number))))
        elif kind != _HANDSHAKE:
            break  # encrypted from here on
        at += _RECORD + length
    return facts


def _hello(content: bytes) -> list[str]:
    if len(content) < 39 or content[0] not in (_CLIENT_HELLO, _SERVER_HELLO):
        return []
    version = int.from_bytes(content[4:6], "big")
    at = 39 + content[38]  # version, random, session id
    if content[0] == _SERVER_HELLO:
        chosen = [version]
        for kind, value in _extensions(content, at + 3):  # cipher suite, compression
            if kind == _SUPPORTED_VERSIONS and len(value) == 2:
                chosen = [int.from_bytes(value, "big")]
        return [conversation_fact(TLS_CHOSEN, _versions(chosen))]
    offered = [version]
    name = ""
    at += 2 + int.from_bytes(content[at : at + 2], "big")  # cipher suites
    at += 1 + (content[at] if at < len(content) else 0)  # compression methods
    for kind, value in _extensions(content, at):
        if kind == _SUPPORTED_VERSIONS:
            several = [int.from_bytes(value[i : i + 2], "big") for i in range(1, len(value) - 1, 2)]
            offered = [one for one in several if one in _NAMES] or offered
        elif kind == _SERVER_NAME and len(value) > 5:
            name = value[5:].decode("ascii", "replace")
    facts = [conversation_fact(TLS_OFFERED, _versions(offered))]
    if name and name.isprintable():
        facts.append(conversation_fact(TLS_NAME, name[:255]))
    return facts


def _extensions(content: bytes, at: int) -> list[tuple[int, bytes]]:
    """Return type and value of the extensions that are there whole."""
    found: list[tuple[int, bytes]] = []
    at += 2  # their length
    while at + 4 <= len(content):
        kind = int.from_bytes(content[at : at + 2], "big")
        length = int.from_bytes(content[at + 2 : at + 4], "big")
        value = content[at + 4 : at + 4 + length]
        if len(value) < length:
            break
        found.append((kind, value))
        at += 4 + length
    return found


def _versions(numbers: list[int]) -> str:
    return ",".join(_NAMES.get(one, f"{one:#06x}") for one in numbers)
