"""The columns of a row that come from ext fields, however the headers were read.

A message's properties are searched for the three that have a column and not all taken apart. Header
names are those of RocketMQ; those of sends are in `remoting.send_fields`.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..conversations.conversation import Pdu
from ..conversations.row_header import AnswerHeader, PlainHeader, SentHeader
from ..conversations.scanned_header import SENT, ScannedHeader
from ..foreign import integer_of
from ..json_bytes import ABSENT, PLACE_END
from ..remoting.codes import RequestCode
from ..remoting.command import RemotingCommand
from ..remoting.send_fields import BROKERS, GROUPS, OFFSETS, TOPICS, first_of

CONSUMER_SEND_MSG_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)
_TEXTS: Final[dict[bytes, str]] = {}
"""names of topics, groups, brokers and tags"""
_MOST_TEXTS: Final = 4096
_LONGEST_TEXT: Final = 64
"""bytes of those that are remembered"""


@final
class RowFields:
    """The values of these columns."""

    __slots__ = (
        "broker_name",
        "group",
        "keys",
        "max_reconsume_times",
        "offset_msg_id",
        "queue_id",
        "queue_offset",
        "tags",
        "topic",
        "unique_key",
    )

    def __init__(self, request: Pdu | None, response: Pdu | None) -> None:
        self.topic: str | None = None
        self.group: str | None = None
        self.queue_id: int | None = None
        self.broker_name: str | None = None
        self.unique_key: str | None = None
        self.keys: str | None = None
        self.tags: str | None = None
        self.queue_offset: int | None = None
        self.offset_msg_id: str | None = None
        self.max_reconsume_times: int | None = None
        if request is not None:
            head = request.head
            if isinstance(head, ScannedHeader):
                self._of_scanned_request(head)
            elif isinstance(head, SentHeader):
                self._of_send_header(head)
            elif isinstance(head, PlainHeader):
                self._of_plain_header(head)
            else:
                self._of_special_request(request.command)
        if response is not None:
            answer = response.head
            if isinstance(answer, ScannedHeader):
                text = answer.text
                self._of_answer(
                    text(answer.msg_id), text(answer.queue_id), text(answer.queue_offset)
                )
            elif isinstance(answer, AnswerHeader):
                self._of_answer(answer.msg_id, answer.queue_id, answer.queue_offset)
            else:
                get = response.command.ext_fields.get
                offset = get("queueOffset") or get("offset")
                self._of_answer(get("msgId"), get("queueId"), offset)

    def _of_scanned_request(self, head: ScannedHeader) -> None:
        text = head.text
        self.group = _shared(head, head.group)
        self.topic = _shared(head, head.topic)
        self.queue_id = _int(text(head.queue_id))
        self.broker_name = _shared(head, head.broker_name)
        if head.kind == SENT:
            self.unique_key = text(head.unique_key) or None
            self.keys = text(head.keys) or None
            self.tags = _shared(head, head.tags) or None
        else:
            self.queue_offset = _int(text(head.offset))

    def _of_send_header(self, head: SentHeader) -> None:
        self.group = head.group
        self.topic = head.topic
        self.queue_id = _int(head.queue_id)
        self.broker_name = head.broker_name
        self._of_properties(head.properties)

    def _of_plain_header(self, head: PlainHeader) -> None:
        self.topic = head.topic
        self.group = head.group
        self.queue_id = _int(head.queue_id)
        self.broker_name = head.broker_name
        self.queue_offset = _int(head.offset)

    def _of_special_request(self, asked: RemotingCommand) -> None:
        get = asked.ext_fields.get
        self.topic = first_of(asked.ext_fields, TOPICS)
        self.group = first_of(asked.ext_fields, GROUPS)
        self.queue_id = _int(get("queueId"))
        self.broker_name = first_of(asked.ext_fields, BROKERS)
        offset = first_of(asked.ext_fields, OFFSETS)
        if asked.code == CONSUMER_SEND_MSG_BACK:
            self.unique_key = get("originMsgId")
            self.max_reconsume_times = _reconsume_limit(asked.ext_fields)
        elif asked.code == END_TRANSACTION:
            self.unique_key = get("msgId") or get("transactionId")
            offset = get("tranStateTableOffset")
        self.queue_offset = _int(offset)

    def _of_properties(self, properties: str | None) -> None:
        if properties:
            self.unique_key = property_of(properties, "\x02UNIQ_KEY\x01")
            self.keys = property_of(properties, "\x02KEYS\x01")
            self.tags = property_of(properties, "\x02TAGS\x01")

    def _of_answer(
        self, msg_id: str | None, queue_text: str | None, offset_text: str | None
    ) -> None:
        self.offset_msg_id = msg_id
        if queue_text is not None and (self.queue_id is None or msg_id is not None):
            queue_id = _int(queue_text)
            if queue_id is not None:
                self.queue_id = queue_id
        offset = _int(offset_text)
        if offset is not None:
            self.queue_offset = offset


def _shared(head: ScannedHeader, place: i64) -> str | None:
    """Return the value at a place, which many headers have: the text is made once, while it is
    remembered.
    """
    if place == ABSENT:
        return None
    data = head.header[place >> 32 : place & PLACE_END]
    text = _TEXTS.get(data)
    if text is None:
        text = data.decode("ascii")
        if len(data) <= _LONGEST_TEXT:
            if len(_TEXTS) >= _MOST_TEXTS:
                _TEXTS.clear()
            _TEXTS[data] = text
    return text


def _reconsume_limit(fields: dict[str, str]) -> int | None:
    """Return how often the message of a send back may be delivered again; None: not said.

    A negative delay level asks for the dead letters at once
    (AbstractSendMessageProcessor.consumerSendMsgBack).
    """
    delay = _int(fields.get("delayLevel"))
    if delay is not None and delay < 0:
        return 0
    return _int(fields.get("maxReconsumeTimes"))


def property_of(properties: str, name: str) -> str | None:
    """Return the value of a property in a text of them; `name` stands between 0x02 and 0x01."""
    start: i64 = properties.find(name)
    if properties and ord(properties[0]) == ord(name[1]) and properties.startswith(name[1:]):
        start = -1
    elif start < 0:
        return None
    start += len(name)
    end: i64 = properties.find("\x02", start)
    value = properties[start:end] if end >= 0 else properties[start:]
    return value or None


def _int(text: str | None) -> int | None:
    """Return a 64-bit integer written in decimal, or None for anything else."""
    return None if text is None else integer_of(text)
