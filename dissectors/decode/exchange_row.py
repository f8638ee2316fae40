"""Exchange → row: what each column is taken from.

One function writes the row of an exchange into a sink: as a line of JSON, as columns or as an
object. Most values are copied from the bytes of the headers. What may fail is done before the first
value is written. Header names are those of RocketMQ; those that a row takes are in `header_view`.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..conversations.conversation import Pdu
from ..conversations.conversation_row import conversation_end
from ..conversations.handshake import round_trip_of
from ..conversations.header_view import (
    PLAIN,
    SENT,
    HeaderView,
    filled,
    put_text,
    queue_id_of,
    queue_offset_of,
    view_of_command,
)
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..grpc.command import NO_CODE, CallCommand
from ..json_bytes import ABSENT, NOTHING, PLACE_END
from ..remoting import row_bodies
from ..remoting.broker_addresses import named_address
from ..remoting.code_names import request_name
from ..remoting.codes import RequestCode
from ..remoting.command import JSON
from ..remoting.row_facts.ext_fields import HEADER_FACTS, NOT_ALLOWED, header_facts, pull_facts
from ..remoting.row_facts.names import ACCOUNT, SERVER_VERSION, TIMER, fact
from ..remoting.versions import HIGHER_VERSION, release_of, version_name
from ..rows.outcome import OK, outcome_class_of
from ..rows.record import ANSWERED, UNANSWERED, ExchangeRecord
from ..rows.row_sink import ObjectSink, RowPart, RowSink
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import SUCCESS, Exchange, names_of

COUNTED: Final = row_bodies.COUNTED_REQUEST
REGISTER_BROKER: Final = int(RequestCode.REGISTER_BROKER)
REFUSED_CALLS: Final = frozenset((40100, 40300))
"""codes of gRPC for a client that may not do what it asks: UNAUTHORIZED, FORBIDDEN"""

_NUMBER_MASK: Final[i64] = (1 << CAPTURE_SHIFT) - 1
_ZERO: Final = 0x30
_NONE: Final[list[str]] = []
"""shared by all rows without brokers, facts or findings, which are nearly all"""
_TIMER: Final = f"{TIMER}="
_WITH_TIMER: Final = 2
"""facts of a body of messages of which the first has a timer: it is the last one"""
_MOST_STARTS: Final = 4096
"""directions of which it is known how rows begin"""
_JAVA: Final = "JAVA"
_MOST_LANGUAGES: Final = 256
"""languages that are remembered: a byte of a binary header names as many"""
_SMALL_CODES: Final = 1024
"""request codes of which the part of a row is remembered"""


@final
class _Start:
    """What the rows of requests of one direction begin with."""

    __slots__ = ("capture", "conversation", "part")

    def __init__(self, capture: str, conversation: i64, part: RowPart) -> None:
        self.capture = capture
        self.conversation: i64 = conversation
        self.part = part


@final
class ExchangeWriter:
    """Writes the rows of exchanges into a sink."""

    __slots__ = (
        "_answer", "_answered", "_asked", "_brokers", "_captures", "_codes", "_experts", "_facts",
        "_java", "_languages", "_ok", "_shown", "_sink", "_starts", "_succeeded", "_usual_end",
        "_versions",
    )  # fmt: skip

    def __init__(self, sink: RowSink, captures: list[str], experts: list[ExpertInfo]) -> None:
        """Take the names of the run's captures, and where findings about rows go."""
        self._sink = sink
        self._captures = captures
        self._experts = experts
        self._starts: dict[bytes, _Start] = {}
        self._answered = sink.part("status", [ANSWERED])
        self._codes: list[RowPart | None] = [None] * _SMALL_CODES
        self._java = sink.part("language", [_JAVA])
        self._languages: dict[str, RowPart] = {}
        self._versions: list[RowPart | None] = [None] * (2 * HIGHER_VERSION + 2)
        self._ok = sink.part("outcome_class", [OK])
        self._succeeded = sink.part("response_code", [0, SUCCESS])
        self._usual_end = sink.part("end", [None, [], None])
        self._asked: HeaderView | None = None
        self._answer: HeaderView | None = None
        self._shown: Pdu | None = None
        self._brokers = _NONE
        self._facts = _NONE

    def write(self, exchange: Exchange) -> None:
        """Write the row of an exchange.

        Where a column cannot be made, the row has none of those that come from ext fields, and that
        is a finding.
        """
        try:
            self._read(exchange)
        except Exception as error:  # the last line of defence: one frame never ends a run
            _strip(exchange, undecoded(error), self._experts)
            self._read(exchange)
        self._write(exchange)

    def _read(self, exchange: Exchange) -> None:
        """Read all of an exchange that may be odd."""
        request, response = exchange.request, exchange.response
        self._asked = request.view if request is not None else None
        self._answer = response.view if response is not None else None
        self._shown = response
        if response is not None and response.head.is_call:
            command = response.command
            if isinstance(command, CallCommand) and command.is_reset:  # it stands for none
                self._shown = None
        self._brokers = _brokers(request, response)
        self._facts = facts(request, response)

    def _write(self, exchange: Exchange) -> None:
        sink = self._sink
        request, response = exchange.request, self._shown
        one = request if request is not None else exchange.response
        assert one is not None
        sink.shared(self._start_of(exchange, one))
        is_answered = request is not None and response is not None
        if is_answered:
            sink.shared(self._answered)
        else:
            sink.text("status", self._status_of(exchange))
        self._write_times(request, response)
        sink.number("opaque", one.head.opaque)
        self._write_names(exchange, request, response)
        self._write_sender(one)
        self._write_message(request)
        self._write_sizes(request, response)
        self._write_connection(one, request, response)
        sink.texts("brokers", self._brokers)
        sink.texts("facts", self._facts)
        if is_answered and response is not None and _is_success(response):
            sink.shared(self._ok)
        else:
            sink.text("outcome_class", self._outcome_of(exchange))
        sink.end()

    def _write_times(self, request: Pdu | None, response: Pdu | None) -> None:
        """Write when the exchange was seen."""
        sink = self._sink
        if request is None:
            sink.null("request_packet")
        else:
            sink.number("request_packet", request.packet & _NUMBER_MASK)
        if response is None:
            sink.null("response_packet")
        else:
            sink.number("response_packet", response.packet & _NUMBER_MASK)
        if request is None:
            sink.null("request_time")
        else:
            sink.time("request_time", request.ts)
        if response is None:
            sink.null("response_time")
            sink.null("latency_us")
            return
        sink.time("response_time", response.ts)
        if request is None:
            sink.null("latency_us")
        else:
            sink.number("latency_us", (response.ts - request.ts) // 1000)

    def _write_names(self, exchange: Exchange, request: Pdu | None, response: Pdu | None) -> None:
        """Write what was asked and answered."""
        sink = self._sink
        remark: str | None = None
        if request is None or request.head.is_call:
            sink.null("request_code")
            sink.text("request_name", names_of(exchange)[0])
        else:
            self._write_code(request.head)
        if response is None:
            sink.null("response_code")
            sink.null("response_name")
        else:
            head = response.head
            remark = head.remark
            if _is_success(response):
                sink.shared(self._succeeded)
            else:
                if head.is_call and head.code == NO_CODE:
                    sink.null("response_code")
                else:
                    sink.number("response_code", head.code)
                sink.text("response_name", names_of(exchange)[1])
        if not remark and request is not None:
            remark = request.head.remark
        if remark:
            sink.text("remark", remark)
        else:
            sink.null("remark")

    def _write_code(self, head: HeaderView) -> None:
        code: i64 = head.code
        part: RowPart | None = None
        if 0 <= code < _SMALL_CODES:
            part = self._codes[code]
        if part is None:
            name = request_name(int(code), int(head.version))
            part = self._sink.part("request_code", [int(code), name])
            if 0 <= code < _SMALL_CODES:
                self._codes[code] = part
        self._sink.shared(part)

    def _write_sender(self, one: Pdu) -> None:
        """Write what is known of the requester, of an orphan of the responder."""
        sink, head = self._sink, one.head
        if head.language == _JAVA:
            sink.shared(self._java)
        else:
            sink.shared(self._languages.get(head.language) or self._new_language(head.language))
        if head.is_call:
            command = one.command
            assert isinstance(command, CallCommand)
            sink.null("version")
            sink.text("version_name", command.client_version)
            sink.text("serialize_type", head.serialize_type)
            return
        sink.shared(self._version_of(head))

    def _new_language(self, language: str) -> RowPart:
        part = self._sink.part("language", [language or None])
        if len(self._languages) < _MOST_LANGUAGES:
            self._languages[language] = part
        return part

    def _version_of(self, head: HeaderView) -> RowPart:
        """Return the version of a header with its name, and how it was written."""
        version: i64 = head.version
        place: i64 = 2 * version
        if head.serialize_type == JSON:
            place += 1
        part: RowPart | None = None
        is_known = 0 <= version <= HIGHER_VERSION
        if is_known:
            part = self._versions[place]
        if part is None:
            number = int(version)
            values = [number, version_name(number), head.serialize_type]
            part = self._sink.part("version", values)
            if is_known:
                self._versions[place] = part
        return part

    def _write_message(self, request: Pdu | None) -> None:
        """Write which queue and which message the exchange is about."""
        sink, asked, answer = self._sink, self._asked, self._answer
        if asked is None or request is None:
            sink.null("topic")
            sink.null("group")
        else:
            put_text(sink, "topic", asked, asked.topic)
            if asked.group == ABSENT:
                sink.text("group", request.groups)
            else:
                put_text(sink, "group", asked, asked.group)
        sink.number("queue_id", queue_id_of(asked, answer))
        if asked is None:
            sink.null("broker_name")
        else:
            put_text(sink, "broker_name", asked, asked.broker_name)
        if asked is not None and asked.unique_key != ABSENT:
            put_text(sink, "unique_key", asked, filled(asked.unique_key))
        elif answer is not None:
            put_text(sink, "unique_key", answer, filled(answer.unique_key))
        else:
            sink.null("unique_key")
        if asked is None:
            sink.null("keys")
            sink.null("tags")
        else:
            put_text(sink, "keys", asked, filled(asked.keys))
            put_text(sink, "tags", asked, filled(asked.tags))

    def _write_sizes(self, request: Pdu | None, response: Pdu | None) -> None:
        """Write how large the exchange is, and what is told of its messages."""
        sink, asked, answer = self._sink, self._asked, self._answer
        body: i64 = 0
        missing: i64 = 0
        if request is not None and asked is not None:
            body = request.body_length
            if asked.is_call:
                body = asked.body_bytes
            missing = request.missing
        if response is not None:
            missing += response.missing
        if body == 0 and answer is not None:
            if answer.is_call:
                body = answer.body_bytes
            elif response is not None:
                body = response.body_length
        sink.number("body_bytes", body)
        if request is None:
            sink.null("request_bytes")
        else:
            sink.number("request_bytes", request.frame_bytes)
        if response is None:
            sink.null("response_bytes")
        else:
            sink.number("response_bytes", response.frame_bytes)
        sink.number("missing_bytes", missing)
        sink.number("message_count", self._message_count(request, response))
        sink.number("queue_offset", queue_offset_of(asked, answer))
        if answer is None:
            sink.null("offset_msg_id")
        else:
            put_text(sink, "offset_msg_id", answer, answer.msg_id)

    def _message_count(self, request: Pdu | None, response: Pdu | None) -> i64:
        """Return how many messages were sent, or are in the response; NOTHING: that is not told."""
        asked, answer = self._asked, self._answer
        count: i64 = NOTHING
        if asked is not None and asked.kind == SENT and request is not None:
            count = 1
            if asked.code == COUNTED:
                count = request.message_count
        elif asked is not None and asked.message_count != NOTHING:
            count = asked.message_count
        elif answer is not None and answer.message_count != NOTHING:
            count = answer.message_count
        elif response is not None:
            count = response.message_count
        if count < 0:
            return NOTHING
        return count

    def _write_connection(self, one: Pdu, request: Pdu | None, response: Pdu | None) -> None:
        """Write what is known of the connection, what was found, and the limit of a send back."""
        sink, asked = self._sink, self._asked
        rtt: i64 = round_trip_of(one.direction.conversation)
        if rtt >= 0:
            sink.number("rtt_us", rtt // 1000)
        else:
            sink.null("rtt_us")
        end: str | None = None
        if response is None and request is not None and request.flag & 2 == 0:
            end = conversation_end(request.direction.conversation)
        expert = _expert(request, response)
        limit: i64 = NOTHING
        if asked is not None:
            limit = asked.reconsume_limit
        if end is None and not expert and limit == NOTHING:
            sink.shared(self._usual_end)
            return
        sink.text("end", end)
        sink.texts("expert", expert)
        sink.number("max_reconsume_times", limit)

    def _status_of(self, exchange: Exchange) -> str:
        return exchange.status if self._shown is exchange.response else UNANSWERED

    def _outcome_of(self, exchange: Exchange) -> str:
        asked, answer = names_of(exchange)
        topic = self._asked.text(self._asked.topic) if self._asked is not None else None
        if self._shown is None:
            answer = None
        return outcome_class_of(self._status_of(exchange), asked, answer, topic)

    def _start_of(self, exchange: Exchange, one: Pdu) -> RowPart:
        """Return what the rows of requests of one direction begin with."""
        capture = self._captures[settled_by(exchange) >> CAPTURE_SHIFT]
        direction = one.direction
        if exchange.request is None:
            direction = direction.peer
        start = self._starts.get(direction.key)
        if start is None or start.conversation != one.conversation or start.capture is not capture:
            if len(self._starts) >= _MOST_STARTS:
                self._starts.clear()
            values = [capture, int(one.conversation), direction.src, direction.peer.src]
            part = self._sink.part("capture", values)
            start = self._starts[direction.key] = _Start(capture, one.conversation, part)
        return start.part


def _is_success(response: Pdu) -> bool:
    head = response.head
    return head.code == 0 and not head.is_call


@final
class ExchangeRecords:
    """Makes exchanges rows as objects."""

    __slots__ = ("_sink", "_writer")

    def __init__(self, captures: list[str], experts: list[ExpertInfo]) -> None:
        """Take the names of the run's captures, and where findings about rows go."""
        self._sink = ObjectSink(ExchangeRecord)
        self._writer = ExchangeWriter(self._sink, captures, experts)

    def of(self, exchanges: list[Exchange]) -> list[ExchangeRecord]:
        """Return the rows of exchanges."""
        for exchange in exchanges:
            self._writer.write(exchange)
        return self._sink.take()


def records_of(
    exchanges: list[Exchange], captures: list[str], experts: list[ExpertInfo]
) -> list[ExchangeRecord]:
    """Return the rows of exchanges; arguments of `ExchangeRecords`."""
    return ExchangeRecords(captures, experts).of(exchanges)


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of an exchange; `capture` is the name of the capture that completed it."""
    index = int(settled_by(exchange) >> CAPTURE_SHIFT)
    (record,) = records_of([exchange], [capture] * (index + 1), [])
    return record


def _strip(exchange: Exchange, detail: str, experts: list[ExpertInfo]) -> None:
    """Leave nothing of an exchange's ext fields, and say so."""
    said = False
    for pdu in (exchange.request, exchange.response):
        if pdu is not None:
            pdu.command.ext_fields = {}
            pdu.head = view_of_command(pdu.command)
            pdu.head.is_filled = True
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


def _brokers(request: Pdu | None, response: Pdu | None) -> list[str]:
    if request is not None and request.head.code == REGISTER_BROKER:
        fields = request.command.ext_fields
        name = fields.get("brokerName")
        address = fields.get("brokerAddr")
        return [named_address(name, address)] if name and address else _NONE
    if response is not None and response.brokers:
        return response.brokers
    return _NONE


def facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    """Return the column `facts` of an exchange."""
    found = _NONE
    if request is not None:
        head = request.head
        if head.is_call:
            return _call_facts(request, response)
        if request.view.kind == SENT or head.code in HEADER_FACTS:
            found = _header_facts(request, response)
        if request.facts is not None:
            found = found + request.facts
    if response is not None:
        if response.head.is_call:
            return _call_facts(request, response)
        if response.facts is not None:
            found = found + response.facts
            if len(response.facts) == _WITH_TIMER and response.facts[-1].startswith(_TIMER):
                release = release_of(int(response.head.version))
                found.append(f"{SERVER_VERSION}={release}")
    return found


def _header_facts(request: Pdu, response: Pdu | None) -> list[str]:
    """Return the facts in both headers; most are told without decoding them whole."""
    asked = request.view
    code = -1
    answer: HeaderView | None = None
    if response is not None:
        answer = response.view
        code = answer.code
    if asked.kind == SENT:
        if (
            code <= 0
            and not asked.is_request
            and _is_zero(asked, asked.sys_flag)
            and _is_zero(asked, asked.reconsume_times)
        ):
            return _NONE
    elif asked.kind == PLAIN and answer is not None and code not in NOT_ALLOWED:
        return pull_facts(
            asked.text(asked.asked_offset),
            answer.text(answer.next_offset),
            answer.text(answer.min_offset),
            answer.text(answer.max_offset),
            answer.text(answer.suggested_broker),
        )
    fields = response.command.ext_fields if response is not None else None
    return header_facts(asked.code, request.command.ext_fields, code, fields)


def _is_zero(view: HeaderView, place: i64) -> bool:
    """Return whether a flag is absent or `0`."""
    start: i64 = place >> 32
    if place == ABSENT:
        return True
    return (place & PLACE_END) - start == 1 and i64(view.data[start]) == _ZERO


def _call_facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    """Return the facts of a call, with who signed it where that one may not do it."""
    asked = request.command if request is not None else None
    answer = response.command if response is not None else None
    found = list(asked.columns.facts) if isinstance(asked, CallCommand) else []
    if isinstance(answer, CallCommand):
        found += answer.columns.facts
        signed = asked or answer
        if answer.code in REFUSED_CALLS and isinstance(signed, CallCommand) and signed.account:
            found.append(fact(ACCOUNT, signed.account))
    return found


def _expert(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds = _NONE
    if request is not None and request.expert is not None:
        kinds = [info.kind.name for info in request.expert]
    if response is not None and response.expert is not None:
        kinds = kinds + [info.kind.name for info in response.expert]
    return kinds
