"""Exchange → ExchangeRecord: what each column of the row is taken from.

Runs once an exchange, so a message's properties are searched for the three that have a column and
not all taken apart. Header names are those of RocketMQ; those of sends are in
`remoting.send_fields`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, write_i64_le
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
from ..conversations.scanned_header import PLAIN, SENT, ScannedHeader
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..grpc.command import CallCommand
from ..remoting import code_sets, row_bodies
from ..remoting.broker_addresses import named_address
from ..remoting.codes import RequestCode
from ..remoting.row_facts.ext_fields import CORRELATION_ID, HEADER_FACTS, header_facts, pull_facts
from ..remoting.row_facts.names import SERVER_VERSION, TIMER
from ..remoting.versions import HIGHER_VERSION, VERSIONS, release_of
from ..remoting.versions import version_name as name_of_version
from ..rows.outcome import OK, outcome_class_of
from ..rows.record import ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import SUCCESS, Exchange, names_of
from .row_fields import RowFields

if TYPE_CHECKING:
    from ..message_rows.message_lines import MessageLines
    from ..message_rows.message_table import MessageTable

COUNTED: Final = row_bodies.COUNTED_REQUEST
REGISTER_BROKER: Final = int(RequestCode.REGISTER_BROKER)

V1_SENDS: Final = code_sets.V1_SENDS
V2_SENDS: Final = code_sets.V2_SENDS

_NUMBER_MASK: Final = (1 << CAPTURE_SHIFT) - 1
_NO_BROKERS: Final[list[str]] = []
"""shared by all rows that name none, which are nearly all"""
_NO_FACTS: Final[list[str]] = []
_NO_KINDS: Final[list[str]] = []
_TIMER: Final = f"{TIMER}="
_WITH_TIMER: Final = 2
"""facts of a body of messages of which the first has a timer: it is the last one"""
_MADE: Final = 1024
_NUMBERS: Final[list[Any]] = list(range(_MADE))
"""small numbers as objects, which rows share"""


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of an exchange; `capture` is the name of the capture that completed it."""
    request = exchange.request
    response = exchange.response
    asked = request.head if request is not None else None
    answered = response.head if response is not None else None
    one_pdu = request if request is not None else response
    assert one_pdu is not None
    one = one_pdu.head
    number = int(one.version)
    known = 0 <= number <= HIGHER_VERSION
    if not known and isinstance(one_pdu.command, CallCommand):
        from .call_row import call_record_of

        return call_record_of(exchange, capture)
    request_name, response_name = names_of(exchange)
    version_name = VERSIONS[number] if known else name_of_version(number)
    fields = RowFields(request, response)
    if fields.group is None and request is not None:
        fields.group = request.groups
    request_packet, response_packet = _number(request), _number(response)
    request_time, response_time = _ts(request), _ts(response)
    request_code = _code_of(asked)
    response_code = answered.code if answered is not None else None
    request_bytes = _number_of(request.frame_bytes) if request is not None else None
    response_bytes = _number_of(response.frame_bytes) if response is not None else None
    missing_bytes = _missing(request) + _missing(response)
    conversation, version = _number_of(one_pdu.conversation), _number_of(number)
    body_bytes = _number_of(_body_bytes(request, response))
    # By position: by keyword a row takes a fifth longer. Each argument is called as its
    # field, up to a leading underscore, so that a test can hold it to the declaration.
    # fmt: off
    return ExchangeRecord(
        capture, conversation, exchange.requester, exchange.responder,
        exchange.status,
        request_packet, response_packet, request_time, response_time,
        _latency_us(request, response), one.opaque,
        request_code, request_name, response_code, response_name, _remark(asked, answered),
        one.language or None, version, version_name, one_pdu.serialize_type,
        fields.topic, fields.group, fields.queue_id, fields.broker_name,
        fields.unique_key, fields.keys, fields.tags,
        body_bytes, request_bytes, response_bytes, missing_bytes,
        _message_count(request, response), fields.queue_offset, fields.offset_msg_id,
        _rtt_us(one_pdu), _end(request, response), _expert(request, response),
        fields.max_reconsume_times, _brokers(request, response), facts(request, response),
        _outcome_class(exchange, request_name, response_name, fields.topic),
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


def give_messages(
    exchanges: list[Exchange],
    captures: list[str],
    experts: list[ExpertInfo],
    table: MessageTable,
    lines: MessageLines | None = None,
    counts: BytesWriter | None = None,
) -> None:
    """Give the messages of exchanges to a table whose rows have a form; rows of exchanges are made
    only where it needs them.

    `counts`: takes, of each exchange with messages, three 64-bit integers: its place among the
    exchanges, how many rows it gave, where the last one ends in `lines`, which has them.
    """
    waiting: i64 = 0
    for place, exchange in enumerate(exchanges):
        request, response = exchange.request, exchange.response
        capture = captures[settled_by(exchange) >> CAPTURE_SHIFT]
        if not table.is_of_messages(request, response):
            continue
        if request is None or not table.took_send(
            request, response, capture, request.packet & _NUMBER_MASK
        ):
            (row,) = records_of([exchange], captures, experts)
            table.rows_of(request, response, row, experts)
        if counts is not None and lines is not None:
            made: i64 = lines.waiting - waiting
            if made:
                waiting += made
                write_i64_le(counts, place)
                write_i64_le(counts, made)
                write_i64_le(counts, lines.written())


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
    """Return the id of the packet that an exchange is filed under: its response's or request's."""
    response = exchange.response
    if response is not None:
        return response.packet
    request = exchange.request
    assert request is not None
    return request.packet


def _number_of(number: i64) -> Any:
    """Return a number as an object; a small one is not made anew."""
    if 0 <= number < _MADE:
        return _NUMBERS[number]
    return int(number)


def _code_of(head: RowHeader | None) -> Any:
    """Return the code of a header, where there is one."""
    if head is None:
        return None
    code = head.code
    return _NUMBERS[code] if 0 <= code < _MADE else code


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


def _body_bytes(request: Pdu | None, response: Pdu | None) -> i64:
    if request is not None and request.body_length:
        return request.body_length
    return response.body_length if response is not None else 0


def _missing(pdu: Pdu | None) -> i64:
    return pdu.missing if pdu is not None else 0


def _message_count(request: Pdu | None, response: Pdu | None) -> int | None:
    if request is not None:
        code = request.head.code
        if code == COUNTED:
            return request.message_count if request.message_count >= 0 else None
        if code in V1_SENDS or code in V2_SENDS:
            return 1
    if response is not None and response.message_count >= 0:
        return response.message_count
    return None


def _rtt_us(pdu: Pdu) -> Any:
    rtt: i64 = round_trip_of(pdu.direction.conversation)
    return _number_of(rtt // 1000) if rtt >= 0 else None


def _end(request: Pdu | None, response: Pdu | None) -> str | None:
    """Return how the connection of a request without answer stood when that was given up."""
    if request is None or response is not None or request.flag & 2:
        return None
    return conversation_end(request.direction.conversation)


def _brokers(request: Pdu | None, response: Pdu | None) -> list[str]:
    if request is not None and request.head.code == REGISTER_BROKER:
        fields = request.command.ext_fields
        name = fields.get("brokerName")
        address = fields.get("brokerAddr")
        return [named_address(name, address)] if name and address else _NO_BROKERS
    if response is not None and response.brokers:
        return response.brokers
    return _NO_BROKERS


def facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    """Return the column `facts` of an exchange."""
    found = _NO_FACTS
    if request is not None:
        code = request.head.code
        if code in HEADER_FACTS:
            found = _header_facts(request, response)
        if request.facts is not None:
            found = found + request.facts
    if response is not None and response.facts is not None:
        found = found + response.facts
        if len(response.facts) == _WITH_TIMER and response.facts[-1].startswith(_TIMER):
            release = release_of(int(response.head.version))
            found.append(f"{SERVER_VERSION}={release}")
    return found or _NO_FACTS


def _header_facts(request: Pdu, response: Pdu | None) -> list[str]:
    """Return the facts in both headers; most are told without decoding them whole."""
    asked = request.head
    if response is None:
        return header_facts(asked.code, request.command.ext_fields, -1, None)
    answer = response.head
    if isinstance(asked, ScannedHeader):
        if asked.kind == SENT:
            if (
                answer.code == 0
                and not asked.is_request
                and _is_none_at(asked, asked.sys_flag)
                and _is_none_at(asked, asked.reconsume_times)
            ):
                return _NO_FACTS
        elif asked.kind == PLAIN and isinstance(answer, ScannedHeader):
            text = answer.text
            return pull_facts(
                asked.text(asked.asked_offset), text(answer.next_offset),
                text(answer.min_offset), text(answer.max_offset), text(answer.suggested_broker),
            )  # fmt: skip
    elif isinstance(asked, SentHeader):
        if (
            answer.code == 0
            and _is_none(asked.sys_flag)
            and _is_none(asked.reconsume_times)
            and (asked.properties is None or CORRELATION_ID not in asked.properties)
        ):
            return _NO_FACTS
    elif isinstance(asked, PlainHeader) and isinstance(answer, AnswerHeader):
        return pull_facts(
            asked.asked_offset, answer.next_offset, answer.min_offset, answer.max_offset,
            answer.suggested_broker,
        )  # fmt: skip
    return header_facts(
        asked.code, request.command.ext_fields, answer.code, response.command.ext_fields
    )


def _is_none_at(head: ScannedHeader, place: i64) -> bool:
    """Return whether a flag is absent or `0`."""
    start: i64 = place >> 32
    return place == 0 or ((place & 0xFFFFFFFF) - start == 1 and head.header[start] == 0x30)


def _is_none(flag: str | None) -> bool:
    return flag is None or flag == "0"


def _outcome_class(
    exchange: Exchange, request_name: str | None, response_name: str | None, topic: str | None
) -> str:
    if response_name == SUCCESS and exchange.request is not None:
        return OK  # nearly all
    return outcome_class_of(exchange.status, request_name, response_name, topic)


def _expert(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds = _NO_KINDS
    if request is not None and request.expert is not None:
        kinds = [info.kind.name for info in request.expert]
    if response is not None and response.expert is not None:
        kinds = kinds + [info.kind.name for info in response.expert]
    return kinds
