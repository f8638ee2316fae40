"""Headers of which is known where their values stand: no text is made of what is only copied."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from .plain_json import FOUR
from .row_header import RowHeader

ABSENT: Final = 0
"""place of a value that is not there"""
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
    where there is no value. The names are those of SentHeader, PlainHeader and AnswerHeader.
    """

    __slots__ = (
        "asked_offset", "broker_name", "group", "header", "keys", "kind", "max_offset",
        "min_offset", "msg_id", "next_offset", "offset", "properties", "queue_id", "queue_offset",
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
        self.sys_flag: i64 = ABSENT
        self.reconsume_times: i64 = ABSENT
        self.offset: i64 = ABSENT
        self.asked_offset: i64 = ABSENT
        self.msg_id: i64 = ABSENT
        self.queue_offset: i64 = ABSENT
        self.next_offset: i64 = ABSENT
        self.min_offset: i64 = ABSENT
        self.max_offset: i64 = ABSENT
        self.suggested_broker: i64 = ABSENT

    def text(self, place: i64) -> str | None:
        """Return the value at a place; None for ABSENT."""
        if place == ABSENT:
            return None
        return self.header[place >> 32 : place & FOUR].decode("ascii")
