"""Write stored messages as JSON from their records: the fast path for nearly all.

The text equals that of `shown_message`, parts included; tests compare the bytes. Bodies that are
odd, compressed, or of RocketMQ itself are left to it. Bytes are in the order of `record_layout`,
fields in that of `ShownMessage`.
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
"""forms of bodies with stored records"""
_FLAG: Final[i64] = FIELD_STARTS["flag"]
_SECOND: Final[i64] = MAGIC_V2
_CRC_ENTRY: Final[i64] = CRC_ENTRY_SIZE
_CRC_NAME: Final[i64] = int.from_bytes(CRC_PROPERTY.encode(), "big")
"""name of the property, eight bytes"""
_HOSTS: Final[dict[bytes, bytes]] = {}
"""host and port of a record → JSON"""
_ID_STARTS: Final[dict[bytes, bytes]] = {}
"""host and port of a record → start of message ids of that host"""
_MOST_HOSTS: Final = 4096


def text_of_stored(body: bytes, near_ms: int) -> bytes | None:
    """Return the messages of a body of stored records as a JSON list, or None if one is odd or
    there is none.

    `near_ms` is a time near that of ids without a time, ms since the epoch.
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
        """JSON written so far."""
        return self._out.getvalue()

    def write(self) -> bool:
        """Write all messages; return False if one is odd."""
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
        """Write the message of the current record; return False if it is odd."""
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
        """Return whether the properties match their CRC, if they have one."""
        body, record = self._body, self._record
        entry: i64 = record.stop - _CRC_ENTRY
        if entry < record.properties_at or read_i64_be(body, entry) != _CRC_NAME:
            return True
        raw = body[record.properties_at : record.stop]
        return properties_crc_ok_of(body[record.at : record.stop], raw) is not False

    def _write_places(self) -> None:
        """Write times and hosts of creation and storing."""
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
    """Return the start of message ids that the host of a record assigns."""
    text = _ID_STARTS.get(host)
    if text is None:
        if len(_ID_STARTS) >= _MOST_HOSTS:
            _ID_STARTS.clear()
        text = _ID_STARTS[host] = host.hex().upper().encode()
    return text
