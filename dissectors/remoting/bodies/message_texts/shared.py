"""What all kinds of messages share, written as JSON. Fields are in the order of `ShownMessage`."""

from __future__ import annotations

from typing import Final, final

import msgspec
from librt.strings import BytesWriter
from mypy_extensions import i64

from ....json_bytes import put_integer, put_number
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
class MessageText:
    """One message at a time; messages that follow each other often have the same topic."""

    __slots__ = ("_born_ms", "_data", "_decoded", "_is_plain", "_plain", "_topic", "_topic_text",
                 "has_own_topic")  # fmt: skip

    def __init__(self) -> None:
        self._topic = ""
        self._topic_text = b'""'
        self.has_own_topic = is_own_topic("")
        """RocketMQ itself writes messages of this topic"""
        self._plain = PlainProperties()
        self._is_plain = False
        self._data = b""
        self._decoded = _NO_PROPERTIES
        self._born_ms: i64 = 0

    def set_topic(self, name: str) -> None:
        """Set the topic of the next message."""
        if name != self._topic:
            self._topic, self._topic_text = name, ENCODER.encode(name)
            self.has_own_topic = is_own_topic(name)

    def set_properties(self, data: bytes, at: i64, stop: i64) -> None:
        """Set the properties of the next message: a range of bytes."""
        self._data = data
        self._is_plain = self._plain.find(data, at, stop)
        if not self._is_plain:
            self._decoded = decode_properties(data[at:stop].decode("utf-8", "replace"))

    def put_start(
        self,
        out: BytesWriter,
        queue_id: i64,
        flag: i64,
        sys_flag: i64,
        born_ms: i64,
        reconsume_times: i64,
    ) -> None:
        """Write the fields that sent and stored messages have, before their body."""
        self._born_ms = born_ms
        out.write(b'{"topic":')
        out.write(self._topic_text)
        out.write(b',"queueId":')
        put_integer(out, queue_id)
        self._put_properties(out)
        out.write(b',"flag":')
        put_integer(out, flag)
        out.write(b',"sysFlag":')
        put_integer(out, sys_flag)
        out.write(_TRANSACTIONS[sys_flag & TRANSACTION_MASK])
        out.write(b',"bornTimestamp":')
        put_integer(out, born_ms)
        out.write(b',"reconsumeTimes":')
        put_integer(out, reconsume_times)

    def _put_properties(self, out: BytesWriter) -> None:
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

    def put_end(self, out: BytesWriter, content: bytes, near_ms: i64) -> None:
        """Write an uncompressed body, and the parts of the properties.

        `near_ms` is a time near that of an id in a message without a time of creation.
        """
        _put_content(out, content)
        if self._born_ms:
            near_ms = self._born_ms
        self._put_parts(out, near_ms)
        out.append(CLOSE)

    def _put_parts(self, out: BytesWriter, near_ms: i64) -> None:
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


def _put_content(out: BytesWriter, content: bytes) -> None:
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
            # `word_at` pads the last word with zeros, which are stops, too.
            return stops > 0 and at + first_of(stops) >= size
        at += 7
    return True
