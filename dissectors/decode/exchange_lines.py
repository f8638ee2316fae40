"""Exchanges as lines of JSON, most of them written straight from the bytes of their headers.

An exchange of which both headers were read where they stand (`ScannedHeader`) needs neither a row
nor a text of its own: its values are copied. Any other one, and one with a finding, becomes a row
(`records_of`) and is encoded. Tests hold both ways to the same lines, and the fields to
`ExchangeRecord`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

import msgspec
from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from ..conversations.conversation import Direction, Pdu
from ..conversations.handshake import round_trip_of
from ..conversations.scanned_header import ODD, SENT, ScannedHeader
from ..expert import ExpertInfo
from ..json_bytes import ABSENT, NOTHING, put_number, put_place, put_property
from ..remoting.code_names import REQUEST_NAMES
from ..remoting.versions import VERSIONS
from ..rows.encoded import Lines
from ..rows.json_rows import struct_encoder
from ..rows.line_ends import add_ends
from ..rows.outcome import OK
from ..rows.record import ANSWERED, COLUMNS, ONEWAY, ExchangeRecord
from ..rows.timed_rows import TimeWriter
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import SUCCESS, Exchange
from .exchange_row import COUNTED, facts, records_of, settled_by

_ENCODER: Final = msgspec.json.Encoder()
_NULL: Final = b"null"
_NUMBER_MASK: Final[i64] = (1 << CAPTURE_SHIFT) - 1
_LATEST: Final = (1 << 62) - 1
"""nanoseconds up to which a time is taken apart here"""
_VERSIONS: Final[i64] = len(VERSIONS)


def is_plain(exchange: Exchange) -> bool:
    """Return whether all but the numbers in an exchange can be copied."""
    request, response = exchange.request, exchange.response
    if request is None or request.expert is not None:
        return False
    if not isinstance(request.head, ScannedHeader):
        return False
    if response is None:
        return request.flag & 2 != 0
    if response.expert is not None:
        return False
    return isinstance(response.head, ScannedHeader)


@final
class PlainExchange:
    """The headers of a plain exchange, and the numbers that are read from where they stand."""

    __slots__ = ("_answer", "_asked", "queue_id", "queue_offset")

    def __init__(self) -> None:
        self._asked: ScannedHeader | None = None
        self._answer: ScannedHeader | None = None
        self.queue_id: i64 = NOTHING
        self.queue_offset: i64 = NOTHING

    @property
    def asked(self) -> ScannedHeader:
        """The header of the request that was read last."""
        assert self._asked is not None
        return self._asked

    @property
    def answer(self) -> ScannedHeader | None:
        """The header of its response; None: it is oneway."""
        return self._answer

    def read(self, request: Pdu, response: Pdu | None) -> bool:
        """Read the two of a plain exchange; False where one is odd."""
        asked = request.head
        assert isinstance(asked, ScannedHeader)
        queue_id: i64 = asked.number(asked.queue_id)
        queue_offset: i64 = asked.number(asked.offset)
        if queue_id == ODD or queue_offset == ODD or not 0 <= request.ts <= _LATEST:
            return False
        self._answer = None
        if response is not None:
            answer = response.head
            assert isinstance(answer, ScannedHeader)
            answered: i64 = answer.number(answer.queue_id)
            offset: i64 = answer.number(answer.queue_offset)
            if answered == ODD or offset == ODD or not 0 <= response.ts <= _LATEST:
                return False
            if answered != NOTHING and (queue_id == NOTHING or answer.msg_id != ABSENT):
                queue_id = answered
            if offset != NOTHING:
                queue_offset = offset
            self._answer = answer
        self._asked = asked
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        version: i64 = asked.version
        return 0 <= version < _VERSIONS


@final
class ExchangeLines:
    """Lines of exchanges that wait to be taken."""

    __slots__ = (
        "_captures", "_codes", "_encode", "_ends", "_experts", "_out", "_plain",
        "_times", "_versions",
    )  # fmt: skip

    def __init__(
        self, captures: list[str], experts: list[ExpertInfo], with_ends: bool = False
    ) -> None:
        """Take the names of the run's captures, and where findings about rows go.

        `with_ends`: `take_ends` is asked for.
        """
        self._captures = captures
        self._experts = experts
        columns = [(column.name, column.type) for column in COLUMNS]
        self._encode = struct_encoder(ExchangeRecord, columns, kept=False)
        self._out = BytesWriter()
        self._ends = BytesWriter() if with_ends else None
        self._codes: dict[int, bytes] = {}
        self._versions: list[bytes] = [
            b',"version":%d,"version_name":%s,"serialize_type":"JSON"'
            % (number, _ENCODER.encode(name))
            for number, name in enumerate(VERSIONS)
        ]
        self._times = TimeWriter()
        self._plain = PlainExchange()

    def lines_of(self, exchanges: list[Exchange]) -> bytes:
        """Return the lines of exchanges."""
        odd: list[Exchange] = []
        ends = self._ends
        for exchange in exchanges:
            if is_plain(exchange):
                if odd:
                    self._write_rows(odd)
                    odd = []
                if self._write(exchange):
                    if ends is not None:
                        write_i64_le(ends, len(self._out))
                    continue
            odd.append(exchange)
        if odd:
            self._write_rows(odd)
        taken = self._out.getvalue()
        self._out.truncate(0)
        return taken

    def _write_rows(self, exchanges: list[Exchange]) -> None:
        """Write exchanges as rows: together they take less than one by one."""
        lines = self._encode(records_of(exchanges, self._captures, self._experts))
        if self._ends is not None:
            add_ends(self._ends, lines, len(self._out))
        self._out.write(lines)

    def take_ends(self) -> bytes:
        """Return where each of the lines ends since the last call: a 64-bit integer each."""
        assert self._ends is not None
        taken = self._ends.getvalue()
        self._ends.truncate(0)
        return taken

    def _write(self, exchange: Exchange) -> bool:
        """Write the line of a plain exchange; False, and nothing written, where it is odd."""
        request, response = exchange.request, exchange.response
        assert request is not None
        plain = self._plain
        if not plain.read(request, response):
            return False
        asked, answer = plain.asked, plain.answer
        code = self._codes.get(asked.code) or self._new_code(asked.code)
        if not code:
            return False
        try:
            said = self._texts(facts(request, response))
            brokers = self._texts(response.brokers if response is not None else None)
            group = self._group_of(request, asked)
            start = self._start_of(exchange, request.direction)
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        out = self._out
        out.write(start)
        self._write_times(request, response)
        out.write(code)
        self._write_answer(asked, answer)
        out.write(self._versions[asked.version])
        self._write_message(asked, group)
        self._write_sizes(request, response, asked)
        out.write(b',"queue_offset":')
        put_number(out, self._plain.queue_offset)
        out.write(b',"offset_msg_id":')
        if answer is None:
            out.write(_NULL)
        else:
            put_place(out, answer.header, answer.msg_id)
        out.write(b',"rtt_us":')
        rtt: i64 = round_trip_of(request.direction.conversation)
        if rtt >= 0:
            put_number(out, rtt // 1000)
        else:
            out.write(_NULL)
        out.write(b',"end":null,"expert":[],"max_reconsume_times":null,"brokers":')
        out.write(brokers)
        out.write(b',"facts":')
        out.write(said)
        out.write(_ENDED_ONEWAY if answer is None else _ENDED_OK)
        return True

    def _write_times(self, request: Pdu, response: Pdu | None) -> None:
        """Write how an exchange ended and when it was seen."""
        out = self._out
        out.write(_ONEWAY if response is None else _ANSWERED)
        put_number(out, request.packet & _NUMBER_MASK)
        out.write(b',"response_packet":')
        if response is None:
            out.write(b'null,"request_time":')
            self._times.put(out, request.ts)
            out.write(b',"response_time":null,"latency_us":null,"opaque":')
        else:
            put_number(out, response.packet & _NUMBER_MASK)
            out.write(b',"request_time":')
            self._times.put(out, request.ts)
            out.write(b',"response_time":')
            self._times.put(out, response.ts)
            out.write(b',"latency_us":')
            put_number(out, (response.ts - request.ts) // 1000)
            out.write(b',"opaque":')
        opaque: i64 = request.opaque
        put_number(out, opaque)

    def _write_answer(self, asked: ScannedHeader, answer: ScannedHeader | None) -> None:
        """Write what the response is, and the language."""
        out = self._out
        out.write(b',"response_code":null,"response_name":null' if answer is None else _SUCCEEDED)
        remark = (answer.remark if answer is not None else None) or asked.remark
        out.write(b',"remark":')
        out.write(_ENCODER.encode(remark) if remark else _NULL)
        out.write(b',"language":')
        out.write(_JAVA if asked.language == "JAVA" else _ENCODER.encode(asked.language or None))

    def _write_message(self, asked: ScannedHeader, group: bytes | None) -> None:
        """Write which queue and which message an exchange is about."""
        out = self._out
        out.write(b',"topic":')
        put_place(out, asked.header, asked.topic)
        out.write(b',"group":')
        if group is None:
            put_place(out, asked.header, asked.group)
        else:
            out.write(group)
        out.write(b',"queue_id":')
        put_number(out, self._plain.queue_id)
        out.write(b',"broker_name":')
        put_place(out, asked.header, asked.broker_name)
        out.write(b',"unique_key":')
        put_property(out, asked.header, asked.unique_key)
        out.write(b',"keys":')
        put_property(out, asked.header, asked.keys)
        out.write(b',"tags":')
        put_property(out, asked.header, asked.tags)

    def _write_sizes(self, request: Pdu, response: Pdu | None, asked: ScannedHeader) -> None:
        """Write how large an exchange is."""
        out = self._out
        body: i64 = request.body_length
        missing: i64 = request.missing
        if response is not None:
            missing += response.missing
            if body == 0:
                body = response.body_length
        out.write(b',"body_bytes":')
        put_number(out, body)
        out.write(b',"request_bytes":')
        put_number(out, request.frame_bytes)
        out.write(b',"response_bytes":')
        if response is None:
            out.write(_NULL)
        else:
            put_number(out, response.frame_bytes)
        out.write(b',"missing_bytes":')
        put_number(out, missing)
        out.write(b',"message_count":')
        count: i64 = -1
        if asked.kind == SENT:
            count = 1
            if asked.code == COUNTED:
                count = request.message_count
        elif response is not None:
            count = response.message_count
        if count >= 0:
            put_number(out, count)
        else:
            out.write(_NULL)

    def _start_of(self, exchange: Exchange, direction: Direction) -> bytes:
        """Return what the lines of requests of one direction begin with."""
        capture: i64 = settled_by(exchange) >> CAPTURE_SHIFT
        if direction.line_capture != capture:
            direction.line_start = (
                b'{"capture":%s,"conversation":%d,"requester":%s,"responder":%s,"status":'
                % (
                    _ENCODER.encode(self._captures[capture]),
                    direction.conversation.number,
                    _ENCODER.encode(direction.src),
                    _ENCODER.encode(direction.peer.src),
                )
            )
            direction.line_capture = capture
        return direction.line_start

    def _new_code(self, code: int) -> bytes:
        """Return the code of a request with its name; empty where it has none."""
        name = REQUEST_NAMES.get(code)
        if name is None:
            return b""
        text = b',"request_code":%d,"request_name":%s' % (code, _ENCODER.encode(name))
        self._codes[code] = text
        return text

    def _group_of(self, request: Pdu, asked: ScannedHeader) -> bytes | None:
        """Return the groups that a heartbeat names; None: it is that of the header."""
        if request.groups is None or asked.group != ABSENT:
            return None
        return _ENCODER.encode(request.groups)

    def _texts(self, texts: list[str] | None) -> bytes:
        return _ENCODER.encode(texts) if texts else b"[]"


def lines_of(
    captures: list[str],
    chunks: Iterator[list[Exchange]],
    add_experts: Callable[[list[ExpertInfo]], None],
) -> Iterator[Lines]:
    """Yield the rows of exchanges as lines of JSON, chunk by chunk.

    `captures` are the names of the run's captures; findings about rows go to `add_experts`.
    """
    found: list[ExpertInfo] = []
    lines = ExchangeLines(captures, found)
    for batch in chunks:
        data = lines.lines_of(batch)
        if found:
            add_experts(found)
            found.clear()
        yield Lines([data], [len(batch)])


_SUCCEEDED: Final = b',"response_code":0,"response_name":%s' % _ENCODER.encode(SUCCESS)
_ANSWERED: Final = b'%s,"request_packet":' % _ENCODER.encode(ANSWERED)
_ONEWAY: Final = b'%s,"request_packet":' % _ENCODER.encode(ONEWAY)
_ENDED_OK: Final = b',"outcome_class":%s}\n' % _ENCODER.encode(OK)
_ENDED_ONEWAY: Final = b',"outcome_class":%s}\n' % _ENCODER.encode(ONEWAY)
_JAVA: Final = b'"JAVA"'
