"""Sends of which a row says only what stands in both headers: the fast way of nearly all.

A send is plain if its headers were read where they stand (`ScannedHeader`), the broker has stored
its one message in the queue of a usual topic, and no property tells of a transaction or of a later
time. Any other one is left to `sends`; tests hold both ways to the same rows.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..conversations.conversation import Pdu
from ..conversations.scanned_header import ODD, SENT, ScannedHeader
from ..json_bytes import ABSENT, NOTHING, PLACE_END
from ..remoting.code_names import REQUEST_NAMES, response_name
from ..remoting.codes import ResponseCode
from ..remoting.ids.message_ids import physical_offset_at
from ..remoting.sysflag import TRANSACTION_MASK
from .seen_exchange import names_itself
from .sends import SEND_BATCH

SUCCESS: Final = response_name(ResponseCode.SUCCESS)
"""name of the code that all answers here have"""
_TRANSACTION: Final[i64] = TRANSACTION_MASK


@final
class PlainSend:
    """One plain send after another, and the numbers that are read from where they stand."""

    __slots__ = (
        "_answer", "_asked", "_is_usual", "_request", "_response", "_topic", "born_ms",
        "capture", "client", "commit_log_offset", "max_reconsume_times", "name", "packet",
        "queue_id", "queue_offset", "reconsume_times",
    )  # fmt: skip

    def __init__(self) -> None:
        self._request: Pdu | None = None
        self._response: Pdu | None = None
        self._asked: ScannedHeader | None = None
        self._answer: ScannedHeader | None = None
        self._topic = b""
        self._is_usual = False
        self.capture = ""
        """name of the capture that it is filed under"""
        self.packet: i64 = 0
        """packet of the request"""
        self.client: str | None = None
        """client id that was named on the connection"""
        self.name = ""
        """name of the request"""
        self.queue_id: i64 = NOTHING
        self.queue_offset: i64 = NOTHING
        self.born_ms: i64 = NOTHING
        """when the producer made it, ms since the epoch"""
        self.reconsume_times: i64 = NOTHING
        self.max_reconsume_times: i64 = NOTHING
        self.commit_log_offset: i64 = NOTHING

    @property
    def request(self) -> Pdu:
        """The send that was read last."""
        assert self._request is not None
        return self._request

    @property
    def response(self) -> Pdu:
        """Its answer."""
        assert self._response is not None
        return self._response

    @property
    def asked(self) -> ScannedHeader:
        """The header of the send."""
        assert self._asked is not None
        return self._asked

    @property
    def answer(self) -> ScannedHeader:
        """The header of the answer."""
        assert self._answer is not None
        return self._answer

    def read(self, request: Pdu, response: Pdu) -> bool:
        """Read a send and its answer; False where they are not plain."""
        asked, answer = request.head, response.head
        if not isinstance(asked, ScannedHeader) or not isinstance(answer, ScannedHeader):
            return False
        if asked.kind != SENT or asked.code == SEND_BATCH or request.flag & 2:
            return False
        if request.facts is not None or response.facts is not None:
            return False
        name = REQUEST_NAMES.get(asked.code)
        if name is None or not self._has_usual_topic(asked) or not _is_simple(asked, answer):
            return False
        if not self._read_numbers(asked, answer):
            return False
        self.name = name
        self._request, self._response = request, response
        self._asked, self._answer = asked, answer
        return True

    def _has_usual_topic(self, asked: ScannedHeader) -> bool:
        """Return whether the message is in the queue of a topic that it was sent to."""
        place: i64 = asked.topic
        topic = asked.header[place >> 32 : place & PLACE_END]
        if topic != self._topic:
            self._topic = topic
            self._is_usual = topic != b"" and names_itself(topic.decode("ascii"))
        return self._is_usual

    def _read_numbers(self, asked: ScannedHeader, answer: ScannedHeader) -> bool:
        """Read the numbers; False where one is not told."""
        queue_id: i64 = asked.number(asked.queue_id)
        answered: i64 = answer.number(answer.queue_id)
        offset: i64 = answer.number(answer.queue_offset)
        born: i64 = asked.number(asked.born_timestamp)
        times: i64 = asked.number(asked.reconsume_times)
        most: i64 = asked.number(asked.max_reconsume_times)
        if queue_id == ODD or answered == ODD or offset == ODD:
            return False
        if born == ODD or times == ODD or most == ODD:
            return False
        if answered != NOTHING and (queue_id == NOTHING or answer.msg_id != ABSENT):
            queue_id = answered
        self.queue_id = queue_id
        self.queue_offset = offset
        self.born_ms = born
        self.reconsume_times = times
        self.max_reconsume_times = most
        self.commit_log_offset = NOTHING
        place: i64 = answer.msg_id
        offset = physical_offset_at(answer.header, place >> 32, place & PLACE_END)
        if offset >= 0:
            self.commit_log_offset = offset
        return True


def _is_simple(asked: ScannedHeader, answer: ScannedHeader) -> bool:
    """Return whether neither flags nor properties nor the answer say more than a row repeats."""
    flags: i64 = asked.number(asked.sys_flag)
    if flags == ODD or (flags != NOTHING and flags & _TRANSACTION):
        return False
    return not asked.is_special and answer.recall_handle == ABSENT
