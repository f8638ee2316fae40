"""Handshake messages out of records, and what the hellos say.

Rules: nothing raises because of what was captured; a hello that is cut says what it says up to
there. Messages nobody reads are passed over, whatever their length; one that is read is bounded.
RFC 8446 (4), RFC 5246 (7.4), RFC 6066 (server name), RFC 7301 (ALPN).
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
"""bytes of a message that is read; longer ones are passed over"""
_HEAD: Final = 4
"""bytes before the content of a message: kind and length"""

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
"""random number by which a server says that its hello asks for another one of the client"""
_RANDOM: Final = 32
_LEAST_HELLO: Final = 39
"""bytes of a hello up to the length of its session id, head included"""
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
    """What a client offers."""

    random: bytes
    session_id: bytes
    versions: tuple[int, ...]
    server_name: str
    """name of the server that it asks for; empty: none"""
    protocols: tuple[str, ...]
    """protocols of the application, ALPN"""
    early: bool
    """data comes before the handshake is done"""
    ticket: bytes = b""
    """what the server gave it to go on with a session (TLS 1.2); empty: none"""


class ServerHello(NamedTuple):
    """What a server chose."""

    random: bytes
    session_id: bytes
    version: int
    suite: int
    protocol: str
    """ALPN; empty: none"""
    resumed_13: bool
    """a key of an earlier session is taken (TLS 1.3)"""
    mac_behind: bool = False
    """with CBC, what is encrypted is proved, not the content (TLS 1.2)"""
    extended: bool = False
    """the master secret is made of the whole handshake, too (TLS 1.2)"""

    @property
    def retry(self) -> bool:
        """Whether it asks for another hello of the client."""
        return self.random == _HELLO_RETRY


class HandshakeMessage(NamedTuple):
    """One handshake message."""

    kind: int
    content: bytes
    """with its head; empty where nobody reads it"""


@final
class HandshakeReader:
    """Contents of handshake records in, messages out."""

    def __init__(self) -> None:
        self.keeps_all = False
        """contents of all messages are given"""
        self._head = bytearray()
        self._left = 0
        self._kept = False

    @property
    def held(self) -> bytes:
        """The bytes of the message that is not whole."""
        return bytes(self._head)

    def forget(self) -> None:
        """Let go of what is held."""
        self._head.clear()
        self._left = 0

    def receive(self, data: bytes) -> list[HandshakeMessage]:
        """Return the messages that are complete with this content."""
        found: list[HandshakeMessage] = []
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
                found.append(HandshakeMessage(self._head[0], content))
                self._head.clear()
        return found


def client_hello_of(content: bytes) -> ClientHello | None:
    """Return what a ClientHello, head included, offers; None where it is too short to say."""
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
        if kind == _SUPPORTED_VERSIONS:
            several = [int.from_bytes(value[i : i + 2], "big") for i in range(1, len(value) - 1, 2)]
            versions = tuple(one for one in several if one in _VERSIONS) or versions
        elif kind == _SERVER_NAME and len(value) > 5:
            name = _text(value[5:])
        elif kind == _ALPN:
            protocols = _protocols(value)
        elif kind == _EARLY_DATA:
            early = True
        elif kind == _SESSION_TICKET:
            ticket = value
    random = content[6 : 6 + _RANDOM]
    return ClientHello(random, session_id, versions, name, protocols, early, ticket)


def server_hello_of(content: bytes) -> ServerHello | None:
    """Return what a ServerHello, head included, chose; None where it is too short to say."""
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
    """Return the ticket in a message with a new one of TLS 1.2, head included."""
    length = int.from_bytes(content[_HEAD + 4 : _HEAD + 6], "big")
    return content[_HEAD + 6 : _HEAD + 6 + length]


def encrypted_premaster_of(content: bytes) -> bytes:
    """Return what a client's key exchange by RSA, head included, encrypts."""
    return content[_HEAD + 2 :]


def encrypted_extensions_of(content: bytes) -> tuple[str, bool]:
    """Return the protocol of the application that a server chose, and whether it takes early
    data.
    """
    protocol, early = "", False
    for kind, value in _extensions(content, _HEAD):
        if kind == _ALPN:
            protocol = next(iter(_protocols(value)), "")
        elif kind == _EARLY_DATA:
            early = True
    return protocol, early


def chain_of(content: bytes, version: int) -> list[bytes]:
    """Return the certificates of a Certificate message, head included, as far as they are whole."""
    at = _HEAD
    if version == TLS_1_3:
        at += 1 + (content[at] if at < len(content) else 0)  # context of a request
    at += 3  # length of all
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
    """Return the names of versions, joined by commas."""
    return ",".join(_VERSIONS.get(one, f"{one:#06x}") for one in numbers)


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


def _protocols(value: bytes) -> tuple[str, ...]:
    found: list[str] = []
    at = 2
    while at < len(value) and len(found) < _MAX_PROTOCOLS:
        end = at + 1 + value[at]
        name = _text(value[at + 1 : end])
        if name and "," not in name:
            found.append(name)
        at = end
    return tuple(found)


def _text(value: bytes) -> str:
    """Return a name; empty where it cannot be printed."""
    name = value.decode("ascii", "replace")
    return name[:_LONGEST_NAME] if name.isprintable() else ""
