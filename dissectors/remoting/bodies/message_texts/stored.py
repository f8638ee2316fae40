"""Write stored messages as JSON from their records: the fast path for nearly all.

The text equals that of `shown_message`, parts included; tests compare the bytes. Bodies that are
odd, compressed, or of RocketMQ itself are left to it. Bytes are in the order of `record_layout`.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from ....json_bytes import put_hex, put_integer, put_number
from ....plain_json import FOUR
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
from .shared import ENCODER, MessageText

STORED_FORMS: Final = frozenset(("stored-messages", "stored-message"))
"""forms of bodies with stored records"""
_FLAG: Final[i64] = FIELD_STARTS["flag"]
_SECOND: Final[i64] = MAGIC_V2
_CRC_ENTRY: Final[i64] = CRC_ENTRY_SIZE
_CRC_NAME: Final[i64] = int.from_bytes(CRC_PROPERTY.encode(), "big")
"""name of the property, eight bytes"""
_HOSTS: Final[dict[bytes, tuple[bytes, bytes]]] = {}
"""host and port of a record → JSON, and the start of message ids of that host"""
_MOST_HOSTS: Final = 4096


def text_of_stored(body: bytes, near_ms: int) -> bytes | None:
    """Return the messages of a body of stored records as a JSON list, or None if one is odd or
    there is none.

    `near_ms` is a time near that of ids without a time, ms since the epoch.
    """
    if not body or has_decoders():
        return None
    out = BytesWriter()
    record = WholeRecord()
    message = MessageText()
    at: i64 = 0
    while at < len(body):
        out.write(b"," if at else b"[")
        if not record.find(body, at) or not _put_message(out, message, record, body, near_ms):
            return None
        at = record.stop
    out.write(b"]")
    return out.getvalue()


def _put_message(
    out: BytesWriter, message: MessageText, record: WholeRecord, body: bytes, near_ms: i64
) -> bool:
    """Write the message of the current record; return False if it is odd."""
    message.set_topic(body[record.topic_at : record.topic_stop].decode("utf-8", "replace"))
    content = body[record.body_at : record.body_at + record.body_length]
    if (
        message.has_own_topic
        or is_trace(content)
        or compression_of(int(record.sys_flag)) is not None
    ):
        return False
    record.read(body)
    crc: i64 = record.crc_of(content)
    if crc == WRONG or not _has_sound_properties(record, body):
        return False
    message.set_properties(body, record.properties_at, record.stop)
    message.put_start(
        out,
        record.queue_id,
        i64(read_i32_be(body, record.at + _FLAG)),
        record.sys_flag,
        record.born_ms,
        record.reconsume_times,
    )
    _put_places(out, record, body)
    out.write(b',"bodyCRC":')
    put_number(out, record.body_crc)
    out.write(b',"crcOk":true' if crc == RIGHT else b',"crcOk":null')
    message.put_end(out, content, near_ms)
    return True


def _has_sound_properties(record: WholeRecord, body: bytes) -> bool:
    """Return whether the properties match their CRC, if they have one."""
    entry: i64 = record.stop - _CRC_ENTRY
    if entry < record.properties_at or read_i64_be(body, entry) != _CRC_NAME:
        return True
    raw = body[record.properties_at : record.stop]
    return properties_crc_ok_of(body[record.at : record.stop], raw) is not False


def _put_places(out: BytesWriter, record: WholeRecord, body: bytes) -> None:
    """Write the places of a record, and its hosts."""
    at: i64 = record.at
    born_host, _ = _host_texts(body[record.born_host_at : record.stored_at])
    store_host, id_start = _host_texts(body[record.store_host_at : record.store_host_stop])
    out.write(b',"queueOffset":')
    put_integer(out, record.queue_offset)
    out.write(b',"commitLogOffset":')
    put_integer(out, record.offset)
    out.write(b',"offsetMsgId":"')
    out.write(id_start)
    put_hex(out, body, at + OFFSET_AT)
    out.write(b'","bornHost":')
    out.write(born_host)
    out.write(b',"storeTimestamp":')
    put_integer(out, record.stored_ms)
    out.write(b',"storeHost":')
    out.write(store_host)
    out.write(b',"preparedTransactionOffset":')
    put_integer(out, read_i64_be(body, record.store_host_stop + 4))
    out.write(b',"storeSize":')
    put_number(out, record.stop - at)
    second = i64(read_i32_be(body, at + 4)) & FOUR == _SECOND
    out.write(b',"version":2' if second else b',"version":1')


def _host_texts(host: bytes) -> tuple[bytes, bytes]:
    """Return a host of a record as JSON, and the start of message ids that it assigns."""
    texts = _HOSTS.get(host)
    if texts is None:
        if len(_HOSTS) >= _MOST_HOSTS:
            _HOSTS.clear()
        port = int.from_bytes(host[-4:], "big", signed=True)
        text = ENCODER.encode(host_of(host[:-4], port))
        texts = _HOSTS[host] = text, host.hex().upper().encode()
    return texts
