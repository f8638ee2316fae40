"""Rewrite headers and bodies of commands in place, keeping every length.

Rules: JSON is rewritten text by text; bytes around the texts stay. Stored messages are rewritten by
their layout, with new CRCs. Data that is not understood becomes blanks, and is counted; nothing
passes unread.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ..foreign import base64_of, hex_bytes_of, hexadecimal_of, natural_of
from ..remoting.bodies.trace import FIELD_SEPARATOR, RECORD_SEPARATOR, form_of
from ..remoting.code_sets import SENDS
from ..remoting.codes import RequestCode
from ..remoting.header_codec import BINARY_TYPE
from ..remoting.headers import shown_letters
from ..remoting.messages.batch import ITEM_HEAD
from ..remoting.messages.properties import property_of
from ..remoting.messages.record_layout import (
    CRC_ENTRY_SIZE,
    CRC_MASK,
    CRC_PROPERTY,
    FIELD_ENDS,
    FIXED,
    FIXED_PART,
    MAGIC_FILLER,
    MAGIC_V2,
    MIN_FILLER_SIZE,
    RECORD_MAGICS,
    SIZE_AND_MAGIC,
    SYS_FLAG,
    SYS_FLAG_AT,
    crc_digits,
)
from ..remoting.send_fields import V2, send_fields_of
from ..remoting.sysflag import compression_of
from ..remoting.topic_names import has_own_messages, is_trace_topic
from .pseudonyms import Pseudonyms
from .vocabulary import FIELDS, MEMBERS, MESSAGE_IDS, NAMED, REMARK_WORDS, SETTINGS, SIMPLE_MEMBERS

_JSON: Final = re.compile(
    rb'"(?P<text>(?:[^"\\]|\\.)*)"(?P<colon>\s*:)?'
    rb"|(?P<number>-?\d+)(?P<rest>(?:\.\d+)?(?:[eE][-+]?\d+)?)(?P<after>\s*:)?(?![\w.])"
    rb"|(?P<word>true|false|null)(?!\w)"
    rb"|(?P<other>[^][{}:,\s]+)",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u([0-9a-fA-F]{4})|\\(.)|(.)",
    re.DOTALL,
)
_UNPAIRED: Final = re.compile(r"\\u[dD][89a-fA-F]..")
_SHORT_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_HASHES: Final = re.compile(rb'("(?:codeSet|tagsCode)"\s*:\s*\[?)([-\d,\s]*)')
_DIGITS: Final = re.compile(r"\d+")
_LOWER_MEMBERS: Final = frozenset(name.lower() for name in MEMBERS | FIELDS)
_SETTING: Final = re.compile(r"([\w.$-]+)=(.*)")
_HEADER_NAMES: Final = NAMED | {
    *(V2.topic, V2.default_topic, V2.producer_group, V2.broker_name),
    "value",  # of a KV configuration; in bodies it is a number
}
_RECALL_HANDLE: Final = "recallHandle"
_BITS: Final = "b"
"""Member of an acknowledgement batch: base64 of bits."""
_LEAST_NUMBER: Final = 4
"""Minimum digits of a number that may be a name, in unknown fields."""
_MEASURES: Final = re.compile(r"(?:\d{1,3}|\d+\.\d+)(?: (?:\d{1,3}|\d+\.\d+))*")
"""Small numbers and decimals, such as rates: not names, even in unknown fields."""
_BATCH: Final = RequestCode.SEND_BATCH_MESSAGE
_INT: Final = struct.Struct(">i")
_SHORT: Final = struct.Struct(">H")
_FIELDS: Final = tuple(name for name, _ in FIXED_PART)
_MAGIC: Final = _FIELDS.index("magic")
_BODY_CRC: Final = _FIELDS.index("body_crc")
_BODY_LENGTH: Final = _FIELDS.index("body_length")
_ADDRESSES: Final = (_FIELDS.index("born_address"), _FIELDS.index("store_address"))
"""fields of a stored message, each address followed by its port"""


class FrameRewriter:
    """Rewrites commands; counts unreadable data."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names
        self.dropped: Counter[str] = Counter()
        """kind of data replaced by blanks → bytes"""

    def header(self, serialize_type: int, header: bytes) -> bytes:
        """Return a header of the same length."""
        if serialize_type == BINARY_TYPE:
            return self._binary_header(header)
        return self._json(header, self._header_text)

    def body(self, code: int, is_response: bool, fields: dict[str, str], body: bytes) -> bytes:
        """Return a body of the same length; `fields`: the ext fields of its header."""
        if not body:
            return body
        if not is_response and code in SENDS:
            names = send_fields_of(code)
            topic = fields.get(names.topic, "")
            if code == _BATCH or fields.get(names.batch) == "true":
                return self._batch(topic, body)
            return self._message_body(topic, _number(fields.get(names.sys_flag, "0")), body)
        if not is_response and code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
            return self._message_body("", _number(fields.get("sysFlag", "0")), body)
        if len(body) >= 8 and SIZE_AND_MAGIC.unpack_from(body)[1] in RECORD_MAGICS:
            return self._records(body)
        if body.lstrip()[:1] in (b"{", b"["):
            is_bits = code == RequestCode.BATCH_ACK_MESSAGE and not is_response
            return self.json_body(body, self._batch_ack_text if is_bits else self._body_text)
        settings = self._settings(body)
        if settings is not None:
            return settings
        return self.blank("bodies that are neither JSON nor messages", body)

    def _settings(self, body: bytes) -> bytes | None:
        """Rewrite lines of `name=value`; return None for anything else."""
        lines = body.decode("utf-8", "replace").split("\n")
        matches = [_SETTING.fullmatch(line) for line in lines if line]
        if not all(matches):
            return None

        def changed(text: str) -> str:
            return _SETTING.sub(lambda match: self._setting(match[1], match[2]), text)

        return self.changed(body, lambda text: "\n".join(map(changed, text.split("\n"))))

    def _setting(self, name: str, value: str) -> str:
        if _is_secret(name):
            return f"{name}={'x' * len(value.encode())}"
        shown = name if name in REMARK_WORDS or name in SETTINGS else self._names.name(name)
        is_name = name in NAMED
        return f"{shown}={self._names.name(value, name) if is_name else self._names.value(value)}"

    def blank(self, what: str, data: bytes) -> bytes:
        """Return blanks for data that is not understood, and count it."""
        self.dropped[what] += len(data)
        return b" " * len(data)

    def json_body(
        self, body: bytes, change: Callable[[str, str | None], str] | None = None
    ) -> bytes:
        """Rewrite a JSON body: texts, and hash codes of tags."""
        whole = self._json(body, change or self._body_text)
        return _HASHES.sub(lambda found: found[1] + self._hashes(found[2]), whole)

    def properties(self, text: str) -> str:
        """Rewrite the properties of a message."""
        return "\x02".join(map(self._property, text.split("\x02")))

    # -- headers ----------------------------------------------------------------------------------

    def _header_text(self, text: str, name: str | None) -> str:
        if name is None:
            return text if text in FIELDS else self._names.name(text)
        return self._field(name, text)

    def _field(self, name: str, text: str) -> str:
        if _is_secret(name):
            return "x" * len(text.encode())
        if name == "remark":
            return self._names.remark(text)
        if "\x01" in text:
            return self.properties(text)
        if name in MESSAGE_IDS:
            return self._names.message_id(text)
        if name == _RECALL_HANDLE:
            return self._names.recall_handle(text)
        is_name = name in _HEADER_NAMES or name not in FIELDS
        return self._names.name(text, name) if is_name else self._names.value(text)

    def _binary_header(self, header: bytes) -> bytes:
        out = bytearray(header)
        at = 13  # after code, language, version, opaque, and flag
        try:
            (size,) = _INT.unpack_from(header, at)
            at += 4
            self._put(out, at, size, self._names.remark)
            at += size
            (size,) = _INT.unpack_from(header, at)
            at += 4
            end = at + size
            while at < end:
                (size,) = _SHORT.unpack_from(header, at)
                name = header[at + 2 : at + 2 + size].decode("utf-8", "replace")
                if name not in FIELDS:
                    self._put(out, at + 2, size, self._names.name)
                at += 2 + size
                (size,) = _INT.unpack_from(header, at)
                self._put(out, at + 4, size, partial(self._field, name))
                at += 4 + size
            if at != len(header):
                raise ValueError("more than its fields")
        except (struct.error, ValueError):
            out[at:] = self.blank("damaged headers", bytes(out[at:]))
        return bytes(out)

    def _put(self, out: bytearray, at: int, size: int, change: Callable[[str], str]) -> None:
        """Replace a text in place."""
        if size < 0 or at + size > len(out):
            raise ValueError("a length beyond the end")
        out[at : at + size] = self.changed(bytes(out[at : at + size]), change)

    def changed(self, data: bytes, change: Callable[[str], str]) -> bytes:
        """Rewrite a text; return blanks if it is not text or its length would change."""
        try:
            new = change(data.decode()).encode()
        except UnicodeError:
            return self.blank("texts that are not UTF-8", data)
        return new if len(new) == len(data) else self.blank("texts", data)

    # -- JSON -------------------------------------------------------------------------------------

    def _json(self, data: bytes, change: Callable[[str, str | None], str]) -> bytes:
        """Rewrite JSON texts with `change(text, member)`; member None: for a member name."""
        member = ""

        def changed(match: re.Match[bytes]) -> bytes:
            nonlocal member
            if match["text"] is None:
                if match["after"] is not None:
                    member = ""
                return self._bare(match, member)
            raw, colon = match["text"], match["colon"] or b""
            if colon:
                member = raw.decode("utf-8", "replace")
                # What has an object or a list is a key of a map: a topic such as `order`.
                is_key = member in SIMPLE_MEMBERS and _opens(data, match.end())
                new = self._escaped(
                    raw, self._names.name if is_key else lambda text: change(text, None)
                )
            else:
                new = self._escaped(raw, lambda text: change(text, member))
            return b'"' + new + b'"' + colon

        return _JSON.sub(changed, data)

    def _bare(self, match: re.Match[bytes], member: str) -> bytes:
        """Rewrite bytes outside JSON texts: numbers, booleans, or invalid JSON."""
        if match["word"] is not None:
            return match[0]
        number = match["number"]
        if number is None:
            return self.blank("what is not JSON in a body", match[0])
        is_known = member not in NAMED and _is_known(member)
        if _is_secret(member):
            return b"1" * len(match[0])  # still a number
        if match["rest"] or is_known or len(number) < _LEAST_NUMBER:
            return match[0]
        return self._hashes(number)

    def _escaped(self, raw: bytes, change: Callable[[str], str]) -> bytes:
        """Rewrite the value of a JSON text, keeping the escape form of each character."""
        if b"\\" not in raw:
            return self.changed(raw, change)
        try:
            parts = [_unescaped(match) for match in _ESCAPE.finditer(raw.decode())]
            new = change("".join(char for char, _ in parts))
        except UnicodeError:
            return self.blank("texts that are not UTF-8", raw)
        if len(new) != len(parts):
            return self.blank("texts", raw)
        out = []
        for char, (old, spelled) in zip(new, parts, strict=True):
            if char == old:
                out.append(spelled)
            elif len(spelled) == 12 and char > "\uffff":
                pair = char.encode("utf-16-be")
                out.append(f"\\u{pair[:2].hex()}\\u{pair[2:].hex()}")
            elif len(spelled) == 6 and spelled[1] == "u":
                out.append(f"\\u{ord(char):04x}")
            else:
                out.append(char)
        encoded = "".join(out).encode()
        return encoded if len(encoded) == len(raw) else self.blank("texts", raw)

    def _batch_ack_text(self, text: str, member: str | None) -> str:
        # Elsewhere a member or key of this name may have any text.
        is_bits = member == _BITS and base64_of(text) is not None
        return text if is_bits else self._body_text(text, member)

    def _body_text(self, text: str, member: str | None) -> str:
        if member is None:
            is_number = text.isdigit() and len(text) < _LEAST_NUMBER
            if text in MEMBERS or text in FIELDS or is_number:
                return text
            if text.lower() in _LOWER_MEMBERS and not self._names.is_seen(text):
                return text  # fastjson ignores case
            return self._names.name(text)
        if _is_secret(member):
            return "x" * len(text.encode())
        if member in MESSAGE_IDS:
            return self._names.message_id(text)
        if "\x01" in text:
            return self.properties(text)
        if text[:2] == "[ ":  # uptime of a broker, as text
            return self._names.remark(text)
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
            return self._json(text.encode(), self._body_text).decode()
        if member in NAMED:
            return self._names.name(text, member)
        if not _is_known(member) and not _MEASURES.fullmatch(text):
            return self._names.name(text)
        return self._names.value(text)

    def _hashes(self, numbers: bytes) -> bytes:
        return _DIGITS.sub(
            lambda found: self._names.number_text(found[0]), numbers.decode()
        ).encode()

    # -- messages ---------------------------------------------------------------------------------

    def _property(self, entry: str) -> str:
        name, separator, value = entry.partition("\x01")
        if not separator:
            return self._names.name(entry) if entry else entry
        known = property_of(name)
        if known is None:
            context = self._names.trace_context(name, value)
            if context is not None:
                return f"{name}{separator}{context}"
            return f"{self._names.name(name)}{separator}{self._names.name(value)}"
        return f"{name}{separator}{self.property_value(name, value)}"

    def property_value(self, name: str, value: str) -> str:
        """Rewrite the value of a property that RocketMQ itself sets or reads."""
        if name in MESSAGE_IDS:
            return self._names.message_id(value)
        return self._names.name(value, name) if name in NAMED else self._names.value(value)

    def _message_body(self, topic: str, sys_flag: int, body: bytes) -> bytes:
        kind = compression_of(sys_flag)
        if kind is not None:
            return self.compressed(kind, body)
        return self.plain_body(topic, body)

    def plain_body(self, topic: str, body: bytes) -> bytes:
        """Rewrite the body of a message of a topic."""
        if is_trace_topic(topic):
            return self.changed(body, self._trace)
        if has_own_messages(topic):
            if body[:1] in (b"{", b"["):
                return self.json_body(body)
            if not body.strip(b"0123456789,;- \n"):
                return body
        return self._names.body(body)

    def _trace(self, text: str) -> str:
        """Rewrite the contexts of the message trace."""
        return RECORD_SEPARATOR.join(map(self._trace_record, text.split(RECORD_SEPARATOR)))

    def _trace_record(self, text: str) -> str:
        kind, *values = text.split(FIELD_SEPARATOR)
        names = form_of(kind, len(values)) or ()
        # Fields beyond the known form of a context are treated as names.
        new = [self.property_value(name, value) for name, value in zip(names, values, strict=False)]
        new += map(self._names.name, values[len(names) :])
        return FIELD_SEPARATOR.join((self._names.value(kind), *new))

    def compressed(self, kind: str, body: bytes) -> bytes:
        """Return a body of the same codec and length: stored letters."""
        codec = _CODECS[kind]
        room = codec.room(len(body))
        if room < 0:
            return self.blank("compressed bodies that are too short", body)
        made = codec.encoded(self._names.body(body)[:room])
        return made if len(made) == len(body) else self.blank("compressed bodies", body)

    def _batch(self, topic: str, body: bytes) -> bytes:
        """Rewrite the messages of a batch: size, magic, CRC, flag, body, properties."""
        out = bytearray(body)
        at = 0
        try:
            while at < len(body):
                size, magic, _, _, length = ITEM_HEAD.unpack_from(body, at)
                end = at + size
                start = at + ITEM_HEAD.size
                if size < ITEM_HEAD.size or end > len(body) or not 0 <= length <= end - start:
                    raise ValueError("a length beyond the end")
                new = self.plain_body(topic, body[start : start + length])
                out[start : start + length] = new
                if magic and _INT.unpack_from(body, at + 8)[0]:
                    _INT.pack_into(out, at + 8, zlib.crc32(new) & CRC_MASK)
                (size,) = _SHORT.unpack_from(body, start + length)
                if start + length + 2 + size != end:
                    raise ValueError("more than its fields")
                self._put(out, start + length + 2, size, self.properties)
                at = end
        except (struct.error, ValueError):
            out[at:] = self.blank("damaged batches", bytes(out[at:]))
        return bytes(out)

    def _records(self, body: bytes) -> bytes:
        out = bytearray(body)
        at = 0
        while at < len(body):
            if len(body) - at < MIN_FILLER_SIZE:
                out[at:] = self.blank("damaged records", bytes(out[at:]))
                break
            size, magic = SIZE_AND_MAGIC.unpack_from(body, at)
            end = at + size
            if size < MIN_FILLER_SIZE or end > len(body):
                out[at:] = self.blank("records that are cut", bytes(out[at:]))
                break
            if magic == MAGIC_FILLER:
                out[at + 8 : end] = bytes(size - 8)
            else:
                out[at:end] = self.record(bytes(body[at:end]))
            at = end
        return bytes(out)

    def record(self, record: bytes) -> bytes:
        """Rewrite a stored message."""
        out = bytearray(record)
        try:
            (sys_flag,) = SYS_FLAG.unpack_from(record, SYS_FLAG_AT)
            hosts = sys_flag >> 4 & 3  # whether the two addresses are IPv6
            fixed, ends = FIXED[hosts], FIELD_ENDS[hosts]
            values = fixed.unpack_from(record)
            for place in _ADDRESSES:
                address, port = values[place], values[place + 1]
                out[ends[place] : ends[place + 1]] = self._names.address(address)
                _INT.pack_into(out, ends[place + 1], self._names.port(port))
            start = fixed.size
            topic_at = start + values[_BODY_LENGTH]
            if not start <= topic_at < len(record):
                raise ValueError("a length beyond the end")
            width = 2 if values[_MAGIC] == MAGIC_V2 else 1
            size = int.from_bytes(record[topic_at : topic_at + width], "big")
            topic = record[topic_at + width : topic_at + width + size].decode("utf-8", "replace")
            new = self._message_body(topic, sys_flag, record[start:topic_at])
            out[start:topic_at] = new
            if values[_BODY_CRC]:
                _INT.pack_into(out, ends[_BODY_CRC], zlib.crc32(new) & CRC_MASK)
            self._put(out, topic_at + width, size, partial(self._names.name, field="topic"))
            at = topic_at + width + size
            (size,) = _SHORT.unpack_from(record, at)
            if at + 2 + size != len(record):
                raise ValueError("more than its fields")
            self._put(out, at + 2, size, self.properties)
            properties = bytes(out[at + 2 : at + 2 + size])
            if properties[-CRC_ENTRY_SIZE:].startswith(CRC_PROPERTY.encode()):
                digits = crc_digits(bytes(out[: at + 2 + size])).encode()
                # The CRC is that of the record before its entry, which is the last property.
                place = at + 2 + size - len(digits) - 1
                out[place : place + len(digits)] = digits
        except (struct.error, ValueError):
            return record[:8] + self.blank("damaged records", record[8:])
        return bytes(out)


def _unescaped(match: re.Match[str]) -> tuple[str, str]:
    """Return the character of an escape, and how it is spelled if it stays."""
    high, low, code, short, plain = match.groups()
    spelled = match[0]
    if high:
        return (hex_bytes_of(high + low) or b"").decode("utf-16-be"), spelled
    if code and _UNPAIRED.fullmatch(spelled):
        return "\ufffd", "\\ufffd"  # half of a character: no text, but part of one
    if code:
        return chr(hexadecimal_of(code) or 0), spelled
    return (_SHORT_ESCAPES.get(short, short) if short else str(plain)), spelled


def _opens(data: bytes, at: int) -> bool:
    """Return whether an object or a list begins at a place, or after a few blanks."""
    return data[at : at + 8].lstrip().startswith((b"{", b"["))


def _is_known(member: str) -> bool:
    """Return whether the values of a member have a known meaning, such as a number."""
    return not member or member.isdigit() or member.lower() in _LOWER_MEMBERS


def _is_secret(name: str) -> bool:
    return shown_letters(name) == 0


def _number(text: str) -> int:
    return natural_of(text) or 0


class _Codec(NamedTuple):
    """How a codec stores bytes without compressing them."""

    around: int
    """bytes before and after all blocks"""
    head: int
    """bytes before each block"""
    most: int
    """maximum bytes of a block"""
    stored: Callable[[bytes, list[bytes]], bytes]
    """content, and its blocks → the encoded body"""

    def room(self, size: int) -> int:
        """Return the bytes of content in an encoded body of this size; negative: too short."""
        content = max(0, size - self.around - self.head)
        return size - self.around - self.head * max(1, -(-content // self.most))

    def encoded(self, content: bytes) -> bytes:
        """Return content in stored blocks, at least one."""
        starts = range(0, max(1, len(content)), self.most)
        return self.stored(content, [content[at : at + self.most] for at in starts])


def _deflated(blocks: list[bytes]) -> bytes:
    parts = []
    for place, block in enumerate(blocks, 1):
        size = len(block)
        parts += [struct.pack("<BHH", place == len(blocks), size, size ^ 0xFFFF), block]
    return b"".join(parts)


def _zlib(content: bytes, blocks: list[bytes]) -> bytes:
    return b"\x78\x01" + _deflated(blocks) + zlib.adler32(content).to_bytes(4, "big")


def _gzip(content: bytes, blocks: list[bytes]) -> bytes:
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # no time, no name, unknown system
    return head + _deflated(blocks) + struct.pack("<II", zlib.crc32(content), len(content))


def _lz4(_content: bytes, blocks: list[bytes]) -> bytes:
    # version 1, independent blocks, blocks of up to 4 MiB; then the checksum of these two bytes
    parts = [b"\x04\x22\x4d\x18\x60\x70\x73"]
    for block in blocks:
        parts += [struct.pack("<I", len(block) | 0x80000000), block]  # the high bit: stored
    return b"".join(parts) + bytes(4)


def _zstd(_content: bytes, blocks: list[bytes]) -> bytes:
    parts = [b"\x28\xb5\x2f\xfd\x00\x58"]  # a window of 2 MiB
    for place, block in enumerate(blocks, 1):
        head = len(block) << 3 | (place == len(blocks))  # type 0: stored; the low bit: the last
        parts += [head.to_bytes(3, "little"), block]
    return b"".join(parts)


_CODECS: Final = {
    "gzip": _Codec(18, 5, 0xFFFF, _gzip),
    "zlib": _Codec(6, 5, 0xFFFF, _zlib),
    "lz4": _Codec(11, 4, 1 << 22, _lz4),
    "zstd": _Codec(6, 3, 1 << 17, _zstd),
}
