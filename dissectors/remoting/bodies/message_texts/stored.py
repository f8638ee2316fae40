"""Stored messages as JSON, written from their records: the fast way of nearly all.

The text is what `shown_message` is written as, parts included; tests hold both to the same bytes. A
body in which anything is odd, compressed or RocketMQ's own is left to it. The order of the bytes is
that of `record_layout`, the order of the fields that of `ShownMessage`.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from ....json_bytes import put_hex, put_integer, put_number
from ....plain_json import CLOSE, FOUR
from ...messages.counting import MAGIC_V2
from ...messages.record_layout import (
    CRC_ENTRY_SIZE,
    CRC_PROPERTY,
    FIELD_STARTS,
    host_of,
    properties_crc_ok_of,
)
from ...messages.whole_record import OFFSET_AT, RIGHT, WRONG, WholeRecord
from ...sysflag import compression_of
from ..contents import is_trace
from ..custom import has_decoders
from .shared import ENCODER, Properties, Topic, put_content, put_transaction

STORED_FORMS: Final = frozenset(("stored-messages", "stored-message"))
"""forms of bodies that are made of records"""
_FLAG: Final[i64] = FIELD_STARTS["flag"]
_SECOND: Final[i64] = MAGIC_V2
_CRC_ENTRY: Final[i64] = CRC_ENTRY_SIZE
_CRC_NAME: Final[i64] = int.from_bytes(CRC_PROPERTY.encode(), "big")
"""of the property, which has eight bytes"""
_HOSTS: Final[dict[bytes, bytes]] = {}
"""host and port as a record has them → JSON"""
_ID_STARTS: Final[dict[bytes, bytes]] = {}
"""the same → what ids of the messages stored there begin with"""
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

    __slots__ = ("_body", "_near_ms", "_out", "_properties", "_record", "_topic")

    def __init__(self, body: bytes, near_ms: int) -> None:
        self._body = body
        self._near_ms: i64 = near_ms
        self._out = BytesWriter()
        self._record = WholeRecord()
        self._topic = Topic()
        self._properties = Properties()

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
        body, record, out, topic = self._body, self._record, self._out, self._topic
        at: i64 = record.at
        topic.set(body[record.topic_at : record.topic_stop].decode("utf-8", "replace"))
        content = body[record.body_at : record.body_at + record.body_length]
        if topic.is_own or is_trace(content) or compression_of(int(record.sys_flag)) is not None:
            return False
        record.read(body)
        crc: i64 = record.crc_of(content)
        if crc == WRONG:
            return False
        if not self._has_sound_properties():
            return False
        self._properties.set(body, record.properties_at, record.stop)
        out.write(b'{"topic":')
        out.write(topic.text)
        out.write(b',"queueId":')
        put_number(out, record.queue_id)
        self._properties.write(out)
        out.write(b',"flag":')
        put_number(out, i64(read_i32_be(body, at + _FLAG)))
        out.write(b',"sysFlag":')
        put_number(out, record.sys_flag)
        put_transaction(out, record.sys_flag)
        self._write_places()
        out.write(b',"bodyCRC":')
        put_number(out, record.body_crc)
        out.write(b',"crcOk":true' if crc == RIGHT else b',"crcOk":null')
        put_content(out, content)
        near_ms: i64 = record.born_ms
        if not near_ms:
            near_ms = self._near_ms
        self._properties.write_parts(out, near_ms)
        out.append(CLOSE)
        return True

    def _has_sound_properties(self) -> bool:
        """Return whether the properties fit their CRC, where they have one."""
        body, record = self._body, self._record
        entry: i64 = record.stop - _CRC_ENTRY
        if entry < record.properties_at or read_i64_be(body, entry) != _CRC_NAME:
            return True
        raw = body[record.properties_at : record.stop]
        return properties_crc_ok_of(body[record.at : record.stop], raw) is not False

    def _write_places(self) -> None:
        """Write when and where the message was born and stored."""
        body, record, out = self._body, self._record, self._out
        at: i64 = record.at
        store_host = body[record.store_host_at : record.store_host_stop]
        out.write(b',"bornTimestamp":')
        put_integer(out, record.born_ms)
        out.write(b',"reconsumeTimes":')
        put_number(out, record.reconsume_times)
        out.write(b',"queueOffset":')
        put_integer(out, record.queue_offset)
        out.write(b',"commitLogOffset":')
        put_integer(out, record.offset)
        out.write(b',"offsetMsgId":"')
        out.write(_id_start(store_host))
        put_hex(out, body, at + OFFSET_AT)
        out.write(b'","bornHost":')
        out.write(_host_text(body[record.born_host_at : record.stored_at]))
        out.write(b',"storeTimestamp":')
        put_integer(out, record.stored_ms)
        out.write(b',"storeHost":')
        out.write(_host_text(store_host))
        out.write(b',"preparedTransactionOffset":')
        put_integer(out, read_i64_be(body, record.store_host_stop + 4))
        out.write(b',"storeSize":')
        put_number(out, record.stop - at)
        second = i64(read_i32_be(body, at + 4)) & FOUR == _SECOND
        out.write(b',"version":2' if second else b',"version":1')


def _host_text(host: bytes) -> bytes:
    """Return a host of a record as JSON."""
    text = _HOSTS.get(host)
    if text is None:
        if len(_HOSTS) >= _MOST_HOSTS:
            _HOSTS.clear()
        port = int.from_bytes(host[-4:], "big", signed=True)
        text = _HOSTS[host] = ENCODER.encode(host_of(host[:-4], port))
    return text


def _id_start(host: bytes) -> bytes:
    """Return what ids of the messages that a host of a record stores begin with."""
    text = _ID_STARTS.get(host)
    if text is None:
        if len(_ID_STARTS) >= _MOST_HOSTS:
            _ID_STARTS.clear()
        text = _ID_STARTS[host] = host.hex().upper().encode()
    return text
