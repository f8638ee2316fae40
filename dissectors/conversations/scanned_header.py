"""Headers of which is known where their values stand: no text is made of what is only copied."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ..foreign import LONGEST_NUMBER
from ..json_bytes import ABSENT, NOTHING, PLACE_END
from .row_header import RowHeader

ODD: Final = NOTHING - 1
"""stands for a number that is not told here"""
_MOST_DIGITS: Final = LONGEST_NUMBER - 1
"""digits of a number that certainly fits into 64 bits"""
_ZERO: Final = 0x30
_NINE: Final = 0x39
_MINUS: Final = 0x2D
SENT: Final = 0
"""kind of header: a send"""
PLAIN: Final = 1
"""a request that is none of SENDS and SPECIAL_REQUESTS"""
ANSWER: Final = 2
"""an answer with code 0"""


@final
@mypyc_attr(acyclic=True)
class ScannedHeader(RowHeader):
    """What a header says: of ext fields where their values stand in it.

    A place is the offset of the first byte, shifted by 32, and that behind the last one; ABSENT
    where there is no value. The names are those of SentHeader, PlainHeader and AnswerHeader, and
    those that only rows of messages need.
    """

    __slots__ = (
        "asked_offset", "born_timestamp", "broker_name", "commit_offset", "group", "header",
        "is_request", "is_special", "keys", "kind", "max_offset", "max_reconsume_times",
        "min_offset", "msg_id", "next_offset", "offset", "properties", "queue_id",
        "queue_offset", "recall_handle",
        "reconsume_times", "suggested_broker", "sys_flag", "tags", "topic", "unique_key",
    )  # fmt: skip

    def __init__(self, kind: i64, code: int, header: bytes) -> None:
        super().__init__(code, 0, "", 0, None, 0)
        self.kind: i64 = kind
        """SENT, PLAIN or ANSWER"""
        self.header = header
        """the header as it was sent"""
        self.topic: i64 = ABSENT
        self.group: i64 = ABSENT
        self.queue_id: i64 = ABSENT
        self.broker_name: i64 = ABSENT
        self.properties: i64 = ABSENT
        self.unique_key: i64 = ABSENT
        """the property `UNIQ_KEY`"""
        self.keys: i64 = ABSENT
        """the property `KEYS`"""
        self.tags: i64 = ABSENT
        """the property `TAGS`"""
        self.is_request = False
        """a property joins a request and its reply"""
        self.is_special = False
        """a property tells of a transaction or of a later time"""
        self.sys_flag: i64 = ABSENT
        self.reconsume_times: i64 = ABSENT
        self.born_timestamp: i64 = ABSENT
        self.max_reconsume_times: i64 = ABSENT
        self.offset: i64 = ABSENT
        self.asked_offset: i64 = ABSENT
        self.commit_offset: i64 = ABSENT
        self.msg_id: i64 = ABSENT
        self.queue_offset: i64 = ABSENT
        self.next_offset: i64 = ABSENT
        self.min_offset: i64 = ABSENT
        self.max_offset: i64 = ABSENT
        self.suggested_broker: i64 = ABSENT
        self.recall_handle: i64 = ABSENT

    def text(self, place: i64) -> str | None:
        """Return the value at a place; None for ABSENT."""
        if place == ABSENT:
            return None
        return self.header[place >> 32 : place & PLACE_END].decode("ascii")

    def number(self, place: i64) -> i64:
        """Return the integer at a place; NOTHING for ABSENT, ODD for what is not told here."""
        if place == ABSENT:
            return NOTHING
        header = self.header
        at: i64 = place >> 32
        end: i64 = place & PLACE_END
        negative = at < end and header[at] == _MINUS
        if negative:
            at += 1
        if at == end or end - at > _MOST_DIGITS:
            return ODD
        number: i64 = 0
        while at < end:
            digit: i64 = header[at]
            if digit < _ZERO or digit > _NINE:
                return ODD
            number = number * 10 + digit - _ZERO
            at += 1
        if negative:
            number = -number
        return number
