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
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..foreign import integer_of
from ..grpc.command import CallCommand
from ..remoting import code_sets, row_bodies, send_fields
from ..remoting.broker_addresses import named_address
from ..remoting.codes import RequestCode
from ..remoting.command import RemotingCommand
from ..remoting.row_facts.ext_fields import HEADER_FACTS, header_facts
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
# Each name in a variable of the module, which compiled code reads faster than a field.
_V1_GROUP: Final = send_fields.V1.producer_group
_V1_TOPIC: Final = send_fields.V1.topic
_V1_QUEUE: Final = send_fields.V1.queue_id
_V1_PROPERTIES: Final = send_fields.V1.properties
_V2_GROUP: Final = send_fields.V2.producer_group
_V2_TOPIC: Final = send_fields.V2.topic
_V2_QUEUE: Final = send_fields.V2.queue_id
_V2_PROPERTIES: Final = send_fields.V2.properties
_V2_BROKER: Final = send_fields.V2.broker_name
_V2_SYS_FLAG: Final = send_fields.V2.sys_flag
_V2_RECONSUMED: Final = send_fields.V2.reconsume_times
_BROKER: Final = send_fields.RPC_BROKER_NAME

_NUMBER_MASK: Final = (1 << CAPTURE_SHIFT) - 1
_NO_BROKERS: Final[list[str]] = []
"""shared by all rows that name none, which are nearly all"""
_NO_FACTS: Final[list[str]] = []


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of an exchange; `capture` is the name of the capture that completed it."""
    request = exchange.request
    response = exchange.response
    asked = request.command if request is not None else None
    answered = response.command if response is not None else None
    one_pdu = request if request is not None else response
    assert one_pdu is not None
    one = one_pdu.command
    version = one.version
    known = 0 <= version <= HIGHER_VERSION
    if not known and isinstance(one, CallCommand):
        from .call_row import call_record_of

        return call_record_of(exchange, capture)
    request_name, response_name = names_of(exchange)
    version_name = VERSIONS[version] if known else name_of_version(version)
    fields = _Fields(asked, answered)
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
        one.language or None, version, version_name, one.serialize_type,
        fields.topic, fields.group, fields.queue_id, fields.broker_name,
        fields.unique_key, fields.keys, fields.tags,
        _body_bytes(request, response), request_bytes, response_bytes, missing_bytes,
        _message_count(request, response), fields.queue_offset, fields.offset_msg_id,
        _rtt_us(one_pdu), _end(request, response), _expert(request, response),
        fields.max_reconsume_times, _brokers(asked, response), _facts(request, response),
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
        self.max_reconsume_times: int | None = None
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
        self.group = get(_V2_GROUP)
        self.topic = get(_V2_TOPIC)
        self.queue_id = _int(get(_V2_QUEUE))
        self.broker_name = get(_V2_BROKER) or get(_BROKER)
        self._of_properties(get(_V2_PROPERTIES))

    def _of_send(self, fields: dict[str, str]) -> None:
        get = fields.get
        self.group = get(_V1_GROUP)
        self.topic = get(_V1_TOPIC)
        self.queue_id = _int(get(_V1_QUEUE))
        self.broker_name = get(_BROKER) or get("brokerName")
        self._of_properties(get(_V1_PROPERTIES))

    def _of_request(self, asked: RemotingCommand) -> None:
        get = asked.ext_fields.get
        self.topic = get("topic") or get("originTopic")
        self.group = get("consumerGroup") or get("group") or get("producerGroup")
        self.queue_id = _int(get("queueId"))
        self.broker_name = get(_BROKER) or get("brokerName")
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
    """Return the value of a property in a properties string; `name` ends in the separator 0x01."""
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


def _brokers(asked: RemotingCommand | None, response: Pdu | None) -> list[str]:
    if asked is not None and asked.code == REGISTER_BROKER:
        name = asked.ext_fields.get("brokerName")
        address = asked.ext_fields.get("brokerAddr")
        return [named_address(name, address)] if name and address else _NO_BROKERS
    if response is not None and response.brokers:
        return response.brokers
    return _NO_BROKERS


def _facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    facts = _NO_FACTS
    if request is not None:
        code = request.command.code
        if code in HEADER_FACTS:
            if response is None:
                facts = header_facts(code, request.command.ext_fields, -1, None)
            else:
                answer = response.command
                if answer.code == 0 and code in V2_SENDS and _is_plain(request.command.ext_fields):
                    return _NO_FACTS
                facts = header_facts(
                    code, request.command.ext_fields, answer.code, answer.ext_fields
                )
        if request.facts is not None:
            facts = facts + request.facts
    if response is not None and response.facts is not None:
        facts = facts + response.facts
    return facts or _NO_FACTS


def _is_plain(fields: dict[str, str]) -> bool:
    """Return whether a stored send has nothing to say besides its columns."""
    flag = fields.get(_V2_SYS_FLAG)
    times = fields.get(_V2_RECONSUMED)
    return (flag is None or flag == "0") and (times is None or times == "0")


def _expert(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds: list[str] = []
    if request is not None and request.expert is not None:
        kinds.extend([info.kind.name for info in request.expert])
    if response is not None and response.expert is not None:
        kinds.extend([info.kind.name for info in response.expert])
    return kinds
