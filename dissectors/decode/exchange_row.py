"""Exchange → ExchangeRecord: what each column of the row is taken from.

Runs once an exchange, so a message's properties are searched for the three that have a column and
not all taken apart. Header names are those of RocketMQ; those of sends are in
`remoting.send_fields`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from ..conversations.conversation import Pdu
from ..conversations.conversation_row import conversation_end
from ..conversations.handshake import round_trip_of
from ..conversations.row_header import (
    AnswerHeader,
    PlainHeader,
    RowHeader,
    SentHeader,
    bare_header_of,
)
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..foreign import integer_of
from ..grpc.command import CallCommand
from ..remoting import code_sets, row_bodies, send_fields
from ..remoting.broker_addresses import named_address
from ..remoting.codes import RequestCode
from ..remoting.command import RemotingCommand
from ..remoting.row_facts.ext_fields import HEADER_FACTS, header_facts, pull_facts
from ..remoting.versions import HIGHER_VERSION, VERSIONS
from ..remoting.versions import version_name as name_of_version
from ..rows.record import ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import Exchange, names_of

_COUNTED: Final = row_bodies.COUNTED_REQUEST
CONSUMER_SEND_MSG_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)
REGISTER_BROKER: Final = int(RequestCode.REGISTER_BROKER)

V1_SENDS: Final = code_sets.V1_SENDS
V2_SENDS: Final = code_sets.V2_SENDS

_NUMBER_MASK: Final = (1 << CAPTURE_SHIFT) - 1
_NO_BROKERS: Final[list[str]] = []
"""shared by all rows that name none, which are nearly all"""
_NO_FACTS: Final[list[str]] = []


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of an exchange; `capture` is the name of the capture that completed it."""
    request = exchange.request
    response = exchange.response
    asked = request.head if request is not None else None
    answered = response.head if response is not None else None
    one_pdu = request if request is not None else response
    assert one_pdu is not None
    one = one_pdu.head
    version = int(one.version)
    known = 0 <= version <= HIGHER_VERSION
    if not known and isinstance(one_pdu.command, CallCommand):
        from .call_row import call_record_of

        return call_record_of(exchange, capture)
    request_name, response_name = names_of(exchange)
    version_name = VERSIONS[version] if known else name_of_version(version)
    fields = _Fields(request, response)
    if fields.group is None and request is not None:
        fields.group = request.groups
    request_packet, response_packet = _number(request), _number(response)
    request_time, response_time = _ts(request), _ts(response)
    request_code = asked.code if asked is not None else None
    response_code = answered.code if answered is not None else None
    request_bytes = request.frame_bytes if request is not None else None
    response_bytes = response.frame_bytes if response is not None else None
    missing_bytes = _missing(request) + _missing(response)
    # By position: by keyword a row takes a fifth longer. Each argument is called as its
    # field, up to a leading underscore, so that a test can hold it to the declaration.
    # fmt: off
    return ExchangeRecord(
        capture, exchange.conversation, exchange.requester, exchange.responder, exchange.status,
        request_packet, response_packet, request_time, response_time,
        _latency_us(request, response), one.opaque,
        request_code, request_name, response_code, response_name, _remark(asked, answered),
        one.language or None, version, version_name, one_pdu.serialize_type,
        fields.topic, fields.group, fields.queue_id, fields.broker_name,
        fields.unique_key, fields.keys, fields.tags,
        _body_bytes(request, response), request_bytes, response_bytes, missing_bytes,
        _message_count(request, response), fields.queue_offset, fields.offset_msg_id,
        _rtt_us(one_pdu), _end(request, response), _expert(request, response),
        fields.max_reconsume_times, _brokers(request, response), _facts(request, response),
    )
    # fmt: on


def records_of(
    exchanges: list[Exchange], captures: list[str], experts: list[ExpertInfo]
) -> list[ExchangeRecord]:
    """Return the rows of exchanges; `captures` are the names of the run's captures.

    An exchange of which a column cannot be made becomes a row without the columns that come from
    ext fields, and a finding among the `experts`.
    """
    records: list[ExchangeRecord] = []
    for exchange in exchanges:
        capture = captures[settled_by(exchange) >> CAPTURE_SHIFT]
        try:
            records.append(record_of(exchange, capture))
        except Exception as error:  # the last line of defence: one frame never ends a run
            _strip(exchange, undecoded(error), experts)
            records.append(record_of(exchange, capture))
    return records


def _strip(exchange: Exchange, detail: str, experts: list[ExpertInfo]) -> None:
    """Leave nothing of an exchange's ext fields, and say so."""
    said = False
    for pdu in (exchange.request, exchange.response):
        if pdu is not None:
            pdu.command.ext_fields = {}
            pdu.head = bare_header_of(pdu.command)
            if not said:
                experts.append(pdu.say(ExpertKind.BAD_BODY, detail))
                said = True


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
            if isinstance(head, SentHeader):
                self._of_send_header(head)
            elif isinstance(head, PlainHeader):
                self._of_plain_header(head)
            else:
                self._of_special_request(request.command)
        if response is not None:
            answer = response.head
            if isinstance(answer, AnswerHeader):
                self._of_answer(answer.msg_id, answer.queue_id, answer.queue_offset)
            else:
                get = response.command.ext_fields.get
                offset = get("queueOffset") or get("offset")
                self._of_answer(get("msgId"), get("queueId"), offset)

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
        self.topic = get("topic") or get("originTopic")
        self.group = get("consumerGroup") or get("group") or get("producerGroup")
        self.queue_id = _int(get("queueId"))
        self.broker_name = get(send_fields.RPC_BROKER_NAME) or get("brokerName")
        offset = get("queueOffset") or get("commitOffset") or get("offset")
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


def _number(pdu: Pdu | None) -> int | None:
    return pdu.packet & _NUMBER_MASK if pdu is not None else None


def _ts(pdu: Pdu | None) -> int | None:
    return pdu.ts if pdu is not None else None


def _latency_us(request: Pdu | None, response: Pdu | None) -> int | None:
    if request is None or response is None:
        return None
    return (response.ts - request.ts) // 1000


def _remark(asked: RowHeader | None, answered: RowHeader | None) -> str | None:
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
        code = request.head.code
        if code == _COUNTED:
            return request.message_count if request.message_count >= 0 else None
        if code in V1_SENDS or code in V2_SENDS:
            return 1
    if response is not None and response.message_count >= 0:
        return response.message_count
    return None


def _rtt_us(pdu: Pdu) -> int | None:
    rtt = round_trip_of(pdu.direction.conversation)
    return rtt // 1000 if rtt >= 0 else None


def _end(request: Pdu | None, response: Pdu | None) -> str | None:
    """How the connection of a request without answer stood when that was given up."""
    if request is None or response is not None or request.flag & 2:
        return None
    return conversation_end(request.direction.conversation)


def _reconsume_limit(fields: dict[str, str]) -> int | None:
    """How often the message of a send back may have been delivered again; None: it does not say.

    A negative delay level asks for the dead letters at once
    (AbstractSendMessageProcessor.consumerSendMsgBack).
    """
    delay = _int(fields.get("delayLevel"))
    if delay is not None and delay < 0:
        return 0
    return _int(fields.get("maxReconsumeTimes"))


def _brokers(request: Pdu | None, response: Pdu | None) -> list[str]:
    if request is not None and request.head.code == REGISTER_BROKER:
        fields = request.command.ext_fields
        name = fields.get("brokerName")
        address = fields.get("brokerAddr")
        return [named_address(name, address)] if name and address else _NO_BROKERS
    if response is not None and response.brokers:
        return response.brokers
    return _NO_BROKERS


def _facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    facts = _NO_FACTS
    if request is not None:
        code = request.head.code
        if code in HEADER_FACTS:
            facts = _header_facts(request, response)
        if request.facts is not None:
            facts = facts + request.facts
    if response is not None and response.facts is not None:
        facts = facts + response.facts
    return facts or _NO_FACTS


def _header_facts(request: Pdu, response: Pdu | None) -> list[str]:
    """Return the facts in both headers; most are told without decoding them whole."""
    asked = request.head
    if response is None:
        return header_facts(asked.code, request.command.ext_fields, -1, None)
    answer = response.head
    if isinstance(asked, SentHeader):
        if answer.code == 0 and _is_none(asked.sys_flag) and _is_none(asked.reconsume_times):
            return _NO_FACTS
    elif isinstance(asked, PlainHeader) and isinstance(answer, AnswerHeader):
        return pull_facts(
            asked.asked_offset, answer.next_offset, answer.min_offset, answer.max_offset,
            answer.suggested_broker,
        )  # fmt: skip
    return header_facts(
        asked.code, request.command.ext_fields, answer.code, response.command.ext_fields
    )


def _is_none(flag: str | None) -> bool:
    return flag is None or flag == "0"


def _expert(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds: list[str] = []
    if request is not None and request.expert is not None:
        kinds.extend([info.kind.name for info in request.expert])
    if response is not None and response.expert is not None:
        kinds.extend([info.kind.name for info in response.expert])
    return kinds
