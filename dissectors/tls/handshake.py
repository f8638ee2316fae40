"""Handshake messages from records, and the contents of hellos.

Rules: captured bytes never raise; a truncated hello is parsed as far as it goes. Messages that
nobody reads are skipped, whatever their length; others are bounded. RFC 8446 (4), RFC 5246 (7.4),
RFC 6066 (server name), RFC 7301 (ALPN).
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
END_OF_EARLY_DATA: Final = 5
ENCRYPTED_EXTENSIONS: Final = 8
NEW_TICKET: Final = 4
CERTIFICATE: Final = 11
SERVER_HELLO_DONE: Final = 14
CLIENT_KEY: Final = 16
FINISHED: Final = 20
KEY_UPDATE: Final = 24
_READ: Final = frozenset(
    (CLIENT_HELLO, SERVER_HELLO, NEW_TICKET, ENCRYPTED_EXTENSIONS, CERTIFICATE)
)
"""messages whose content is read"""
MAX_MESSAGE: Final = 256 * 1024
"""maximum bytes of a message; longer ones are skipped"""
_HEAD: Final = 4
"""bytes of a message header: type and length"""

SSL_3: Final = 0x0300
TLS_1_0: Final = 0x0301
TLS_1_1: Final = 0x0302
TLS_1_2: Final = 0x0303
TLS_1_3: Final = 0x0304
_VERSIONS: Final = {
    SSL_3: "SSL 3.0",
    TLS_1_0: "1.0",
    TLS_1_1: "1.1",
    TLS_1_2: "1.2",
    TLS_1_3: "1.3",
}
_HELLO_RETRY: Final = 0xCF21AD74E59A6111BE1D8C021E65B891C2A211167ABB8C5E079E09E2C8A8339C.to_bytes(
    32, "big"
)
"""random value of a server hello that is a HelloRetryRequest"""
_RANDOM: Final = 32
_LEAST_HELLO: Final = 39
"""bytes of a hello up to the length of its session id, header included"""
_SERVER_NAME: Final = 0
_ALPN: Final = 16
_ENCRYPT_THEN_MAC: Final = 22
_EXTENDED_MASTER: Final = 23
_SESSION_TICKET: Final = 35
_EARLY_DATA: Final = 42
_PRE_SHARED_KEY: Final = 41
_SUPPORTED_VERSIONS: Final = 43
_LONGEST_NAME: Final = 255
_MAX_PROTOCOLS: Final = 16


class ClientHello(NamedTuple):
    """A parsed ClientHello."""

    random: bytes
    session_id: bytes
    versions: tuple[int, ...]
    server_name: str
    """requested server name, or empty"""
    protocols: tuple[str, ...]
    """application protocols, ALPN"""
    early: bool
    """early data follows"""
    ticket: bytes = b""
    """session ticket for resumption (TLS 1.2), or empty"""


class ServerHello(NamedTuple):
    """A parsed ServerHello."""

    random: bytes
    session_id: bytes
    version: int
    suite: int
    protocol: str
    """ALPN, or empty"""
    resumed_13: bool
    """a key of an earlier session is accepted (TLS 1.3)"""
    mac_behind: bool = False
    """with CBC, the MAC covers the ciphertext: encrypt-then-MAC (TLS 1.2)"""
    extended: bool = False
    """extended master secret (TLS 1.2)"""

    @property
    def retry(self) -> bool:
        """Whether it is a HelloRetryRequest."""
        return self.random == _HELLO_RETRY


class HandshakeMessage(NamedTuple):
    """One handshake message."""

    kind: int
    content: bytes
    """with its header; empty if nobody reads it"""


@final
class HandshakeReader:
    """Cuts contents of handshake records into messages."""

    def __init__(self) -> None:
        self.keeps_all = False
        """return contents of all messages"""
        self._head = bytearray()
        self._left = 0
        self._kept = False

    @property
    def held(self) -> bytes:
        """Bytes of the incomplete message."""
        return bytes(self._head)

    def forget(self) -> None:
        """Drop held bytes."""
        self._head.clear()
        self._left = 0

    def receive(self, data: bytes) -> list[HandshakeMessage]:
        """Return the messages that this content completes."""
        messages: list[HandshakeMessage] = []
        at, size = 0, len(data)
        while at < size:
            if not self._left:
                take = min(_HEAD - len(self._head), size - at)
                self._head += data[at : at + take]
                at += take
                if len(self._head) < _HEAD:
                    break
                self._left = int.from_bytes(self._head[1:_HEAD], "big")
                self._kept = self._left <= MAX_MESSAGE and (
                    self.keeps_all or self._head[0] in _READ
                )
            take = min(self._left, size - at)
            if self._kept:
                self._head += data[at : at + take]
            at += take
            self._left -= take
            if not self._left:
                content = bytes(self._head) if self._kept else b""
                messages.append(HandshakeMessage(self._head[0], content))
                self._head.clear()
        return messages


def client_hello_of(content: bytes) -> ClientHello | None:
    """Parse a ClientHello, header included, or return None if it is too short."""
    if len(content) < _LEAST_HELLO or content[0] != CLIENT_HELLO:
        return None
    at = _LEAST_HELLO + content[_LEAST_HELLO - 1]
    session_id = content[_LEAST_HELLO:at]
    at += 2 + int.from_bytes(content[at : at + 2], "big")  # cipher suites
    at += 1 + (content[at] if at < len(content) else 0)  # compression methods
    versions: tuple[int, ...] = (int.from_bytes(content[4:6], "big"),)
    name, early, ticket = "", False, b""
    protocols: tuple[str, ...] = ()
    for kind, value in _extensions(content, at):
        if kind == _SUPPORTED_VERSIONS:  # replaces the version of TLS 1.3 hellos, which says 1.2
            several = [int.from_bytes(value[i : i + 2], "big") for i in range(1, len(value) - 1, 2)]
            # Unknown ones are left out: clients add random values (GREASE, RFC 8701).
            versions = tuple(version for version in several if version in _VERSIONS) or versions
        elif kind == _SERVER_NAME and len(value) > 5:
            name = _text(value[5:])  # behind the length of the list, type, and length
        elif kind == _ALPN:
            protocols = _protocols(value)
        elif kind == _EARLY_DATA:
            early = True
        elif kind == _SESSION_TICKET:
            ticket = value
    random = content[6 : 6 + _RANDOM]
    return ClientHello(random, session_id, versions, name, protocols, early, ticket)


def server_hello_of(content: bytes) -> ServerHello | None:
    """Parse a ServerHello, header included, or return None if it is too short."""
    if len(content) < _LEAST_HELLO or content[0] != SERVER_HELLO:
        return None
    at = _LEAST_HELLO + content[_LEAST_HELLO - 1]
    session_id = content[_LEAST_HELLO:at]
    suite = int.from_bytes(content[at : at + 2], "big")
    version = int.from_bytes(content[4:6], "big")
    protocol, resumed = "", False
    extensions = _extensions(content, at + 3)  # suite, compression
    for kind, value in extensions:
        if kind == _SUPPORTED_VERSIONS and len(value) == 2:
            version = int.from_bytes(value, "big")
        elif kind == _ALPN:
            protocol = next(iter(_protocols(value)), "")
        elif kind == _PRE_SHARED_KEY:
            resumed = True
    kinds = [kind for kind, _ in extensions]
    return ServerHello(
        *(content[6 : 6 + _RANDOM], session_id, version, suite, protocol, resumed),
        *(_ENCRYPT_THEN_MAC in kinds, _EXTENDED_MASTER in kinds),
    )


def ticket_of(content: bytes) -> bytes:
    """Return the ticket of a TLS 1.2 NewSessionTicket message, header included."""
    length = int.from_bytes(content[_HEAD + 4 : _HEAD + 6], "big")
    return content[_HEAD + 6 : _HEAD + 6 + length]


def encrypted_premaster_of(content: bytes) -> bytes:
    """Return the encrypted pre-master secret of an RSA key exchange, header included."""
    return content[_HEAD + 2 :]


def encrypted_extensions_of(content: bytes) -> tuple[str, bool]:
    """Return the application protocol of a server, and whether it accepts early data."""
    protocol, early = "", False
    for kind, value in _extensions(content, _HEAD):
        if kind == _ALPN:
            protocol = next(iter(_protocols(value)), "")
        elif kind == _EARLY_DATA:
            early = True
    return protocol, early


def chain_of(content: bytes, version: int) -> list[bytes]:
    """Return the complete certificates of a Certificate message, header included."""
    at = _HEAD
    if version == TLS_1_3:
        at += 1 + (content[at] if at < len(content) else 0)  # request context
    at += 3  # total length
    chain = []
    while at + 3 < len(content):
        end = at + 3 + int.from_bytes(content[at : at + 3], "big")
        if end > len(content):
            break
        chain.append(content[at + 3 : end])
        at = end
        if version == TLS_1_3:
            at += 2 + int.from_bytes(content[at : at + 2], "big")  # extensions
    return chain


def version_names(numbers: tuple[int, ...]) -> str:
    """Return the names of versions, joined with commas."""
    return ",".join(_VERSIONS.get(one, f"{one:#06x}") for one in numbers)


def _extensions(content: bytes, at: int) -> list[tuple[int, bytes]]:
    """Return type and value of the complete extensions."""
    extensions: list[tuple[int, bytes]] = []
    at += 2  # total length
    while at + 4 <= len(content):
        kind = int.from_bytes(content[at : at + 2], "big")
        length = int.from_bytes(content[at + 2 : at + 4], "big")
        value = content[at + 4 : at + 4 + length]
        if len(value) < length:
            break
        extensions.append((kind, value))
        at += 4 + length
    return extensions


def _protocols(value: bytes) -> tuple[str, ...]:
    protocols: list[str] = []
    at = 2
    while at < len(value) and len(protocols) < _MAX_PROTOCOLS:
        end = at + 1 + value[at]
        name = _text(value[at + 1 : end])
        if name and "," not in name:  # facts join the names with commas
            protocols.append(name)
        at = end
    return tuple(protocols)


def _text(value: bytes) -> str:
    """Return a name, or an empty text if it is not printable."""
    name = value.decode("ascii", "replace")
    return name[:_LONGEST_NAME] if name.isprintable() else ""
