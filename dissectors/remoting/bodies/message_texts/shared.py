"""Parts common to all kinds of messages, written as JSON."""

from __future__ import annotations

from typing import Final, final

import msgspec
from librt.strings import BytesWriter
from mypy_extensions import i64

from ....json_bytes import put_number
from ....plain_json import CLOSE, QUOTE, first_of, stops_in, word_at
from ...ids.parts import property_parts
from ...messages.properties import decode_properties
from ...sysflag import TRANSACTION_MASK, TRANSACTION_NAMES
from ..contents import is_own_topic
from ..messages import TEXT, text_or_base64
from .plain_properties import UNIQUE_KEY, PlainProperties
from .unique_key import put_unique_key

ENCODER: Final = msgspec.json.Encoder()
_LEAST: Final = 8
"""bytes read at a time"""
_NO_PROPERTIES: Final[dict[str, str]] = {}
_TRANSACTIONS: Final = {
    bits: b',"transaction":%b' % ENCODER.encode(name) for bits, name in TRANSACTION_NAMES.items()
}


@final
class Topic:
    """Topic of one message at a time, shared by most."""

    __slots__ = ("_name", "is_own", "text")

    def __init__(self) -> None:
        self._name = ""
        self.text = b'""'
        """the topic as JSON"""
        self.is_own = is_own_topic("")
        """RocketMQ itself writes messages of this topic"""

    def set(self, name: str) -> None:
        """Set the topic of the next message."""
        if name != self._name:
            self._name, self.text, self.is_own = name, ENCODER.encode(name), is_own_topic(name)


@final
class Properties:
    """Properties of one message at a time."""

    __slots__ = ("_data", "_decoded", "_is_plain", "_plain")

    def __init__(self) -> None:
        self._plain = PlainProperties()
        self._is_plain = False
        self._data = b""
        self._decoded = _NO_PROPERTIES

    def set(self, data: bytes, at: i64, stop: i64) -> None:
        """Load the properties in a range of bytes."""
        self._data = data
        self._is_plain = self._plain.find(data, at, stop)
        if not self._is_plain:
            self._decoded = decode_properties(data[at:stop].decode("utf-8", "replace"))

    def write(self, out: BytesWriter) -> None:
        """Write the properties, except those with fields of their own."""
        if self._is_plain:
            self._plain.write(out)
            return
        properties = self._decoded
        out.write(b',"msgId":')
        out.write(ENCODER.encode(properties.get(UNIQUE_KEY)))
        out.write(b',"tags":')
        out.write(ENCODER.encode(properties.get("TAGS")))
        keys = properties.get("KEYS")
        out.write(b',"keys":')
        out.write(b"[]" if keys is None else ENCODER.encode(keys.split()))
        out.write(b',"properties":')
        out.write(ENCODER.encode(properties))

    def write_parts(self, out: BytesWriter, near_ms: i64) -> None:
        """Write the parts of the properties; `near_ms` is a time near their ids."""
        plain, properties = self._plain, self._decoded
        if self._is_plain:
            if not plain.key_end:
                return
            begin: i64 = len(out)
            out.write(b',"parts":{"UNIQ_KEY":')
            if put_unique_key(out, self._data, plain.key_at, plain.key_end, near_ms):
                out.append(CLOSE)
                return
            out.truncate(begin)
            key = self._data[plain.key_at : plain.key_end]
            properties = {UNIQUE_KEY: key.decode("ascii")}
        parts = property_parts(properties, int(near_ms))
        if parts:
            out.write(b',"parts":')
            out.write(ENCODER.encode(parts))


def put_transaction(out: BytesWriter, sys_flag: i64) -> None:
    """Write the transaction state in the bits of `SysFlag`."""
    out.write(_TRANSACTIONS[sys_flag & TRANSACTION_MASK])


def put_content(out: BytesWriter, content: bytes) -> None:
    """Write an uncompressed message body."""
    out.write(b',"compression":null,"bodySize":')
    put_number(out, len(content))
    if _is_plain(content):
        out.write(b',"bodyForm":"text","body":"')
        out.write(content)
        out.append(QUOTE)
    else:
        text, form = text_or_base64(content)
        out.write(
            b',"bodyForm":"text","body":' if form == TEXT else b',"bodyForm":"base64","body":'
        )
        out.write(ENCODER.encode(text))
    out.write(b',"bodyTruncated":false')


def _is_plain(content: bytes) -> bool:
    """Return whether bytes are ASCII that JSON writes unchanged."""
    size: i64 = len(content)
    if size < _LEAST:
        return False
    at: i64 = 0
    while at < size:
        stops: i64 = stops_in(word_at(content, at, size))
        if stops:
            return stops > 0 and at + first_of(stops) >= size
        at += 7
    return True
