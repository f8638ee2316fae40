"""Headers as a row needs them: what a row takes of sends, other plain requests and good answers.

RocketMQ: RemotingCommand.headerDecode, SendMessageRequestHeaderV2, PullMessageResponseHeader.
"""

from __future__ import annotations

from typing import Final, cast, final

from mypy_extensions import i64, mypyc_attr

from ..remoting.code_sets import SENDS, V2_SENDS
from ..remoting.codes import RequestCode
from ..remoting.command import RemotingCommand
from ..remoting.row_facts.ext_fields import HEADER_FACTS, PULLS
from ..remoting.send_fields import BROKERS, GROUPS, OFFSETS, TOPICS, V1, V2, SendFields

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


Wires = tuple[str, ...]


def _wires_of_send(names: SendFields) -> Wires:
    brokers = BROKERS if names is V1 else (names.broker_name, BROKERS[0])
    return (
        names.producer_group, names.topic, names.queue_id, names.sys_flag, names.properties,
        names.reconsume_times, *brokers,
    )  # fmt: skip


V1_WIRES: Final[Wires] = _wires_of_send(V1)
V2_WIRES: Final[Wires] = _wires_of_send(V2)
PLAIN_WIRES: Final[Wires] = (
    TOPICS[0], TOPICS[1], GROUPS[0], GROUPS[1], GROUPS[2], "queueId",
    BROKERS[0], BROKERS[1], OFFSETS[0], OFFSETS[1], OFFSETS[2],
)  # fmt: skip
ANSWER_WIRES: Final[Wires] = (
    "queueId", "msgId", "queueOffset", "offset", "suggestWhichBrokerId", "nextBeginOffset",
    "minOffset", "maxOffset",
)  # fmt: skip

_Text = str | None
_Eight = tuple[_Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text]
_Eleven = tuple[
    _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text
]  # fmt: skip


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
        _take_answer(answer, cast(_Eight, _values_in(fields, ANSWER_WIRES)))
        return answer
    if code in SENDS:
        send = SentHeader(code, flag, language, opaque, remark, version)
        wires = V2_WIRES if code in V2_SENDS else V1_WIRES
        _take_send(send, cast(_Eight, _values_in(fields, wires)))
        return send
    if code in SPECIAL_REQUESTS:
        return RowHeader(code, flag, language, opaque, remark, version)
    plain = PlainHeader(code, flag, language, opaque, remark, version)
    _take_plain(plain, cast(_Eleven, _values_in(fields, PLAIN_WIRES)))
    return plain


def _values_in(fields: dict[str, str], wires: Wires) -> object:
    get = fields.get
    return tuple([get(wire) for wire in wires])


def bare_header_of(command: RemotingCommand) -> RowHeader:
    """Return what a command says without its ext fields."""
    return RowHeader(
        command.code, command.flag, command.language, command.opaque, command.remark,
        command.version,
    )  # fmt: skip
