"""Rewrite messages, metadata, and HPACK header blocks of gRPC calls, keeping every length.

Rules: fields are rewritten by the tables of `apache.rocketmq.v2`; unknown texts and bytes become
zeros, and are counted. Numbers stay, except ports. Nothing passes unread. RFC 7541.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Final

from hpack.exceptions import HPACKDecodingError
from hpack.hpack import decode_integer, encode_integer
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

from ..foreign import Unreadable
from ..grpc.call_messages import unescaped
from ..grpc.calls import METHODS_BY_PATH
from ..grpc.definition import ENUMS, Field, FieldKind
from ..grpc.tree import TABLES, Tree, decode_message, text_at, tree_at
from ..grpc.wire import BYTES, fields_of, packed, varint
from ..http2.header_blocks import Headers
from ..remoting.ids.trace_context import TRACEPARENT
from ..remoting.messages.properties import property_of
from .frames import FrameRewriter
from .pseudonyms import Pseudonyms

_MESSAGE: Final = "Message"
_SYSTEM: Final = "SystemProperties"
_ENTRY: Final = "Message.UserPropertiesEntry"
_IDS: Final = frozenset(("message_id", "transaction_id"))
_REMARKS: Final = frozenset(("message", "remark", "thread_stack_trace", "platform"))
_VERSIONS: Final = frozenset(("version", "x-mq-client-version"))
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)*(?:[-.]?(?:rc|beta|alpha|SNAPSHOT|M)[-.]?\d*)*")
_RESOURCES: Final = frozenset(("topic", "group"))
_ADDRESSES: Final = frozenset(("host", "born_host", "store_host"))
_DIGESTS: Final[dict[str, Callable[[bytes], str]]] = {
    "CRC32": lambda data: f"{zlib.crc32(data):X}",
    "MD5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest().upper(),
    "SHA1": lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest().upper(),
}
_PLAIN: Final = frozenset(
    (
        *(":method", ":scheme", ":status", "content-type", "content-length", "te", "date"),
        *("grpc-encoding", "grpc-accept-encoding", "accept-encoding", "grpc-timeout"),
        *("grpc-status", "x-mq-language", "x-mq-protocol", "x-mq-client-version"),
        *("x-mq-date-time", "user-agent"),
    )
)
"""Metadata with gRPC keywords, versions, and times."""
_KEYWORDS: Final = frozenset(
    (*ENUMS["Language"].values(), *("GO", "DOTNET", "CSHARP", "NODEJS", "GRPC", "GRPC_V2", "V2"))
)
_PLAIN_VALUE: Final = re.compile(
    r"POST|https?|application/grpc(?:\+proto)?|trailers|v?[\d.:,; -]*\w?|\d{8}T\d{6}Z"
    r"|(?:identity|deflate|gzip|,\s*)+"
)
_USER_AGENT: Final = re.compile(r"grpc-[a-z+-]{1,20}/[\w.-]*(?: grpc-c/[\w.]+)?(?: \([\w; ]*\))?")
_NAMES: Final = _PLAIN | {
    *(":authority", ":path", "authorization", "grpc-message", "x-mq-client-id", "x-mq-namespace"),
    *("x-mq-request-id", "x-mq-session-token", "cookie", "set-cookie", "proxy-authorization"),
}
_SECRETS: Final = frozenset(("x-mq-session-token", "cookie", "set-cookie", "proxy-authorization"))
_AUTHORIZATION: Final = re.compile(
    r"(?P<name>Credential=|SignedHeaders=|Signature=|Security-Token=)(?P<value>[^,\s]*)", re.I
)
_SIGNED: Final = re.compile(r"MQv2-HMAC-SHA1[\s,]*")
"""what is left of an authorization by RocketMQ's clients without these parts"""
_CUT: Final = re.compile(rb"(?P<key>[\x80-\xff][\x01-\x7f]|[\x08-\x7f])[\x80-\xff]{0,3}[\0-\x7f]")
"""key and length of a field"""
FREE: Final = frozenset(("x-mq-request-id", "authorization", *_SECRETS))
"""Metadata whose length does not matter: values may become shorter."""


class CallRewriter:
    """Rewrites the contents of calls."""

    def __init__(self, names: Pseudonyms, frames: FrameRewriter) -> None:
        self._names = names
        self._frames = frames

    def message(self, type_name: str, data: bytes) -> bytes:
        """Return a message of the same length; everything after its first hole becomes zeros."""
        tree = decode_message(type_name, data).tree if type_name == _MESSAGE else {}
        return self._message(type_name, data, "", tree)

    def _message(self, type_name: str, data: bytes, parent: str, message: Tree) -> bytes:
        """`parent`: the enclosing field; `message`: the enclosing RocketMQ message."""
        if type_name == _MESSAGE:
            message = decode_message(type_name, data).tree
        table = TABLES[type_name]
        out = bytearray()
        entry = decode_message(type_name, data).tree if type_name == _ENTRY else {}
        try:
            for number, kind, value, stop in fields_of(data):
                field = table.get(number)
                raw = data[len(out) : stop]
                if isinstance(value, int):
                    out += self._number(field, raw, value)
                    continue
                head = raw[: len(raw) - len(value)]
                if kind != BYTES:
                    is_number = field is not None and field.kind is FieldKind.FLOAT
                    new = value if is_number else self._zeros(value)
                elif field is None:
                    new = self._zeros(value)
                elif field.kind is FieldKind.MESSAGE:
                    new = self._message(field.of, value, field.name, message)
                elif field.kind is FieldKind.STRING:
                    new = self._string(type_name, field.name, parent, value, message, entry)
                elif field.kind is FieldKind.BYTES:
                    new = self._body(value, message)
                else:
                    new = value if field.many and _is_packed(value) else self._zeros(value)
                out += head + new
        except Unreadable:
            out += self._cut(table, data[len(out) :])
        return bytes(out)

    def _cut(self, table: dict[int, Field], rest: bytes) -> bytes:
        """Return key and length of a truncated field, and zeros."""
        keep = 0
        match = _CUT.match(rest)
        if match is not None:
            key = match["key"]
            number = key[0] >> 3 & 0xF | (key[1] << 4 if len(key) > 1 else 0)
            keep = match.end() if number in table else 0
        self._frames.dropped["fields of gRPC messages that are cut"] += len(rest) - keep
        return rest[:keep] + bytes(len(rest) - keep)

    def _zeros(self, data: bytes) -> bytes:
        self._frames.dropped["fields of gRPC messages that no definition has"] += len(data)
        return bytes(len(data))

    def _number(self, field: Field | None, raw: bytes, value: int) -> bytes:
        if field is not None and field.name == "port":
            new = self._names.port(value)
            # Only ports from 32768 on are replaced, by such ports: both take three bytes.
            return raw[:-3] + varint(new) if new != value else raw
        if field is not None:
            return raw
        head = 1
        while head < len(raw) and raw[head - 1] >= 0x80:
            head += 1
        size = len(raw) - head
        self._frames.dropped["fields of gRPC messages that no definition has"] += size
        return raw[:head] + b"\x80" * (size - 1) + b"\0"  # a zero of as many bytes

    def _string(
        self, type_name: str, name: str, parent: str, data: bytes, message: Tree, entry: Tree
    ) -> bytes:
        names = self._names
        if type_name == "Digest":
            return self._digest(data, message)

        def change(text: str) -> str:
            if name in _IDS:
                return names.message_id(text)
            if name in _VERSIONS and _VERSION.fullmatch(text):
                return text
            if name in _REMARKS:
                return names.remark(text)
            if name in _ADDRESSES:
                return names.value(text)
            if name == "recall_handle":
                return names.recall_handle(text)
            if name == "trace_context":
                return names.trace_context(TRACEPARENT, text) or names.name(text)
            if type_name == _ENTRY:
                return self._property(name, text, entry)
            return names.name(text, parent if parent in _RESOURCES else name)

        return self._frames.changed(data, change)

    def _property(self, member: str, text: str, entry: Tree) -> str:
        key = str(entry.get("key", ""))
        known = property_of(key) is not None
        if member == "key":
            return text if known or key == TRACEPARENT else self._names.name(text)
        if known:
            return self._frames.property_value(key, text)
        return self._names.trace_context(key, text) or self._names.name(text)

    def _digest(self, data: bytes, message: Tree) -> bytes:
        """Return the checksum of the rewritten body."""
        system = tree_at(message, "system_properties")
        make = _DIGESTS.get(text_at(system, "body_digest", "type") or "")
        body = message.get("body")
        if make is None or not isinstance(body, bytes):
            return b"0" * len(data)
        made = make(self._body(body, message)).encode()
        return made.rjust(len(data), b"0") if len(made) <= len(data) else made[: len(data)]

    def _body(self, body: bytes, message: Tree) -> bytes:
        topic = text_at(message, "topic", "name") or ""
        if text_at(message, "system_properties", "body_encoding") == "GZIP":
            return self._frames.compressed("gzip", body)
        return self._frames.plain_body(topic, body)

    # -- metadata ---------------------------------------------------------------------------------

    def header_name(self, name: str) -> str:
        """Return the rewritten name of a header."""
        known = not name or name in _NAMES or property_of(name) is not None or name == TRACEPARENT
        return name if known else self._names.name(name)

    def header(self, name: str, text: str) -> str:
        """Return the rewritten value of a header."""
        names = self._names
        if name == ":path":
            return text if text in METHODS_BY_PATH else names.name(text)
        if name in _PLAIN and _is_plain(name, text):
            return text
        if name in _VERSIONS and _VERSION.fullmatch(text):
            return text
        if name in _SECRETS:
            return "x" * len(text)
        if name == "authorization":
            if not _SIGNED.fullmatch(_AUTHORIZATION.sub("", text)):
                return "x" * len(text)  # another scheme: any part of it may be the secret
            return _AUTHORIZATION.sub(self._authorized, text)
        if name == "grpc-message":
            return self._escaped_remark(text)
        if name == ":authority":
            return text if text == "IPAuthority" else names.value(text)
        if name == "x-mq-client-id":
            return names.name(text, "clientId")
        return names.trace_context(name, text) or names.name(text)

    def _authorized(self, match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name.lower() == "credential=":
            account, slash, rest = value.partition("/")
            return name + self._names.name(account) + slash + self._names.name(rest)
        if name.lower() == "signedheaders=":
            return name + ";".join(map(self._signed, value.split(";")))
        return name + "x" * len(value)

    def _signed(self, name: str) -> str:
        """Return the name of a signed header, which may be spelled in capitals or be a prefix."""
        is_known = any(known.startswith(name.lower()) for known in _NAMES)
        return name if is_known else self._names.name(name)

    def _escaped_remark(self, text: str) -> str:
        if "%" not in text:
            return self._names.remark(text)
        new = self._names.remark(unescaped(text)).encode()
        shown = (
            chr(byte) if 0x20 <= byte < 0x7F and byte != 0x25 else f"%{byte:02X}" for byte in new
        )
        return "".join(shown)


def _is_plain(name: str, text: str) -> bool:
    """Return whether metadata with keywords has one; any other text may be a name."""
    if name == "user-agent":
        return _USER_AGENT.fullmatch(text) is not None
    if name in ("x-mq-language", "x-mq-protocol") and text in _KEYWORDS:
        return True
    return _PLAIN_VALUE.fullmatch(text) is not None


def _is_packed(data: bytes) -> bool:
    """Return whether bytes are whole numbers of a repeated field."""
    try:
        packed(data)
    except Unreadable:
        return False
    return True


_INDEXED, _ADDED, _SIZE = 0x80, 0x40, 0x20
_MOST_MORE: Final = 4
"""maximum bytes of a number after its prefix"""


class _Text:
    """A text of a block."""

    __slots__ = ("data", "free", "huffman")

    def __init__(self, data: bytes, huffman: bool, free: bool) -> None:
        self.data = data
        self.huffman = huffman
        self.free = free

    def encoded(self) -> bytes:
        data = _huffman(self.data) if self.huffman else self.data
        return _length(len(data), 0x80 if self.huffman else 0) + data

    def cut(self, over: int) -> int:
        """Shorten it by so many bytes; return the bytes that are still too many."""
        bits = [REQUEST_CODES_LENGTH[byte] if self.huffman else 8 for byte in self.data]
        whole = sum(bits)
        wanted = self._size(whole) - over
        size = len(bits)
        while size and self._size(whole) > wanted:
            size -= 1
            whole -= bits[size]
        self.data = self.data[:size]
        return max(self._size(whole) - wanted, 0)

    @staticmethod
    def _size(bits: int) -> int:
        size = (bits + 7) // 8
        return len(_length(size)) + size


def rewritten_block(
    block: bytes,
    headers: Headers,
    change: Callable[[str, str], tuple[str, str, bool]],
) -> tuple[bytes, int]:
    """Return a block with other texts, at most as long, and the number of texts cut for that.

    Representations and references stay. Table entries keep their sizes or become smaller, so every
    reference keeps its meaning. What the block becomes shorter is padding; what it becomes longer
    is cut from texts whose length does not matter.

    `headers`: the decoded headers. `change`: name and value → replacements, and whether the value
    may be cut. Raise Unreadable for an invalid block.
    """
    parts: list[bytes | _Text] = []
    at = place = 0
    while at < len(block):
        first = block[at]
        start = at
        if first & _INDEXED:
            _, at = _read(block, at, 7)  # a header of the table
            place += 1
        elif not first & _ADDED and first & _SIZE:
            _, at = _read(block, at, 5)  # a new size of the table
        else:
            # A name of the table, or 0 and a name; then a value.
            index, at = _read(block, at, 6 if first & _ADDED else 4)
            if place >= len(headers):
                raise Unreadable("a block with more headers than it decodes to")
            name, value = headers[place]
            new_name, new_value, free = change(name, value)
            parts.append(block[start:at])
            start = at
            if not index:
                at = _add(parts, block, at, None if new_name == name else new_name, False)
            at = _add(parts, block, at, None if new_value == value else new_value, free)
            place += 1
            continue
        parts.append(block[start:at])
    return _fitted(parts, len(block))


def _fitted(parts: list[bytes | _Text], size: int) -> tuple[bytes, int]:
    whole = _joined(parts)
    cut, over = 0, len(whole) - size
    if over <= 0:
        return whole, 0
    texts = [part for part in parts if isinstance(part, _Text)]
    # Cut values whose length does not matter first, then the longest ones.
    for text in sorted(texts, key=lambda text: (not text.free, -len(text.data))):
        cut += not text.free
        over = text.cut(over)
        if not over:
            break
    return _joined(parts), cut


def _joined(parts: list[bytes | _Text]) -> bytes:
    return b"".join(part.encoded() if isinstance(part, _Text) else part for part in parts)


def _huffman(data: bytes) -> bytes:
    """Return a text in HPACK's Huffman code; the library takes quadratic time for that."""
    out = bytearray()
    bits = count = 0
    for byte in data:
        size = REQUEST_CODES_LENGTH[byte]
        bits = bits << size | REQUEST_CODES[byte]
        count += size
        while count >= 8:
            count -= 8
            out.append(bits >> count & 0xFF)
        bits &= (1 << count) - 1
    if count:
        out.append(bits << (8 - count) & 0xFF | 0xFF >> count)  # padded with ones: RFC 7541, 5.2
    return bytes(out)


def _add(parts: list[bytes | _Text], block: bytes, at: int, text: str | None, free: bool) -> int:
    """Add the replacement of the text at a place (None: unchanged); return its end."""
    if at >= len(block):
        raise Unreadable("a text is missing")
    huffman = bool(block[at] & 0x80)
    size, start = _read(block, at, 7)
    stop = start + size
    if stop > len(block):
        raise Unreadable("a text that is cut")
    if text is None:
        parts.append(block[at:stop])
    else:
        parts.append(_Text(text.encode("utf-8", "replace"), huffman, free))
    return stop


def _read(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a number with a prefix of so many bits, and its end."""
    try:
        value, size = decode_integer(block[at : at + 1 + _MOST_MORE], bits)
    except HPACKDecodingError:
        raise Unreadable("a number that does not end") from None
    return value, at + size


def _length(size: int, mark: int = 0) -> bytes:
    """Return the length of a text; `mark` is the bit before it, which is set for Huffman code."""
    out = encode_integer(size, 7)
    out[0] |= mark
    return bytes(out)
