"""Stored messages as JSON, written from their records: the fast way of nearly all.

The text is what `shown_message` is written as, parts included; tests hold both to the same bytes. A
body in which anything is odd, compressed or RocketMQ's own is left to it. The order of the bytes is
that of `record_layout`, the order of the fields that of `ShownMessage`.
"""

from __future__ import annotations

import zlib
from typing import Final, final

import msgspec
from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from ....json_bytes import put_hex, put_integer, put_number
from ...ids.parts import property_parts
from ...messages.counting import MAGIC_V2
from ...messages.properties import decode_properties
from ...messages.record_layout import (
    CRC_MASK,
    FIELD_ENDS,
    FIELD_STARTS,
    host_of,
    properties_crc_ok_of,
)
from ...messages.whole_record import WholeRecord
from ...sysflag import TRANSACTION_MASK, TRANSACTION_NAMES, compression_of
from ..contents import is_own
from ..custom import has_decoders
from ..messages import TEXT, text_or_base64

STORED_FORMS: Final = frozenset(("stored-messages", "stored-message"))
"""forms of bodies that are made of records"""
_ENCODER: Final = msgspec.json.Encoder()
_NO_PROPERTIES: Final[dict[str, str]] = {}
_CRC: Final[i64] = FIELD_STARTS["body_crc"]
_QUEUE_ID: Final[i64] = FIELD_STARTS["queue_id"]
_FLAG: Final[i64] = FIELD_STARTS["flag"]
_QUEUE_OFFSET: Final[i64] = FIELD_STARTS["queue_offset"]
_OFFSET: Final[i64] = FIELD_STARTS["physical_offset"]
_BORN: Final[i64] = FIELD_STARTS["born_timestamp"]
_BORN_HOST: Final[i64] = FIELD_STARTS["born_address"]
_SHORT: Final[i64] = FIELD_STARTS["store_timestamp"] - FIELD_STARTS["born_address"]
_WIDER: Final[i64] = FIELD_ENDS[1][-1] - FIELD_ENDS[0][-1]
"""bytes of a host and its port with IPv4, and how many more with IPv6"""
_SECOND: Final[i64] = MAGIC_V2
_FOUR: Final = 0xFFFFFFFF
_MASK: Final[i64] = CRC_MASK
_CLOSE: Final = 0x7D
_TRANSACTIONS: Final = {
    bits: b',"transaction":%b' % _ENCODER.encode(name) for bits, name in TRANSACTION_NAMES.items()
}
_HOSTS: Final[dict[bytes, bytes]] = {}
"""host and port as a record has them → JSON"""
_MOST_HOSTS: Final = 4096


def text_of_stored(body: bytes, near_ms: int) -> bytes | None:
    """Return the messages of a body of stored records as a list in JSON; None where one is odd,
    or there is none.

    `near_ms` is a time near that of ids of messages without a time, ms since the epoch.
    """
    if not body or has_decoders():
        return None
    texts = _StoredTexts(body, near_ms)
    return texts.text if texts.write() else None


@final
class _StoredTexts:
    """Writes the messages of one body."""

    __slots__ = ("_body", "_near_ms", "_out", "_record", "_topic", "_topic_text")

    def __init__(self, body: bytes, near_ms: int) -> None:
        self._body = body
        self._near_ms = near_ms
        self._out = BytesWriter()
        self._record = WholeRecord()
        self._topic = ""
        self._topic_text = b""

    @property
    def text(self) -> bytes:
        """What was written."""
        return self._out.getvalue()

    def write(self) -> bool:
        """Write all messages; False where one is odd."""
        body, record, out = self._body, self._record, self._out
        at: i64 = 0
        while at < len(body):
            out.write(b"," if at else b"[")
            if not record.find(body, at) or not self._write_record():
                return False
            at = record.stop
        out.write(b"]")
        return True

    def _write_record(self) -> bool:
        """Write the message of the record that was found; False where it is odd."""
        body, record, out = self._body, self._record, self._out
        at: i64 = record.at
        topic = body[record.topic_at : record.topic_stop].decode("utf-8", "replace")
        content = body[record.body_at : record.body_at + record.body_length]
        if compression_of(int(record.sys_flag)) is not None or is_own(topic, content):
            return False
        crc: i64 = i64(read_i32_be(body, at + _CRC))
        is_checked = crc != 0 or not content
        if is_checked and i64(zlib.crc32(content)) & _MASK != crc:
            return False
        properties = _NO_PROPERTIES
        if record.properties_at < record.stop:
            raw = body[record.properties_at : record.stop]
            if properties_crc_ok_of(body[at : record.stop], raw) is False:
                return False
            properties = decode_properties(raw.decode("utf-8", "replace"))
        if topic != self._topic or not self._topic_text:
            self._topic, self._topic_text = topic, _ENCODER.encode(topic)
        out.write(b'{"topic":')
        out.write(self._topic_text)
        out.write(b',"queueId":')
        put_number(out, i64(read_i32_be(body, at + _QUEUE_ID)))
        self._write_properties(properties)
        out.write(b',"flag":')
        put_number(out, i64(read_i32_be(body, at + _FLAG)))
        out.write(b',"sysFlag":')
        put_number(out, record.sys_flag)
        out.write(_TRANSACTIONS[record.sys_flag & TRANSACTION_MASK])
        self._write_places()
        out.write(b',"bodyCRC":')
        put_number(out, crc)
        out.write(b',"crcOk":true' if is_checked else b',"crcOk":null')
        out.write(b',"compression":null,"bodySize":')
        put_number(out, record.body_length)
        text, form = text_or_base64(content)
        out.write(
            b',"bodyForm":"text","body":' if form == TEXT else b',"bodyForm":"base64","body":'
        )
        out.write(_ENCODER.encode(text))
        out.write(b',"bodyTruncated":false')
        born_ms: i64 = read_i64_be(body, at + _BORN)
        parts = property_parts(properties, int(born_ms) or self._near_ms)
        if parts:
            out.write(b',"parts":')
            out.write(_ENCODER.encode(parts))
        out.append(_CLOSE)
        return True

    def _write_properties(self, properties: dict[str, str]) -> None:
        """Write the properties, after those that have a field of their own."""
        out = self._out
        out.write(b',"msgId":')
        out.write(_ENCODER.encode(properties.get("UNIQ_KEY")))
        out.write(b',"tags":')
        out.write(_ENCODER.encode(properties.get("TAGS")))
        keys = properties.get("KEYS")
        out.write(b',"keys":')
        out.write(b"[]" if keys is None else _ENCODER.encode(keys.split()))
        out.write(b',"properties":')
        out.write(_ENCODER.encode(properties))

    def _write_places(self) -> None:
        """Write when and where the message was born and stored."""
        body, record, out = self._body, self._record, self._out
        at: i64 = record.at
        stored_at: i64 = at + _BORN_HOST + _SHORT
        if record.hosts & 1:
            stored_at += _WIDER
        host_at: i64 = stored_at + 8
        reconsumed_at: i64 = host_at + _SHORT
        if record.hosts & 2:
            reconsumed_at += _WIDER
        store_host = body[host_at:reconsumed_at]
        offset: i64 = read_i64_be(body, at + _OFFSET)
        out.write(b',"bornTimestamp":')
        put_integer(out, read_i64_be(body, at + _BORN))
        out.write(b',"reconsumeTimes":')
        put_number(out, i64(read_i32_be(body, reconsumed_at)))
        out.write(b',"queueOffset":')
        put_integer(out, read_i64_be(body, at + _QUEUE_OFFSET))
        out.write(b',"commitLogOffset":')
        put_integer(out, offset)
        out.write(b',"offsetMsgId":"')
        out.write(store_host.hex().upper().encode())
        put_hex(out, body, at + _OFFSET)
        out.write(b'","bornHost":')
        out.write(_host_text(body[at + _BORN_HOST : stored_at]))
        out.write(b',"storeTimestamp":')
        put_integer(out, read_i64_be(body, stored_at))
        out.write(b',"storeHost":')
        out.write(_host_text(store_host))
        out.write(b',"preparedTransactionOffset":')
        put_integer(out, read_i64_be(body, reconsumed_at + 4))
        out.write(b',"storeSize":')
        put_number(out, record.stop - at)
        second = i64(read_i32_be(body, at + 4)) & _FOUR == _SECOND
        out.write(b',"version":2' if second else b',"version":1')


def _host_text(host: bytes) -> bytes:
    """Return a host of a record as JSON."""
    text = _HOSTS.get(host)
    if text is None:
        if len(_HOSTS) >= _MOST_HOSTS:
            _HOSTS.clear()
        port = int.from_bytes(host[-4:], "big", signed=True)
        text = _HOSTS[host] = _ENCODER.encode(host_of(host[:-4], port))
    return text
