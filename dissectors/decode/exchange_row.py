"""Exchange → ExchangeRecord: what each column of the row is taken from.

Runs once an exchange, so a message's properties are searched for the three that have a column and
not all taken apart. Header names are those of RocketMQ; the V2 send header's one-letter names are
in `remoting.headers`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from .conversation import Pdu
from .conversation_row import conversation_end
from .exchange import Exchange, names_of
from .record import ExchangeRecord
from .remoting.codes import RequestCode
from .remoting.command import RemotingCommand
from .remoting.versions import HIGHER_VERSION, VERSIONS, version_name
from .tcp.capture import CAPTURE_SHIFT

SEND_MESSAGE: Final = int(RequestCode.SEND_MESSAGE)
SEND_MESSAGE_V2: Final = int(RequestCode.SEND_MESSAGE_V2)
SEND_BATCH_MESSAGE: Final = int(RequestCode.SEND_BATCH_MESSAGE)
SEND_REPLY_MESSAGE: Final = int(RequestCode.SEND_REPLY_MESSAGE)
SEND_REPLY_MESSAGE_V2: Final = int(RequestCode.SEND_REPLY_MESSAGE_V2)
CONSUMER_SEND_MSG_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)

V1_SENDS: Final = frozenset((SEND_MESSAGE, SEND_REPLY_MESSAGE))
V2_SENDS: Final = frozenset((SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, SEND_REPLY_MESSAGE_V2))

_NUMBER_MASK: Final = (1 << CAPTURE_SHIFT) - 1


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """The row of an exchange; `capture` is the name of the capture that completed it."""
    request = exchange.request
    response = exchange.response
    asked = request.command if request is not None else None
    answered = response.command if response is not None else None
    one_pdu = request if request is not None else response
    assert one_pdu is not None
    one = one_pdu.command
    version = one.version
    request_name, response_name = names_of(exchange)
    fields = _Fields(asked, answered)
    group = fields.group
    if group is None and request is not None:
        group = request.groups
    return ExchangeRecord(
        capture,
        exchange.conversation,
        exchange.requester,
        exchange.responder,
        exchange.status,
        _number(request),
        _number(response),
        _ts(request),
        _ts(response),
        _latency_us(request, response),
        one.opaque,
        asked.code if asked is not None else None,
        request_name,
        answered.code if answered is not None else None,
        response_name,
        _remark(asked, answered),
        one.language or None,
        version,
        VERSIONS[version] if 0 <= version <= HIGHER_VERSION else version_name(version),
        one.serialize_type,
        fields.topic,
        group,
        fields.queue_id,
        fields.broker_name,
        fields.unique_key,
        fields.keys,
        fields.tags,
        _body_bytes(request, response),
        request.frame_bytes if request is not None else None,
        response.frame_bytes if response is not None else None,
        _missing(request) + _missing(response),
        _message_count(request, response),
        fields.queue_offset,
        fields.offset_msg_id,
        _rtt_us(one_pdu),
        _end(request, response),
        _expert(request, response),
    )


def records_of(exchanges: list[Exchange], captures: list[str]) -> list[ExchangeRecord]:
    """The rows of exchanges; `captures` are the names of the run's captures."""
    records: list[ExchangeRecord] = []
    for exchange in exchanges:
        records.append(record_of(exchange, captures[settled_by(exchange) >> CAPTURE_SHIFT]))
    return records


def settled_by(exchange: Exchange) -> i64:
    """Id of the packet that an exchange is filed under: its response's, else its request's."""
    response = exchange.response
    if response is not None:
        return response.packet
    request = exchange.request
    assert request is not None
    return request.packet


class _Fields:
    """The columns that come from ext fields."""

    __slots__ = (
        "broker_name",
        "group",
        "keys",
        "offset_msg_id",
        "queue_id",
        "queue_offset",
        "tags",
        "topic",
        "unique_key",
    )

    def __init__(self, asked: RemotingCommand | None, answered: RemotingCommand | None) -> None:
        self.topic: str | None = None
        self.group: str | None = None
        self.queue_id: int | None = None
        self.broker_name: str | None = None
        self.unique_key: str | None = None
        self.keys: str | None = None
        self.tags: str | None = None
        self.queue_offset: int | None = None
        self.offset_msg_id: str | None = None
        if asked is not None:
            if asked.code in V2_SENDS:
                self._of_send_v2(asked.ext_fields)
            elif asked.code in V1_SENDS:
                self._of_send(asked.ext_fields)
            else:
                self._of_request(asked)
        if answered is not None and answered.ext_fields:
            self._of_response(answered.ext_fields)

    def _of_send_v2(self, fields: dict[str, str]) -> None:
        get = fields.get
        self.group = get("a")
        self.topic = get("b")
        self.queue_id = _int(get("e"))
        self.broker_name = get("n") or get("bname")
        self._of_properties(get("i"))

    def _of_send(self, fields: dict[str, str]) -> None:
        get = fields.get
        self.group = get("producerGroup")
        self.topic = get("topic")
        self.queue_id = _int(get("queueId"))
        self.broker_name = get("bname") or get("brokerName")
        self._of_properties(get("properties"))

    def _of_request(self, asked: RemotingCommand) -> None:
        get = asked.ext_fields.get
        self.topic = get("topic") or get("originTopic")
        self.group = get("consumerGroup") or get("group") or get("producerGroup")
        self.queue_id = _int(get("queueId"))
        self.broker_name = get("bname") or get("brokerName")
        offset = get("queueOffset") or get("commitOffset") or get("offset")
        if asked.code == CONSUMER_SEND_MSG_BACK:
            self.unique_key = get("originMsgId")
        elif asked.code == END_TRANSACTION:
            self.unique_key = get("msgId") or get("transactionId")
            offset = get("tranStateTableOffset")
        self.queue_offset = _int(offset)

    def _of_properties(self, properties: str | None) -> None:
        if properties:
            self.unique_key = property_of(properties, "UNIQ_KEY\x01")
            self.keys = property_of(properties, "KEYS\x01")
            self.tags = property_of(properties, "TAGS\x01")

    def _of_response(self, fields: dict[str, str]) -> None:
        get = fields.get
        self.offset_msg_id = get("msgId")
        if self.queue_id is None or self.offset_msg_id is not None:
            queue_id = _int(get("queueId"))
            self.queue_id = queue_id if queue_id is not None else self.queue_id
        offset = _int(get("queueOffset") or get("offset"))
        if offset is not None:
            self.queue_offset = offset


def property_of(properties: str, name: str) -> str | None:
    """The value of a property in a properties string; `name` ends in the separator 0x01."""
    at: i64 = 0
    if not properties.startswith(name):
        at = properties.find("\x02" + name)
        if at < 0:
            return None
        at += 1
    start: i64 = at + len(name)
    end: i64 = properties.find("\x02", start)
    value = properties[start:end] if end >= 0 else properties[start:]
    return value or None


def _int(text: str | None) -> int | None:
    """A 64-bit integer written in decimal, or None for anything else."""
    if text is None or len(text) > 20:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def _number(pdu: Pdu | None) -> int | None:
    return pdu.packet & _NUMBER_MASK if pdu is not None else None


def _ts(pdu: Pdu | None) -> int | None:
    return pdu.ts if pdu is not None else None


def _latency_us(request: Pdu | None, response: Pdu | None) -> int | None:
    if request is None or response is None:
        return None
    return (response.ts - request.ts) // 1000


def _remark(asked: RemotingCommand | None, answered: RemotingCommand | None) -> str | None:
    if answered is not None and answered.remark:
        return answered.remark
    return asked.remark or None if asked is not None else None


def _body_bytes(request: Pdu | None, response: Pdu | None) -> int:
    if request is not None and request.body_length:
        return request.body_length
    return response.body_length if response is not None else 0


def _missing(pdu: Pdu | None) -> i64:
    return pdu.missing if pdu is not None else 0


def _message_count(request: Pdu | None, response: Pdu | None) -> int | None:
    if request is not None:
        code = request.command.code
        if code == SEND_BATCH_MESSAGE:
            return request.message_count if request.message_count >= 0 else None
        if code in V1_SENDS or code in V2_SENDS:
            return 1
    if response is not None and response.message_count >= 0:
        return response.message_count
    return None


def _rtt_us(pdu: Pdu) -> int | None:
    rtt = pdu.direction.conversation.rtt
    return rtt // 1000 if rtt >= 0 else None


def _end(request: Pdu | None, response: Pdu | None) -> str | None:
    """How the connection of a request without answer stood when that was given up."""
    if request is None or response is not None or request.flag & 2:
        return None
    return conversation_end(request.direction.conversation)


def _expert(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds: list[str] = []
    if request is not None and request.expert is not None:
        kinds.extend([info.kind.name for info in request.expert])
    if response is not None and response.expert is not None:
        kinds.extend([info.kind.name for info in response.expert])
    return kinds
