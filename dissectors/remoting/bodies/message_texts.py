"""Write messages as JSON from their bytes: the fast path for nearly all of them.

The text equals that of `shown_message`, parts included; tests compare the bytes. Messages that are
odd, compressed, or of RocketMQ itself are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec
from librt.strings import BytesWriter, read_i32_be, read_i64_be, read_i64_le
from mypy_extensions import i64

from ...json_bytes import copy_range, put_hex, put_integer, put_number
from ...plain_json import (
    CLOSE,
    FOUR,
    QUOTE,
    SEVEN,
    first_of,
    slot_of,
    stop_from,
    stops_in,
    table_of,
    word_at,
)
from ..ids.message_ids import (
    EARLIEST_MS,
    KEY_END,
    KEY_LENGTHS,
    LATEST_MS,
    MINUTE_MS,
    NO_ZONE,
    clock_of,
    hexadecimal_at,
    is_zone_known,
    zone_minutes,
)
from ..ids.parts import COUNTER, CREATION_TIME, PROPERTIES, UTC_OFFSET, maker_parts, property_parts
from ..messages.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR, decode_properties
from ..messages.record_layout import (
    CRC_ENTRY_SIZE,
    CRC_PROPERTY,
    FIELD_STARTS,
    MAGIC_V2,
    host_of,
    properties_crc_ok_of,
)
from ..messages.whole_record import OFFSET_AT, RIGHT, WRONG, WholeRecord
from ..sysflag import TRANSACTION_MASK, TRANSACTION_NAMES, compression_of
from .custom import has_decoders
from .messages import TEXT, is_own_topic, is_trace, number_in, text_in, text_or_base64

_ENCODER: Final = msgspec.json.Encoder()
UNIQUE_KEY: Final = "UNIQ_KEY"
_NAMED: Final = (UNIQUE_KEY, "TAGS", "KEYS")
"""names with fields of their own in a message"""
_KEY_PLACE: Final = 0
_TAGS_PLACE: Final = 1
_KEYS_PLACE: Final = 2
_TABLE: Final = table_of((*_NAMED, *(name for name in PROPERTIES if name not in _NAMED)))
_NAME_END: Final[i64] = ord(NAME_VALUE_SEPARATOR)
_VALUE_END: Final[i64] = ord(PROPERTY_SEPARATOR)
_BLANK: Final = 0x20
_MARKS: Final = 62
"""bits that mark names as seen"""
_LEAST: Final = 8
"""bytes read at a time"""
_NULL: Final = b"null"


@final
class PlainProperties:
    """Properties of one message at a time; `find` loads the next ones.

    They are plain if they are ASCII without quotes, backslashes, and control characters other than
    the two separators, if no name occurs twice, and if only UNIQ_KEY has parts (`ids.parts`).
    RocketMQ: MessageDecoder.string2messageProperties.
    """

    __slots__ = ("_begin", "_data", "_keys_at", "_keys_end", "_maybe_twice", "_seen", "_tags_at",
                 "_tags_end", "_text", "key_at", "key_end")  # fmt: skip

    def __init__(self) -> None:
        self._data = b""
        self._begin: i64 = 0
        self._text = BytesWriter()
        self._seen: i64 = 0
        self._maybe_twice = False
        self._tags_at: i64 = 0
        self._tags_end: i64 = 0
        self._keys_at: i64 = 0
        self._keys_end: i64 = 0
        self.key_at: i64 = 0
        """start of the value of UNIQ_KEY"""
        self.key_end: i64 = 0
        """its end; 0 if absent"""

    def find(self, data: bytes, at: i64, stop: i64) -> bool:
        """Find the properties in a range of bytes; return False if they are not plain."""
        self._data, self._begin = data, at
        self.key_end = 0
        self._tags_end = 0
        self._keys_end = 0
        self._seen = 0
        self._maybe_twice = False
        self._text.truncate(0)
        if at < stop and len(data) < _LEAST:
            return False
        while at < stop:
            name_end: i64 = stop_from(data, at, stop)
            if name_end < 0:
                return False
            # Entries without a name or a value are skipped, as in `decode_properties`.
            if name_end == stop or i64(data[name_end]) == _VALUE_END:
                at = name_end + 1
                continue
            if i64(data[name_end]) != _NAME_END:
                return False
            end: i64 = stop_from(data, name_end + 1, stop)
            if end < 0 or (end < stop and i64(data[end]) != _VALUE_END):
                return False
            if name_end > at and end > name_end + 1 and not self._add(at, name_end, end):
                return False
            at = end + 1
        # Different names may have the same mark: the names decide, in rare cases.
        return not self._maybe_twice or not self._has_one_twice(stop)

    def _add(self, at: i64, name_end: i64, end: i64) -> bool:
        """Add a property; return False if it is not plain."""
        data = self._data
        if at + _LEAST > len(data):  # the name search reads that many bytes
            return False
        slot: i64 = slot_of(_TABLE, data, at, name_end)
        if slot == _KEY_PLACE:
            self.key_at, self.key_end = name_end + 1, end
        elif slot == _TAGS_PLACE:
            self._tags_at, self._tags_end = name_end + 1, end
        elif slot == _KEYS_PLACE:
            self._keys_at, self._keys_end = name_end + 1, end
        elif slot > 0:
            return False
        self._mark(at, name_end - at)
        out = self._text
        out.write(b',"' if len(out) else b'"')
        copy_range(out, data, at, name_end)
        out.write(b'":"')
        copy_range(out, data, name_end + 1, end)
        out.append(QUOTE)
        return True

    def _mark(self, at: i64, length: i64) -> None:
        """Mark a name as seen: equal names have the same mark."""
        word: i64 = read_i64_le(self._data, at)
        if length < 8:
            word &= SEVEN >> ((7 - length) * 8)
        one: i64 = 1
        mark: i64 = one << ((word ^ word >> 9 ^ word >> 23 ^ word >> 41 ^ length) % _MARKS)
        if self._seen & mark:
            self._maybe_twice = True
        self._seen |= mark

    def _has_one_twice(self, stop: i64) -> bool:
        """Return whether two properties have the same name."""
        names: list[bytes] = []
        for entry in self._data[self._begin : stop].split(PROPERTY_SEPARATOR.encode()):
            name, _, value = entry.partition(NAME_VALUE_SEPARATOR.encode())
            if name and value:
                names.append(name)
        return len(set(names)) < len(names)

    def write(self, out: BytesWriter) -> None:
        """Write the properties, except those with fields of their own."""
        out.write(b',"msgId":')
        self._put(out, self.key_at, self.key_end)
        out.write(b',"tags":')
        self._put(out, self._tags_at, self._tags_end)
        out.write(b',"keys":[')
        self._put_keys(out)
        out.write(b'],"properties":{')
        out.write(self._text.getvalue())
        out.append(CLOSE)

    def _put(self, out: BytesWriter, at: i64, end: i64) -> None:
        if not end:
            out.write(_NULL)
            return
        out.append(QUOTE)
        copy_range(out, self._data, at, end)
        out.append(QUOTE)

    def _put_keys(self, out: BytesWriter) -> None:
        """Write the keys, which are separated by blanks."""
        data = self._data
        at: i64 = self._keys_at
        end: i64 = self._keys_end
        is_first = True
        while at < end:
            if i64(data[at]) == _BLANK:
                at += 1
                continue
            begin: i64 = at
            while at < end and i64(data[at]) != _BLANK:
                at += 1
            if not is_first:
                out.write(b",")
            is_first = False
            self._put(out, begin, at)


_MAKERS: Final[dict[bytes, bytes]] = {}
"""start of a client's ids → JSON up to the time; empty if invalid"""
_MOST_MAKERS: Final = 4096
_BORN: Final = b',"%b":' % CREATION_TIME.encode()
_COUNTER: Final = b',"%b":' % COUNTER.encode()
_UTC_OFFSET: Final = b',"%b":' % UTC_OFFSET.encode()
_SHORT: Final[i64] = KEY_LENGTHS[0]
_LONG: Final[i64] = KEY_LENGTHS[1]
_TAIL: Final[i64] = KEY_END
_EARLIEST: Final[i64] = EARLIEST_MS
_LATEST: Final[i64] = LATEST_MS
_MINUTE: Final[i64] = MINUTE_MS


def put_unique_key(out: BytesWriter, data: bytes, at: i64, end: i64, near_ms: i64) -> bool:
    """Write the parts of the id in a range of bytes; return False if it is not a client's id.

    `near_ms` is a time near that of the id, ms since the epoch.
    """
    size: i64 = end - at
    if (size != _SHORT and size != _LONG) or near_ms < _EARLIEST or near_ms > _LATEST:
        return False
    place: i64 = end - _TAIL
    maker = data[at:place]
    start = _MAKERS.get(maker)
    if start is None:
        start = _start_of(maker)
    number: i64 = hexadecimal_at(data, place, _TAIL)
    if number < 0 or not start:
        return False
    clock: i64 = clock_of(number >> 16, near_ms)
    minutes: i64 = zone_minutes(clock - near_ms)
    if minutes == NO_ZONE:  # the id is old, or a clock is wrong: its time is taken as UTC
        minutes = 0
    out.write(start)
    put_integer(out, clock - minutes * _MINUTE)
    out.write(_COUNTER)
    put_number(out, number & 0xFFFF)
    if is_zone_known(minutes, False):
        out.write(_UTC_OFFSET)
        put_number(out, minutes)
    out.append(CLOSE)
    return True


def _start_of(maker: bytes) -> bytes:
    """Return the JSON of a client, up to the time of an id; empty if invalid."""
    parts = maker_parts(maker.decode("utf-8", "replace"))
    if len(_MAKERS) >= _MOST_MAKERS:
        _MAKERS.clear()
    start = b"" if parts is None else _ENCODER.encode(parts)[:-1] + _BORN
    _MAKERS[maker] = start
    return start


_NO_PROPERTIES: Final[dict[str, str]] = {}
_TRANSACTIONS: Final = {
    bits: b',"transaction":%b' % _ENCODER.encode(name) for bits, name in TRANSACTION_NAMES.items()
}


@final
class MessageText:
    """One message at a time, its fields in the order of `ShownMessage`.

    Messages that follow each other often have the same topic, which is encoded once.
    """

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
            self._topic, self._topic_text = name, _ENCODER.encode(name)
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
        out.write(_ENCODER.encode(properties.get(UNIQUE_KEY)))
        out.write(b',"tags":')
        out.write(_ENCODER.encode(properties.get("TAGS")))
        keys = properties.get("KEYS")
        out.write(b',"keys":')
        out.write(b"[]" if keys is None else _ENCODER.encode(keys.split()))
        out.write(b',"properties":')
        out.write(_ENCODER.encode(properties))

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
            out.write(_ENCODER.encode(parts))


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
        out.write(_ENCODER.encode(text))
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


SENT_FORM: Final = "raw-message"
"""form of a body with one message"""
_SPARE: Final[list[MessageText]] = []
"""unused instances: a list, because threads share it"""
_MOST_KEPT: Final = 64 * 1024
"""maximum characters of properties whose memory is reused"""


def text_of_sent(body: bytes, fields: Mapping[str, object], near_ms: i64) -> bytes | None:
    """Return the message of a send as a JSON list, or None if it is odd or missing.

    `fields` is the typed request header. `near_ms` is a time near that of ids without a time, ms
    since the epoch.
    """
    if not body or has_decoders():
        return None
    try:
        message = _SPARE.pop()
    except IndexError:
        message = MessageText()
    properties = text_in(fields, "properties")
    text = _text_of(message, body, fields, properties, near_ms)
    if len(properties) <= _MOST_KEPT:  # otherwise it has memory for as many bytes again
        _SPARE.append(message)
    return text


def _text_of(
    message: MessageText, body: bytes, fields: Mapping[str, object], properties: str, near_ms: i64
) -> bytes | None:
    message.set_topic(text_in(fields, "topic"))
    sys_flag = number_in(fields, "sysFlag")
    if message.has_own_topic or is_trace(body) or compression_of(sys_flag) is not None:
        return None
    try:
        raw = properties.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    message.set_properties(raw, 0, len(raw))
    out = BytesWriter()
    out.write(b"[")
    message.put_start(
        out,
        number_in(fields, "queueId"),
        number_in(fields, "flag"),
        sys_flag,
        number_in(fields, "bornTimestamp"),
        number_in(fields, "reconsumeTimes"),
    )
    message.put_end(out, body, near_ms)
    out.write(b"]")
    return out.getvalue()


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
        text = _ENCODER.encode(host_of(host[:-4], port))
        texts = _HOSTS[host] = text, host.hex().upper().encode()
    return texts
