"""Mapping of messages to the columns of their rows.

Three functions write rows into a sink, as JSON lines, columns, or objects: for the message of a
send, for a stored record, and for any other message with known facts. Everything that may fail is
done before the first value of a row is written.

RocketMQ: SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ..budget import Budget
from ..conversations.conversation import Direction, Pdu
from ..conversations.conversation_row import conversation_end
from ..conversations.header_view import (
    HeaderView,
    filled,
    put_text,
    queue_id_of,
    queue_offset_of,
)
from ..json_bytes import ABSENT, NOTHING, PLACE_END, put_hex
from ..remoting.code_names import request_name, response_name
from ..remoting.code_sets import STORED as STORED_CODES
from ..remoting.codes import ResponseCode
from ..remoting.headers import shown_remark
from ..remoting.ids.message_ids import decode_recall_handle, physical_offset_at, physical_offset_of
from ..remoting.messages.message import StoredMessage
from ..remoting.messages.properties import decode_properties
from ..remoting.messages.whole_record import OFFSET_AT, RIGHT, UNKNOWN
from ..remoting.send_fields import send_fields_of
from ..remoting.sysflag import PREPARED as PREPARED_FLAG
from ..remoting.sysflag import TRANSACTION_MASK
from ..remoting.topic_names import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    group_of,
    names_itself,
    original_topic_of,
)
from ..rows.message_record import DEAD, PREPARED, REFUSED, RETURNED, SENT, STORED
from ..rows.row_sink import ObjectSink, RowPart, RowSink
from ..tcp.capture import CAPTURE_SHIFT, packet_number
from .record_view import RecordView
from .seen_exchange import (
    CARRIED_BACK,
    LAST_MS,
    MILLI,
    Facts,
    MessageEvent,
    SeenExchange,
    body_of,
    deliver_time_of,
    number_of,
    time_of_ms,
)

_NUMBER_MASK: Final[i64] = (1 << CAPTURE_SHIFT) - 1
_LAST: Final[i64] = LAST_MS
_PER_MS: Final[i64] = MILLI
_PREPARED: Final[i64] = PREPARED_FLAG
_TRANSACTION: Final[i64] = TRANSACTION_MASK
_LATER: Final = frozenset(("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"))
"""properties of messages whose delivery the broker delays"""
_NO_PROPERTIES: Final[dict[str, str]] = {}
_SUCCESS: Final = response_name(ResponseCode.SUCCESS)
_HOST: Final = 8
"""bytes of an IPv4 host with port"""
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_MOST_ENDS: Final = 4096
"""maximum directions with cached row parts"""
_MOST_NAMES: Final = 64


@final
class _Ends:
    """Parts shared by the rows of sends in one direction."""

    __slots__ = ("capture", "client", "conversation", "start", "who")

    def __init__(
        self, capture: str, client: str | None, direction: Direction, start: RowPart, who: RowPart
    ) -> None:
        self.capture = capture
        self.client = client
        self.conversation: i64 = direction.conversation.number
        self.start = start
        """columns up to the packet"""
        self.who = who
        """columns from after the latency to the broker's address"""


@final
class MessageWriter:
    """Writes message rows into a sink."""

    __slots__ = ("_ends", "_id", "_is_usual", "_names", "_queue", "_queue_part", "_record", "_sink",
                 "_succeeded", "_topic")  # fmt: skip

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._record = RecordView()
        self._id = BytesWriter()
        self._ends: dict[bytes, _Ends] = {}
        self._names: dict[int, RowPart] = {}
        self._succeeded = sink.part("response_code", [int(ResponseCode.SUCCESS), _SUCCESS])
        self._queue: i64 = 0
        self._queue_part = sink.part("topic", [None, None, None])
        self._topic = b""
        self._is_usual = True

    def write(self, seen: SeenExchange, message: MessageEvent) -> None:
        """Write the row of a message with known facts."""
        sink = self._sink
        self._write_seen(seen, message.event, message.from_broker, message.place)
        for name, value in zip(Facts._fields, message.facts, strict=True):
            # A number of JSON, or a sum, may exceed the 64 bits of a column.
            if isinstance(value, int) and not _LEAST <= value <= _MOST:
                value = None
            sink.value(name, value)
        sink.end()

    def _write_seen(self, seen: SeenExchange, event: str, from_broker: bool, place: int) -> None:
        """Write the columns shared by an exchange's messages, and the index of this one.

        `from_broker`: the broker sent the request, so the client is the server. Messages in a
        response take its time; all others take that of the request.
        """
        sink, row = self._sink, seen.row
        # The row of the exchange has no time of a response without its end.
        pdu = seen.response if event in CARRIED_BACK and not from_broker else seen.request
        sink.value("capture", row.capture)
        sink.value("conversation", row.conversation)
        sink.value("packet", None if pdu is None else packet_number(pdu.packet))
        sink.value("time", None if pdu is None else pdu.ts)
        sink.value("request_packet", row.request_packet)
        sink.value("place", place)
        sink.value("event", event)
        sink.value("request_name", row.request_name)
        sink.value("response_code", row.response_code)
        sink.value("response_name", row.response_name)
        sink.value("remark", row.remark)
        sink.value("latency_us", row.latency_us)
        sink.value("end", row.end)
        sink.value("client_address", row.server_address if from_broker else row.client_address)
        sink.value("client_id", seen.client_id)
        sink.value("server_address", row.client_address if from_broker else row.server_address)
        sink.value("broker_name", row.broker_name)

    def write_body(self, seen: SeenExchange, event: str, body: bytes, group: str | None) -> bool:
        """Write the rows of the stored records in a response, delivered to a group.

        Return False, with no rows written, if a record is incomplete.
        """
        sink, record = self._sink, self._record
        whole = record.whole
        at: i64 = 0
        end: i64 = len(body)
        count: i64 = 0
        # A first pass over the lengths, because rows cannot be taken back.
        while at < end:
            if not whole.find(body, at):
                return False
            at = whole.stop
            count += 1
        row = seen.row
        head = sink.part(
            "capture",
            [
                row.capture, row.conversation, row.response_packet, row.response_time,
                row.request_packet,
            ],
        )  # fmt: skip
        rest = sink.part(
            "event",
            [
                event, row.request_name, row.response_code, row.response_name, row.remark,
                row.latency_us, row.end, row.client_address, seen.client_id, row.server_address,
                row.broker_name,
            ],
        )  # fmt: skip
        groups = sink.part("consumer_group", [group])
        sink.repeat([head, rest, groups], count)
        record.begin(group)
        at = 0
        place: i64 = 0
        while at < end:
            record.find(body, at)
            sink.repeated(head)
            sink.number("place", place)
            sink.repeated(rest)
            self.write_record(record, groups, None, None)
            sink.end()
            place += 1
            at = whole.stop
        return True

    def write_record(
        self, record: RecordView, groups: RowPart, form: str | None, body: str | None
    ) -> None:
        """Write the columns of a stored record; `groups` is the part of the consumer group."""
        sink, data = self._sink, record.data
        if record.queue != self._queue:
            self._queue = record.queue
            values = [record.topic, record.original_topic, int(record.queue_id)]
            self._queue_part = sink.part("topic", values)
        sink.shared(self._queue_part)
        sink.integer("queue_offset", record.queue_offset)
        sink.null("covers")
        sink.utf8("producer_group", data, record.producers, record.producers_stop)
        sink.repeated(groups)
        sink.utf8("unique_key", data, record.unique, record.unique_stop)
        if record.host_stop - record.host_at == _HOST:
            # 32 digits: IPv4 address, port, and commit log offset are 16 bytes.
            put_hex(self._id, data, record.host_at)
            put_hex(self._id, data, record.whole.at + OFFSET_AT)
            sink.plain("offset_msg_id", self._id.getvalue(), 4 * _HOST)
            self._id.truncate(0)
        else:
            sink.text("offset_msg_id", record.offset_id)
        sink.integer("commit_log_offset", record.offset)
        sink.utf8("keys", data, record.keys, record.keys_stop)
        sink.utf8("tags", data, record.tags, record.tags_stop)
        sink.utf8("transaction_id", data, record.transaction, record.transaction_stop)
        _put_ms(sink, "born_time", record.born_ms)
        _put_ms(sink, "store_time", record.stored_ms)
        sink.value("deliver_time", record.deliver_time)
        sink.number("reconsume_times", record.reconsume_times)
        sink.null("max_reconsume_times")
        sink.value("delay_level", record.delay_level)
        sink.number("body_bytes", record.body_length)
        sink.number("body_crc", record.body_crc)
        if record.crc == UNKNOWN:
            sink.null("crc_ok")
        else:
            sink.flag("crc_ok", record.crc == RIGHT)
        sink.text("body_form", form)
        sink.text("body", body)

    def write_send(
        self,
        request: Pdu,
        response: Pdu | None,
        capture: str,
        client: str | None,
        body_limit: int,
        budget: Budget,
    ) -> None:
        """Write the row of a single send.

        `client` is the client id announced on the connection; `body_limit` is the maximum bytes of
        the body.
        """
        sink, view = self._sink, request.view
        response_view = response.view if response is not None else None
        properties = self._properties_of(request, view, body_limit)
        is_half = _is_half(view)
        event = event_of(view, response_view)
        # Half messages and delayed ones have their offset in another queue.
        is_in_queue = event in (STORED, RETURNED, DEAD)
        if properties and is_in_queue:
            is_in_queue = _LATER.isdisjoint(properties)
        transaction = properties.get("__transactionId__")
        if is_half and response is not None:
            transaction = response.command.ext_fields.get("transactionId") or transaction
        due = _due_time(response_view, properties)
        form = body = None
        if body_limit:
            flags = number_of(view.text(view.sys_flag)) or 0
            message = StoredMessage(
                view.text(view.topic) or "", request.body, properties, sys_flag=flags
            )
            form, body = body_of(message, body_limit, budget)
        self._write_request(request, response, event, capture, client)
        put_text(sink, "broker_name", view, view.broker_name)
        put_text(sink, "topic", view, view.topic)
        if self._is_usual:
            put_text(sink, "original_topic", view, filled(view.topic))
        else:
            original_topic = original_topic_of(view.text(view.topic), properties)
            sink.text("original_topic", original_topic)
        sink.number("queue_id", queue_id_of(view, response_view))
        if is_in_queue:
            sink.number("queue_offset", queue_offset_of(view, response_view))
        else:
            sink.null("queue_offset")
        sink.null("covers")
        put_text(sink, "producer_group", view, view.group)
        if event in (RETURNED, DEAD):
            sink.text("consumer_group", group_of(view.text(view.topic) or ""))
        else:
            sink.null("consumer_group")
        put_text(sink, "unique_key", view, filled(view.unique_key))
        self._write_stored_place(response_view)
        put_text(sink, "keys", view, filled(view.keys))
        put_text(sink, "tags", view, filled(view.tags))
        sink.text("transaction_id", transaction)
        _put_ms(sink, "born_time", view.number(view.born_timestamp))
        sink.null("store_time")
        sink.value("deliver_time", due)
        sink.number("reconsume_times", view.number(view.reconsume_times))
        sink.number("max_reconsume_times", view.number(view.max_reconsume_times))
        sink.value("delay_level", number_of(properties.get("DELAY")))
        sink.number("body_bytes", request.body_length)
        sink.null("body_crc")
        sink.null("crc_ok")
        sink.text("body_form", form)
        sink.text("body", body)
        sink.end()

    def _write_request(
        self, request: Pdu, response: Pdu | None, event: str, capture: str, client: str | None
    ) -> None:
        """Write time, ends, and outcome of a send."""
        sink, request_head = self._sink, request.head
        ends = self._ends_of(request.direction, capture, client)
        packet: i64 = request.packet & _NUMBER_MASK
        sink.shared(ends.start)
        sink.number("packet", packet)
        sink.time("time", request.ts)
        sink.number("request_packet", packet)
        sink.number("place", 0)
        names = self._names.get(request_head.code) if event == STORED else None
        if names is None:
            names = sink.part("event", [event, request_name(request_head.code)])
            if event == STORED and len(self._names) < _MOST_NAMES:
                self._names[request_head.code] = names
        sink.shared(names)
        remark = request_head.remark
        if response is None:
            sink.null("response_code")
            sink.null("response_name")
            sink.text("remark", shown_remark(remark) if remark else None)
            sink.null("latency_us")
            is_over = request.flag & 2 == 0
            sink.text("end", conversation_end(request.direction.conversation) if is_over else None)
            sink.text("client_address", request.direction.src)
            sink.text("client_id", client)
            sink.text("server_address", request.direction.peer.src)
            return
        head = response.head
        if head.code == 0:
            sink.shared(self._succeeded)
        else:
            sink.number("response_code", head.code)
            name = response_name(head.code, request_head.code, int(head.version))
            sink.text("response_name", name)
        remark = head.remark or remark
        sink.text("remark", shown_remark(remark) if remark else None)
        sink.number("latency_us", (response.ts - request.ts) // 1000)
        sink.shared(ends.who)

    def _write_stored_place(self, response_view: HeaderView | None) -> None:
        """Write the broker's message id, and the commit log offset in it."""
        sink = self._sink
        if response_view is None:
            sink.null("offset_msg_id")
            sink.null("commit_log_offset")
            return
        place: i64 = response_view.msg_id
        put_text(sink, "offset_msg_id", response_view, place)
        if response_view.is_plain:
            offset: i64 = physical_offset_at(response_view.data, place >> 32, place & PLACE_END)
            if offset >= 0:
                sink.number("commit_log_offset", offset)
            else:
                sink.null("commit_log_offset")
        else:
            text = response_view.text(place)
            sink.value("commit_log_offset", physical_offset_of(text) if text else None)

    def _properties_of(self, request: Pdu, view: HeaderView, limit: int) -> dict[str, str]:
        """Return the properties of a send, or none if the view has all that is needed."""
        place: i64 = view.topic
        topic = view.data[place >> 32 : place & PLACE_END]
        if topic != self._topic:
            self._topic = topic
            self._is_usual = names_itself(view.text(place) or "")
        # Most sends: the view has found keys, tags, and unique key; nothing else is needed.
        if self._is_usual and not limit and not view.is_special:
            return _NO_PROPERTIES
        fields = request.command.ext_fields
        return decode_properties(fields.get(send_fields_of(view.code).properties) or "")

    def _ends_of(self, direction: Direction, capture: str, client: str | None) -> _Ends:
        """Return the parts shared by the rows of sends in a direction."""
        # Identity is enough: an equal text in another object only costs a new part.
        ends = self._ends.get(direction.key)
        if (
            ends is None
            or ends.conversation != direction.conversation.number
            or ends.capture is not capture
            or ends.client is not client
        ):
            if len(self._ends) >= _MOST_ENDS:
                self._ends.clear()
            sink = self._sink
            start = sink.part("capture", [capture, int(direction.conversation.number)])
            who = sink.part("end", [None, direction.src, client, direction.peer.src])
            ends = self._ends[direction.key] = _Ends(capture, client, direction, start, who)
        return ends


@final
class FactsReader:
    """Extracts facts from decoded stored messages, delivered to a group or only viewed."""

    __slots__ = ("_groups", "_record", "_sink", "_writer")

    def __init__(self, group: str | None) -> None:
        self._record = RecordView()
        self._record.begin(group)
        self._sink = ObjectSink(Facts)
        self._groups = self._sink.part("consumer_group", [group])
        self._writer = MessageWriter(self._sink)

    def facts_of(
        self, message: StoredMessage, body_limit: int, budget: Budget | None = None
    ) -> Facts:
        """Return the facts of a message, with at most `limit` bytes of its body."""
        form, body = body_of(message, body_limit, budget)
        self._record.take(message)
        self._writer.write_record(self._record, self._groups, form, body)
        self._sink.end()
        (facts,) = self._sink.take()
        assert isinstance(facts, Facts)
        return facts


def event_of(request: HeaderView, response_view: HeaderView | None) -> str:
    """Return the event that a send shows of its message."""
    if response_view is None:
        return SENT
    if response_view.code not in STORED_CODES:
        return REFUSED
    if _is_half(request):
        return PREPARED
    start: i64 = request.topic >> 32
    if request.topic == ABSENT or not request.data.startswith(b"%", start):
        return STORED
    topic = request.text(request.topic) or ""
    if topic.startswith(DLQ_PREFIX):
        return DEAD
    # A consumer that cannot return a message sends it to its retry topic.
    return RETURNED if topic.startswith(RETRY_PREFIX) else STORED


def _is_half(view: HeaderView) -> bool:
    flags: i64 = view.number(view.sys_flag)
    return flags != NOTHING and flags & _TRANSACTION == _PREPARED


def _due_time(response_view: HeaderView | None, properties: dict[str, str]) -> int | None:
    text = response_view.text(response_view.recall_handle) if response_view is not None else None
    handle = decode_recall_handle(text) if text else None
    if handle is not None:
        return time_of_ms(handle.deliver_time)
    return deliver_time_of(properties) if properties else None


def _put_ms(sink: RowSink, name: str, ms: i64) -> None:
    """Write a time in milliseconds, or a null if it is implausible."""
    if ms <= 0 or ms > _LAST:
        sink.null(name)
    else:
        sink.time(name, ms * _PER_MS)
