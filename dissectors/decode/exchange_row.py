"""Mapping of an exchange to the columns of its row.

One function writes the row of an exchange into a sink: as a JSON line, columns, or an object. Most
values are copied from header bytes. Everything that may fail is done before the first value is
written. Header names are RocketMQ's; those used in rows are in `header_view`.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from ..conversations.conversation import Pdu, round_trip_of
from ..conversations.conversation_row import conversation_end
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
from ..findings import Finding, FindingKind, undecoded
from ..grpc.command import NO_CODE, CallCommand
from ..json_bytes import ABSENT, NOTHING, PLACE_END
from ..remoting import row_bodies
from ..remoting.broker_addresses import named_address
from ..remoting.code_names import request_name
from ..remoting.codes import RequestCode
from ..remoting.command import JSON
from ..remoting.headers import shown_remark
from ..remoting.ids.message_ids import latest_before, month_offset_at
from ..remoting.messages.properties import decode_properties
from ..remoting.row_facts.ext_fields import (
    HEADER_FACTS,
    NOT_ALLOWED,
    POLLING_TIMEOUT,
    POPS,
    header_facts,
    pull_facts,
)
from ..remoting.row_facts.names import ACCOUNT, CLIENT, SERVER_VERSION, TIMER, fact, fact_in
from ..remoting.send_fields import send_fields_of
from ..remoting.topic_names import UNUSUAL_STARTS, original_topic_of, original_topic_of_name
from ..remoting.versions import HIGHER_VERSION, release_of, version_name
from ..rows.outcome import OK, outcome_class_of
from ..rows.record import ANSWERED, UNANSWERED, ExchangeRecord
from ..rows.row_sink import ObjectSink, RowPart, RowSink
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import SUCCESS, Exchange, names_of

COUNTED: Final = row_bodies.COUNTED_REQUEST
REGISTER_BROKER: Final = int(RequestCode.REGISTER_BROKER)
REFUSED_CALLS: Final = frozenset((40100, 40300))
"""gRPC codes for a client without permission: UNAUTHORIZED, FORBIDDEN"""

_NUMBER_MASK: Final[i64] = (1 << CAPTURE_SHIFT) - 1
_ZERO: Final = 0x30
_NONE: Final[list[str]] = []
"""shared by all rows without brokers, facts, or findings, which are nearly all"""
_TIMER: Final = f"{TIMER}="
"""last fact of a body whose first message has a timer"""
_CLIENT: Final = f"{CLIENT}="
_IS_UNUSUAL: Final = [byte in UNUSUAL_STARTS for byte in range(256)]
"""first byte of a topic → whether it may not be its own original topic"""
_MOST_STARTS: Final = 4096
"""maximum directions with a cached row start"""
_JAVA: Final = "JAVA"
_MOST_SENDERS: Final = 256
"""maximum cached languages and versions other than Java's"""
_SMALL_CODES: Final = 1024
"""request codes with a cached row part"""


@final
class _Start:
    """Common start of the rows of requests in one direction."""

    __slots__ = ("capture", "conversation", "part")

    def __init__(self, capture: str, conversation: i64, part: RowPart) -> None:
        self.capture = capture
        self.conversation: i64 = conversation
        self.part = part


@final
class ExchangeWriter:
    """Writes rows of exchanges into a sink."""

    __slots__ = (
        "_answered", "_brokers", "_captures", "_client_id", "_codes", "_facts", "_findings", "_ok",
        "_request_view", "_response_view", "_senders", "_shown", "_sink", "_starts", "_succeeded",
        "_successes", "_usual", "_usual_end", "_versions",
    )  # fmt: skip

    def __init__(self, sink: RowSink, captures: list[str], findings: list[Finding]) -> None:
        """Write to `sink`; `captures` are names by index, `findings` gets findings about rows."""
        self._sink = sink
        self._captures = captures
        self._findings = findings
        self._starts: dict[bytes, _Start] = {}
        self._answered = sink.part("status", [ANSWERED])
        self._codes: list[RowPart | None] = [None] * _SMALL_CODES
        self._successes: list[RowPart | None] = [None] * _SMALL_CODES
        self._senders: dict[tuple[str, int, str], RowPart] = {}
        self._versions: list[RowPart | None] = [None] * (2 * HIGHER_VERSION + 2)
        self._ok = sink.part("outcome_class", [OK])
        self._usual = sink.part("brokers", [[], [], OK])
        self._succeeded = sink.part("response_code", [0, SUCCESS])
        self._usual_end = sink.part("end", [None, [], None])
        self._request_view: HeaderView | None = None
        self._response_view: HeaderView | None = None
        self._shown: Pdu | None = None
        self._brokers = _NONE
        self._client_id: str | None = None
        self._facts = _NONE

    def write(self, exchange: Exchange) -> None:
        """Write the row of an exchange.

        If a column cannot be derived, all columns from ext fields are empty, and a finding is
        added.
        """
        try:
            self._read(exchange)
        except Exception as error:  # last line of defence: a bad frame must not end the run
            _strip(exchange, undecoded(error), self._findings)
            self._read(exchange)
        self._write(exchange)

    def _read(self, exchange: Exchange) -> None:
        """Read all parts of an exchange that may be malformed."""
        request, response = exchange.request, exchange.response
        self._request_view = request.view if request is not None else None
        self._response_view = response.view if response is not None else None
        self._shown = response
        if request is not None and response is not None and response.head.is_call:
            command = response.command
            # A stream that was reset, or did not end, has no whole response.
            if isinstance(command, CallCommand) and command.is_partial:
                self._shown = None
        self._brokers = _brokers(request, response)
        self._client_id = None
        self._facts = facts(request, response)
        if self._facts:
            self._client_id = fact_in(self._facts, CLIENT)
            if self._client_id is not None:
                self._facts = [text for text in self._facts if not text.startswith(_CLIENT)]

    def _write(self, exchange: Exchange) -> None:
        sink = self._sink
        request, response = exchange.request, self._shown
        first = request if request is not None else exchange.response
        assert first is not None
        sink.shared(self._start_of(exchange, first))
        is_answered = request is not None and response is not None
        if is_answered:
            sink.shared(self._answered)
        else:
            sink.text("status", self._status_of(exchange))
        self._write_times(request, response)
        sink.number("opaque", first.head.opaque)
        self._write_names(exchange, request, response)
        self._write_sender(first)
        self._write_message(request)
        self._write_sizes(request, response)
        self._write_connection(first, request, response)
        is_ok = is_answered and response is not None and _is_success(response)
        if is_ok and not self._brokers and not self._facts:
            sink.shared(self._usual)
        else:
            sink.texts("brokers", self._brokers)
            sink.texts("facts", self._facts)
            if is_ok:
                sink.shared(self._ok)
            else:
                sink.text("outcome_class", self._outcome_of(exchange))
        self._write_key_time(request)
        if self._client_id is None:
            sink.null("client_id")
        else:
            sink.text("client_id", self._client_id)
        self._write_original_topic(request)
        sink.end()

    def _write_times(self, request: Pdu | None, response: Pdu | None) -> None:
        """Write the times of the exchange."""
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
        """Write the names of request and response."""
        sink = self._sink
        remark = response.head.remark if response is not None else None
        is_success = response is not None and _is_success(response)
        if request is None or request.head.is_call:
            sink.null("request_code")
            sink.text("request_name", names_of(exchange)[0])
            if is_success:
                sink.shared(self._succeeded)
        else:
            sink.shared(self._code_of(request.head, is_success))
        if response is None:
            sink.null("response_code")
            sink.null("response_name")
        elif not is_success:
            head = response.head
            if head.is_call and head.code == NO_CODE:
                sink.null("response_code")
            else:
                sink.number("response_code", head.code)
            sink.text("response_name", names_of(exchange)[1])
        if not remark and request is not None:
            remark = request.head.remark
        if remark:
            sink.text("remark", shown_remark(remark))
        else:
            sink.null("remark")

    def _code_of(self, head: HeaderView, is_success: bool) -> RowPart:
        """Return a request's code and name, with those of the response if it succeeded."""
        code: i64 = head.code
        parts = self._successes if is_success else self._codes
        part: RowPart | None = None
        if 0 <= code < _SMALL_CODES:
            part = parts[code]
        if part is None:
            values: list[object] = [int(code), request_name(int(code))]
            if is_success:
                values += [0, SUCCESS]
            part = self._sink.part("request_code", values)
            if 0 <= code < _SMALL_CODES:
                parts[code] = part
        return part

    def _write_sender(self, pdu: Pdu) -> None:
        """Write the columns of the client, or of the server for an orphan."""
        sink, head = self._sink, pdu.head
        if head.is_call:
            command = pdu.command
            assert isinstance(command, CallCommand)
            sink.text("language", head.language or None)
            sink.null("version")
            sink.text("version_name", command.client_version)
            sink.text("serialize_type", head.serialize_type)
            return
        sink.shared(self._sender_of(head))

    def _sender_of(self, head: HeaderView) -> RowPart:
        """Return the language and version of a header, with its serialization."""
        version: i64 = head.version
        place: i64 = 2 * version  # two parts for each version: one per serialization
        if head.serialize_type == JSON:
            place += 1
        is_usual = head.language == _JAVA and 0 <= version <= HIGHER_VERSION
        number = int(version)
        key = None if is_usual else (head.language, number, head.serialize_type)
        part = self._versions[place] if key is None else self._senders.get(key)
        if part is None:
            values = [head.language or None, number, version_name(number), head.serialize_type]
            part = self._sink.part("language", values)
            if key is None:
                self._versions[place] = part
            elif len(self._senders) < _MOST_SENDERS:
                self._senders[key] = part
        return part

    def _write_message(self, request: Pdu | None) -> None:
        """Write the queue and message of the exchange."""
        sink, request_view, response_view = self._sink, self._request_view, self._response_view
        if request_view is None or request is None:
            sink.null("topic")
            sink.null("group")
        else:
            put_text(sink, "topic", request_view, request_view.topic)
            if request_view.group == ABSENT:  # a heartbeat has its groups in the body
                sink.text("group", request.groups)
            else:
                put_text(sink, "group", request_view, request_view.group)
        sink.number("queue_id", queue_id_of(request_view, response_view))
        if request_view is None:
            sink.null("broker_name")
        else:
            put_text(sink, "broker_name", request_view, request_view.broker_name)
        if request_view is not None and request_view.unique_key != ABSENT:
            put_text(sink, "unique_key", request_view, filled(request_view.unique_key))
        elif response_view is not None:
            put_text(sink, "unique_key", response_view, filled(response_view.unique_key))
        else:
            sink.null("unique_key")
        if request_view is None:
            sink.null("keys")
            sink.null("tags")
        else:
            put_text(sink, "keys", request_view, filled(request_view.keys))
            put_text(sink, "tags", request_view, filled(request_view.tags))

    def _write_sizes(self, request: Pdu | None, response: Pdu | None) -> None:
        """Write the sizes of the exchange, and facts of its messages."""
        sink, request_view, response_view = self._sink, self._request_view, self._response_view
        body: i64 = 0
        missing: i64 = 0
        if request is not None and request_view is not None:
            body = request.body_length
            if request_view.is_call:
                body = request_view.body_bytes
            missing = request.missing
        if response is not None:
            missing += response.missing
        if body == 0 and response_view is not None:
            if response_view.is_call:
                body = response_view.body_bytes
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
        sink.number("queue_offset", queue_offset_of(request_view, response_view))
        if response_view is None:
            sink.null("offset_msg_id")
        else:
            put_text(sink, "offset_msg_id", response_view, response_view.msg_id)

    def _message_count(self, request: Pdu | None, response: Pdu | None) -> i64:
        """Return the number of messages sent or in the response, or NOTHING if unknown."""
        request_view, response_view = self._request_view, self._response_view
        count: i64 = NOTHING
        if request_view is not None and request_view.kind == SENT and request is not None:
            count = 1
            if request_view.code == COUNTED:
                count = request.message_count
        elif request_view is not None and request_view.message_count != NOTHING:
            count = request_view.message_count
        elif response_view is not None and response_view.message_count != NOTHING:
            count = response_view.message_count
        elif response is not None:
            count = response.message_count
        if count < 0:
            return NOTHING
        return count

    def _write_connection(self, pdu: Pdu, request: Pdu | None, response: Pdu | None) -> None:
        """Write connection, findings, and the limit of a send back."""
        sink, request_view = self._sink, self._request_view
        rtt: i64 = round_trip_of(pdu.direction.conversation)
        if rtt >= 0:
            sink.number("rtt_us", rtt // 1000)
        else:
            sink.null("rtt_us")
        end: str | None = None
        # A oneway request expects no response: the end of the connection explains nothing.
        if response is None and request is not None and request.flag & 2 == 0:
            end = conversation_end(request.direction.conversation)
        findings = _findings(request, response)
        limit: i64 = NOTHING
        if request_view is not None:
            limit = request_view.reconsume_limit
        if end is None and not findings and limit == NOTHING:
            sink.shared(self._usual_end)
            return
        sink.text("end", end)
        sink.texts("findings", findings)
        sink.number("max_reconsume_times", limit)

    def _write_key_time(self, request: Pdu | None) -> None:
        """Write when the message of a send was created."""
        request_view = self._request_view
        if request is not None and request_view is not None and request_view.kind == SENT:
            data, place = request_view.data, request_view.unique_key
            # A unique key has the time since the start of a month; the request shows which month.
            month_offset: i64 = month_offset_at(data, place >> 32, place & PLACE_END)
            if month_offset >= 0:
                time: i64 = latest_before(month_offset, request.ts // 1000)
                self._sink.time("key_time", time * 1000)
                return
        self._sink.null("key_time")

    def _write_original_topic(self, request: Pdu | None) -> None:
        """Write the topic that the producer sent the message to."""
        sink, view = self._sink, self._request_view
        if request is None or view is None or filled(view.topic) == ABSENT:
            sink.null("original_topic")
        elif _IS_UNUSUAL[i64(view.data[view.topic >> 32])]:
            sink.text("original_topic", _original_topic(request, view))
        else:
            put_text(sink, "original_topic", view, view.topic)

    def _status_of(self, exchange: Exchange) -> str:
        return exchange.status if self._shown is exchange.response else UNANSWERED

    def _outcome_of(self, exchange: Exchange) -> str:
        operation, response = names_of(exchange)
        topic = (
            self._request_view.text(self._request_view.topic)
            if self._request_view is not None
            else None
        )
        if self._shown is None:
            response = None
        return outcome_class_of(self._status_of(exchange), operation, response, topic)

    def _start_of(self, exchange: Exchange, pdu: Pdu) -> RowPart:
        """Return the common start of rows of requests in one direction."""
        capture = self._captures[settled_by(exchange) >> CAPTURE_SHIFT]
        direction = pdu.direction
        if exchange.request is None:
            direction = direction.peer
        # A later connection may reuse both ports, so its number is compared too.
        start = self._starts.get(direction.key)
        # Names of captures are from one list, so that identity decides, and is faster.
        if start is None or start.conversation != pdu.conversation or start.capture is not capture:
            # Port scans and short connections would fill the memory.
            if len(self._starts) >= _MOST_STARTS:
                self._starts.clear()
            values = [capture, int(pdu.conversation), direction.src, direction.peer.src]
            part = self._sink.part("capture", values)
            start = self._starts[direction.key] = _Start(capture, pdu.conversation, part)
        return start.part


def _is_success(response: Pdu) -> bool:
    head = response.head
    return head.code == 0 and not head.is_call


@final
class ExchangeRecords:
    """Builds rows of exchanges as objects."""

    __slots__ = ("_sink", "_writer")

    def __init__(self, captures: list[str], findings: list[Finding]) -> None:
        """Collect findings about rows in `findings`; `captures` are names by index."""
        self._sink = ObjectSink(ExchangeRecord)
        self._writer = ExchangeWriter(self._sink, captures, findings)

    def of(self, exchanges: list[Exchange]) -> list[ExchangeRecord]:
        """Return the rows of exchanges."""
        for exchange in exchanges:
            self._writer.write(exchange)
        return self._sink.take()


def records_of(
    exchanges: list[Exchange], captures: list[str], findings: list[Finding]
) -> list[ExchangeRecord]:
    """Return the rows of exchanges; arguments as for `ExchangeRecords`."""
    return ExchangeRecords(captures, findings).of(exchanges)


def record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of an exchange; `capture` is the name of the capture that completed it."""
    index = int(settled_by(exchange) >> CAPTURE_SHIFT)
    # Packet ids contain the index of their capture, and any index may come.
    (record,) = records_of([exchange], [capture] * (index + 1), [])
    return record


def _strip(exchange: Exchange, detail: str, findings: list[Finding]) -> None:
    """Clear the ext fields of an exchange, and add a finding."""
    is_reported = False
    for pdu in (exchange.request, exchange.response):
        if pdu is not None:
            pdu.command.ext_fields = {}
            pdu.head = view_of_command(pdu.command)
            pdu.head.is_filled = True
            if not is_reported:
                findings.append(pdu.say(FindingKind.BAD_BODY, detail))
                is_reported = True


def settled_by(exchange: Exchange) -> i64:
    """Return the id of the packet that settles an exchange: its response's, or its request's."""
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


def _original_topic(request: Pdu, view: HeaderView) -> str | None:
    """Return the original topic of a request, by its properties and the name of its topic."""
    topic = view.text(view.topic)
    if view.kind == SENT:
        properties = request.command.ext_fields.get(send_fields_of(int(view.code)).properties)
        return original_topic_of(topic, decode_properties(properties or ""))
    group = request.groups if view.group == ABSENT else view.text(view.group)
    return original_topic_of_name(topic, group)


def facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    """Return the column `facts` of an exchange."""
    result = _NONE
    if request is not None:
        head = request.head
        if head.is_call:
            return _call_facts(request, response)
        if request.view.kind == SENT or head.code in HEADER_FACTS:
            result = _header_facts(request, response)
        if request.facts is not None:
            result = result + request.facts  # a new list: `_NONE` and the facts of PDUs are shared
    if response is not None:
        if response.head.is_call:
            return _call_facts(request, response)
        if response.facts is not None:
            result = result + response.facts
            if response.facts and response.facts[-1].startswith(_TIMER):
                release = release_of(int(response.head.version))
                result.append(f"{SERVER_VERSION}={release}")
    return result


def _header_facts(request: Pdu, response: Pdu | None) -> list[str]:
    """Return the facts in both headers, mostly without decoding them in full."""
    view = request.view
    code = -1
    view_of_response: HeaderView | None = None
    if response is not None:
        view_of_response = response.view
        code = view_of_response.code
    if view.kind == SENT:
        if (
            code <= 0
            and not view.is_request  # neither a request message nor a reply
            and _is_zero(view, view.sys_flag)
            and _is_zero(view, view.reconsume_times)
        ):
            return _NONE
    elif view.code in POPS and code != POLLING_TIMEOUT:
        return _NONE
    elif view.kind == PLAIN and view_of_response is not None and code not in NOT_ALLOWED:
        return pull_facts(
            view.text(view.requested_offset),
            view_of_response.text(view_of_response.next_offset),
            view_of_response.text(view_of_response.min_offset),
            view_of_response.text(view_of_response.max_offset),
            view_of_response.text(view_of_response.suggested_broker),
        )
    fields = response.command.ext_fields if response is not None else None
    return header_facts(view.code, request.command.ext_fields, code, fields)


def _is_zero(view: HeaderView, place: i64) -> bool:
    """Return whether a flag is absent or `0`."""
    start: i64 = place >> 32
    if place == ABSENT:
        return True
    return (place & PLACE_END) - start == 1 and i64(view.data[start]) == _ZERO


def _call_facts(request: Pdu | None, response: Pdu | None) -> list[str]:
    """Return the facts of a call, with the signer if access was denied."""
    request_head = request.command if request is not None else None
    response_head = response.command if response is not None else None
    result = list(request_head.columns.facts) if isinstance(request_head, CallCommand) else []
    if isinstance(response_head, CallCommand):
        result += response_head.columns.facts
        signed = request_head or response_head
        if (
            response_head.code in REFUSED_CALLS
            and isinstance(signed, CallCommand)
            and signed.account
        ):
            result.append(fact(ACCOUNT, signed.account))
    return result


def _findings(request: Pdu | None, response: Pdu | None) -> list[str]:
    kinds = _NONE
    if request is not None and request.findings is not None:
        kinds = [info.kind.name for info in request.findings]
    if response is not None and response.findings is not None:
        kinds = kinds + [info.kind.name for info in response.findings]
    return kinds
