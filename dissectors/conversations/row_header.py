"""Headers as a row needs them: read from their bytes without making the rest.

A row takes a few of the ext fields. Of the headers that come most (sends, other plain requests,
good answers, as Java writes them) only those are made, the others are passed over by the reader of
JSON; any other header is decoded whole. What is passed over must be what `decode_header` takes, so
a header with nested values is decoded whole, too.

RocketMQ: RemotingCommand.headerDecode, SendMessageRequestHeaderV2, PullMessageResponseHeader.
"""

from __future__ import annotations

from typing import Any, Final, cast, final

import msgspec
from msgspec.structs import astuple
from mypy_extensions import i64, mypyc_attr

from ..foreign import read_json
from ..remoting.code_sets import SENDS, V1_SENDS, V2_SENDS
from ..remoting.codes import RequestCode
from ..remoting.command import Int32, RemotingCommand
from ..remoting.header_codec import JSON_TYPE, first_code_of
from ..remoting.row_facts.ext_fields import HEADER_FACTS, PULLS
from ..remoting.send_fields import RPC_BROKER_NAME, V1, V2, SendFields

_OPENS_LIST: Final = 0x5B
"""`[`"""

BROKER_NAME: Final = "brokerName"
"""Broker name among the fields of some requests."""
SPECIAL_REQUESTS: Final = (HEADER_FACTS - PULLS - SENDS) | {int(RequestCode.REGISTER_BROKER)}
"""Requests of which a row takes ext fields that others do not have."""


@mypyc_attr(acyclic=True)
class RowHeader:
    """What a header says, without its ext fields."""

    __slots__ = ("code", "flag", "language", "opaque", "remark", "version")

    def __init__(
        self, code: int, flag: i64, language: str, opaque: int, remark: str | None, version: i64
    ) -> None:
        self.code = code
        """request code, or response code"""
        self.flag: i64 = flag
        self.language = language
        self.opaque = opaque
        self.remark = remark
        self.version: i64 = version


@final
@mypyc_attr(acyclic=True)
class SentHeader(RowHeader):
    """The header of a send."""

    __slots__ = (
        "broker_name", "group", "properties", "queue_id", "reconsume_times", "sys_flag", "topic",
    )  # fmt: skip

    def __init__(
        self, code: int, flag: i64, language: str, opaque: int, remark: str | None, version: i64
    ) -> None:
        super().__init__(code, flag, language, opaque, remark, version)
        self.group: str | None = None
        self.topic: str | None = None
        self.queue_id: str | None = None
        self.broker_name: str | None = None
        self.properties: str | None = None
        self.sys_flag: str | None = None
        self.reconsume_times: str | None = None


@final
@mypyc_attr(acyclic=True)
class PlainHeader(RowHeader):
    """The header of a request that is none of SENDS and SPECIAL_REQUESTS."""

    __slots__ = ("asked_offset", "broker_name", "group", "offset", "queue_id", "topic")

    def __init__(
        self, code: int, flag: i64, language: str, opaque: int, remark: str | None, version: i64
    ) -> None:
        super().__init__(code, flag, language, opaque, remark, version)
        self.group: str | None = None
        self.topic: str | None = None
        self.queue_id: str | None = None
        self.broker_name: str | None = None
        self.offset: str | None = None
        """offset in the queue that it is about"""
        self.asked_offset: str | None = None
        """offset from which a pull asks for messages"""


@final
@mypyc_attr(acyclic=True)
class AnswerHeader(RowHeader):
    """The header of an answer with code 0."""

    __slots__ = (
        "max_offset", "min_offset", "msg_id", "next_offset", "queue_id", "queue_offset",
        "suggested_broker",
    )  # fmt: skip

    def __init__(
        self, code: int, flag: i64, language: str, opaque: int, remark: str | None, version: i64
    ) -> None:
        super().__init__(code, flag, language, opaque, remark, version)
        self.msg_id: str | None = None
        self.queue_id: str | None = None
        self.queue_offset: str | None = None
        self.next_offset: str | None = None
        self.min_offset: str | None = None
        self.max_offset: str | None = None
        self.suggested_broker: str | None = None


_Wires = tuple[str, ...]


def _wires_of_send(names: SendFields) -> _Wires:
    brokers = (
        (RPC_BROKER_NAME, BROKER_NAME) if names is V1 else (names.broker_name, RPC_BROKER_NAME)
    )
    return (
        names.producer_group, names.topic, names.queue_id, names.sys_flag, names.properties,
        names.reconsume_times, *brokers,
    )  # fmt: skip


_V1_WIRES: Final[_Wires] = _wires_of_send(V1)
_V2_WIRES: Final[_Wires] = _wires_of_send(V2)
_PLAIN_WIRES: Final[_Wires] = (
    "topic", "originTopic", "consumerGroup", "group", "producerGroup", "queueId",
    RPC_BROKER_NAME, BROKER_NAME, "queueOffset", "commitOffset", "offset",
)  # fmt: skip
_ANSWER_WIRES: Final[_Wires] = (
    "queueId", "msgId", "queueOffset", "offset", "suggestWhichBrokerId", "nextBeginOffset",
    "minOffset", "maxOffset",
)  # fmt: skip

_Text = str | None
_Head = tuple[int, object, i64, str, int, _Text, i64]
_Eight = tuple[_Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text]
_Eleven = tuple[
    _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text
]  # fmt: skip


def _decoder_of(wires: _Wires) -> msgspec.json.Decoder[Any]:
    """Return what reads headers with these ext fields; members in the order in which Java writes
    them.
    """
    names = [(f"x{at}", str | None, None) for at in range(len(wires))]
    rename = {f"x{at}": wire for at, wire in enumerate(wires)}
    fields = msgspec.defstruct("Fields", names, rename=rename, gc=False)
    members: list[tuple[str, Any, Any] | tuple[str, Any]] = [
        ("code", Int32),
        ("fields", fields | None, None),
        ("flag", Int32, 0),
        ("language", str, ""),
        ("opaque", Int32),
        ("remark", str | None, None),
        ("version", Int32, 0),
    ]
    head = msgspec.defstruct(
        "Head", members, rename={"fields": "extFields"}, gc=False, kw_only=True
    )
    return msgspec.json.Decoder(head)


_V1: Final = _decoder_of(_V1_WIRES)
_V2: Final = _decoder_of(_V2_WIRES)
_PLAIN: Final = _decoder_of(_PLAIN_WIRES)
_ANSWER: Final = _decoder_of(_ANSWER_WIRES)


def row_header_of(serialize_type: i64, header: bytes) -> RowHeader | None:
    """Return what a row needs of a header; None where it must be decoded whole to be known."""
    code: i64 = first_code_of(header) if serialize_type == JSON_TYPE else -1
    if code < 0 or _OPENS_LIST in header:  # with b"[" the search would take ten times as long
        return None
    if header.rfind(b"{") != header.find(b"{", 1):
        return None
    if code == 0:
        return _answer_of(header)
    wire_code = int(code)
    if wire_code in V2_SENDS:
        return _send_of(header, _V2)
    if wire_code in V1_SENDS:
        return _send_of(header, _V1)
    return None if wire_code in SPECIAL_REQUESTS else _plain_of(header)


def _send_of(header: bytes, decoder: msgspec.json.Decoder[Any]) -> RowHeader | None:
    head = read_json(decoder, header)
    if head is None:
        return None
    code, fields, flag, language, opaque, remark, version = cast(_Head, astuple(head))
    if flag & 1 or fields is None:
        return None
    found = SentHeader(code, flag, language, opaque, remark, version)
    _take_send(found, cast(_Eight, _values(fields)))
    return found


def _plain_of(header: bytes) -> RowHeader | None:
    head = read_json(_PLAIN, header)
    if head is None:
        return None
    code, fields, flag, language, opaque, remark, version = cast(_Head, astuple(head))
    if flag & 1:
        return None
    found = PlainHeader(code, flag, language, opaque, remark, version)
    if fields is not None:
        _take_plain(found, cast(_Eleven, _values(fields)))
    return found


def _answer_of(header: bytes) -> RowHeader | None:
    head = read_json(_ANSWER, header)
    if head is None:
        return None
    code, fields, flag, language, opaque, remark, version = cast(_Head, astuple(head))
    if flag & 1 == 0:
        return None
    found = AnswerHeader(code, flag, language, opaque, remark, version)
    if fields is not None:
        _take_answer(found, cast(_Eight, _values(fields)))
    return found


def _values(fields: Any) -> object:
    return astuple(fields)


def _take_send(found: SentHeader, values: _Eight) -> None:
    found.group = values[0]
    found.topic = values[1]
    found.queue_id = values[2]
    found.sys_flag = values[3]
    found.properties = values[4]
    found.reconsume_times = values[5]
    found.broker_name = values[6] or values[7]


def _take_plain(found: PlainHeader, values: _Eleven) -> None:
    found.topic = values[0] or values[1]
    found.group = values[2] or values[3] or values[4]
    found.queue_id = values[5]
    found.broker_name = values[6] or values[7]
    found.asked_offset = values[8]
    found.offset = values[8] or values[9] or values[10]


def _take_answer(found: AnswerHeader, values: _Eight) -> None:
    found.queue_id = values[0]
    found.msg_id = values[1]
    found.queue_offset = values[2] or values[3]
    found.suggested_broker = values[4]
    found.next_offset = values[5]
    found.min_offset = values[6]
    found.max_offset = values[7]


def header_of_command(command: RemotingCommand) -> RowHeader:
    """Return what a row needs of a command that was decoded whole."""
    code, flag, language = command.code, command.flag, command.language
    opaque, remark, version = command.opaque, command.remark, command.version
    fields = command.ext_fields
    if flag & 1:
        if code != 0:
            return RowHeader(code, flag, language, opaque, remark, version)
        answer = AnswerHeader(code, flag, language, opaque, remark, version)
        _take_answer(answer, cast(_Eight, _values_in(fields, _ANSWER_WIRES)))
        return answer
    if code in SENDS:
        send = SentHeader(code, flag, language, opaque, remark, version)
        wires = _V2_WIRES if code in V2_SENDS else _V1_WIRES
        _take_send(send, cast(_Eight, _values_in(fields, wires)))
        return send
    if code in SPECIAL_REQUESTS:
        return RowHeader(code, flag, language, opaque, remark, version)
    plain = PlainHeader(code, flag, language, opaque, remark, version)
    _take_plain(plain, cast(_Eleven, _values_in(fields, _PLAIN_WIRES)))
    return plain


def _values_in(fields: dict[str, str], wires: _Wires) -> object:
    get = fields.get
    return tuple([get(wire) for wire in wires])


def bare_header_of(command: RemotingCommand) -> RowHeader:
    """Return what a command says without its ext fields."""
    return RowHeader(
        command.code, command.flag, command.language, command.opaque, command.remark,
        command.version,
    )  # fmt: skip
