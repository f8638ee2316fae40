"""A command as one row with nothing left out: the wire's fields, typed ones, the body taken apart.

Rules: credentials are masked in both forms of the header and by the body decoders; the bodies of
applications' messages are never changed. A body that nobody understands is given as text where it
is UTF-8 and as base64 otherwise, and says which. What is shown of bodies is bounded, also after
decompression, so that a row is no bomb. RocketMQ: RemotingCommand.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from .conversation import Pdu
from .expert import ExpertInfo, ExpertKind
from .pipeline import CommandSeen
from .record import Column
from .remoting.bodies import Body, body_form, body_value, decode_body, message_value
from .remoting.codes import request_name, response_name
from .remoting.headers import TypedHeader, mask_secret, typed_header
from .remoting.parts import header_parts, property_parts
from .remoting.versions import version_name
from .tables import encodable_value
from .tcp.capture import capture_index, packet_number
from .times import text_of_time
from .where_fields import FieldSet, WhereField, field_of_column

WHOLE: Final = 4 * 1024 * 1024
"""bytes that are shown of one body where all is wanted: a broker's default for a message"""
ROW_BUDGET: Final = 32 * 1024 * 1024
"""bytes that are shown of all bodies in one command: what decompresses to more is cut"""
NO_REQUEST: Final = -1
"""request code of a response whose request was not seen; no operation has it"""

REQUEST, RESPONSE, ONEWAY = "request", "response", "oneway"


class CommandRow(msgspec.Struct, gc=False):
    """A command; the columns are documented in `COMMAND_COLUMNS`."""

    capture: str
    packet: int
    time: str
    conversation: int
    src: str
    dst: str
    kind: str
    code: int
    name: str
    opaque: int
    flag: int
    language: str | None
    version: int
    version_name: str
    serialize_type: str
    remark: str | None
    ext_fields: dict[str, str]
    header_name: str | None
    header: dict[str, object]
    header_parts: dict[str, object] | None
    body: dict[str, object] | None
    messages: list[dict[str, object]] | None
    header_length: int
    body_length: int
    missing: int
    request_packet: int | None
    request_code: int | None
    request_name: str | None
    latency_us: int | None
    expert: list[dict[str, object]]


COMMAND_COLUMNS: tuple[Column, ...] = (
    Column("capture", "string", "", "name of the capture file", "the file"),
    Column("packet", "int", "", "packet that completed the command", "capture"),
    Column("time", "time", "", "time of that packet", "capture"),
    Column("conversation", "int", "", "number of the TCP connection", "TCP"),
    Column("src", "string", "", "`address:port` of the sender", "IP and TCP header"),
    Column("dst", "string", "", "`address:port` of the receiver", "IP and TCP header"),
    Column("kind", "string", "", "`request`, `response` or `oneway`", "flag"),
    Column("code", "int", "", "request or response code, the real one", "frame header"),
    Column("name", "string", "", "its name", "RequestCode, ResponseCode"),
    Column("opaque", "int", "", "number that pairs request and response", "frame header"),
    Column("flag", "int", "", "bit 0 response, bit 1 oneway", "frame header"),
    Column("language", "string", "", "language of the sender", "frame header"),
    Column("version", "int", "", "MQVersion ordinal of the sender", "frame header"),
    Column("version_name", "string", "", "its name", "MQVersion"),
    Column("serialize_type", "string", "", "`JSON` or `ROCKETMQ`", "frame prefix"),
    Column("remark", "string", "", "remark, usually the error text of a response", "frame header"),
    Column("ext_fields", "object", "", "ext fields as on the wire; credentials masked", "header"),
    Column("header_name", "string", "", "Java class of the ext fields", "operation"),
    Column("header", "object", "", "ext fields by long name and typed", "ext fields"),
    Column("header_parts", "object", "", "ids, receipts, … of `header` taken apart", "ext fields"),
    Column("body", "object", "", "the body taken apart: `kind` and `value`, see below", "body"),
    Column("messages", "list", "", "messages in the body, see below", "body"),
    Column("header_length", "int", "bytes", "length of the header", "frame prefix"),
    Column("body_length", "int", "bytes", "length of the body on the wire", "frame prefix"),
    Column("missing", "int", "bytes", "bytes of the body that the capture does not have", "TCP"),
    Column("request_packet", "int", "", "of a response: packet of its request", "pairing"),
    Column("request_code", "int", "", "of a response: code of its request", "pairing"),
    Column("request_name", "string", "", "of a response: name of its request", "pairing"),
    Column("latency_us", "int", "µs", "of a response: time since its request", "pairing"),
    Column("expert", "list", "", "findings: `kind`, `severity`, `detail`, `offset`", "ExpertKind"),
)


def kind_of(pdu: Pdu) -> str:
    """Return `request`, `response` or `oneway`."""
    command = pdu.command
    if command.is_response:
        return RESPONSE
    return ONEWAY if command.is_oneway else REQUEST


def operation_code_of(seen: CommandSeen) -> int:
    """Return the request code of a command's operation; NO_REQUEST where that is not known."""
    if not seen.pdu.command.is_response:
        return seen.pdu.command.code
    return seen.request.command.code if seen.request is not None else NO_REQUEST


def name_of(seen: CommandSeen) -> str:
    """Return the name of the command's own code."""
    command = seen.pdu.command
    if not command.is_response:
        return request_name(command.code, command.version)
    asked = seen.request.command.code if seen.request is not None else None
    return response_name(command.code, asked, command.version)


def request_name_of(seen: CommandSeen) -> str | None:
    """Return the name of the request that a response answers, None for what is no response."""
    if not seen.pdu.command.is_response or seen.request is None:
        return None
    return request_name(seen.request.command.code, seen.request.command.version)


def header_of(seen: CommandSeen) -> TypedHeader:
    """Return the ext fields by long name and typed, credentials masked."""
    command = seen.pdu.command
    typed = typed_header(
        operation_code_of(seen), command.is_response, command.ext_fields, command.version
    )
    fields = {name: _masked(name, value) for name, value in typed.fields.items()}
    return typed._replace(fields=fields)


def _masked(name: str, value: object) -> object:
    return mask_secret(name, value) if isinstance(value, str) else value


def shown_ext_fields(ext_fields: Mapping[str, str]) -> dict[str, str]:
    """Return the ext fields as on the wire, credentials masked."""
    return {name: mask_secret(name, value) for name, value in ext_fields.items()}


def body_of(seen: CommandSeen) -> Body:
    """Return the body taken apart, as far as it was captured."""
    pdu = seen.pdu
    command = pdu.command
    body = decode_body(
        operation_code_of(seen),
        command.is_response,
        command.code,
        pdu.body,
        command.ext_fields,
        command.version,
        command.language,
    )
    if command.is_response and seen.request is None and pdu.body:
        return Body(body.kind, body.value, body.messages, "its request was not captured")
    return body


def shown_body(body: Body, raw: bytes, limit: int) -> dict[str, object] | None:
    """Return a body in JSON types without its messages; None where there is no body."""
    if not raw:
        return None
    shown = body_value(Body(body.kind, body.value, (), body.problem, body.notes))
    if body.messages:
        shown.pop("value", None)
    if body.kind == "raw":
        shown |= shown_bytes(raw, limit)
    return shown


def shown_bytes(data: bytes, limit: int) -> dict[str, object]:
    """Return bytes in JSON types: text where they are UTF-8, else base64, and which it is."""
    kept = data[:limit]
    text = _text_of(kept, cut=len(kept) < len(data))
    return {
        "bodySize": len(data),
        "bodyForm": "base64" if text is None else "text",
        "body": base64.b64encode(kept).decode() if text is None else text,
        "bodyTruncated": len(kept) < len(data),
    }


def _text_of(data: bytes, cut: bool) -> str | None:
    """Return UTF-8 as text, less a character that is cut at the end; None where it is none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not cut or error.end < len(data) or len(data) - error.start > 3:
            return None
        text = data[: error.start].decode()
    return None if "\0" in text else text


def header_parts_of(seen: CommandSeen, header: TypedHeader) -> dict[str, object] | None:
    """Return the fields whose texts can be taken apart, with their parts; None where none can."""
    return header_parts(header.name, header.fields, _millis_of(seen)) or None


def _millis_of(seen: CommandSeen) -> int:
    return seen.pdu.ts // 1_000_000


def shown_messages(seen: CommandSeen, body: Body, limit: int) -> list[dict[str, object]] | None:
    """Return the messages of a body in JSON types; None where it has none.

    Where properties can be taken apart, the message has `parts`: property → its parts.
    """
    if not body.messages:
        return None
    left = ROW_BUDGET
    shown = []
    for message in body.messages:
        value = message_value(message, min(limit, left))
        text = value.get("body")
        left -= len(text) if isinstance(text, str) else 0
        left = max(left, 0)
        parts = property_parts(message.properties, message.born_timestamp or _millis_of(seen))
        shown.append(value | {"parts": parts} if parts else value)
    return shown


def findings_of(seen: CommandSeen, header: TypedHeader, body: Body) -> list[ExpertInfo]:
    """Return the findings about a command, with those that only its fields and its body show."""
    pdu = seen.pdu
    found = list(pdu.expert or ())

    def say(kind: ExpertKind, detail: str) -> None:
        found.append(ExpertInfo(kind, detail, pdu.ts, pdu.packet, pdu.conversation, pdu.offset))

    for problem in header.problems:
        say(ExpertKind.BAD_FIELD, problem)
    response = pdu.command.is_response
    known = body_form(operation_code_of(seen), response, pdu.command.version) is not None
    if body.problem is not None and known and not pdu.missing:
        say(ExpertKind.BAD_BODY, body.problem)
    for number, message in enumerate(body.messages, 1):
        if message.crc_ok is False or message.properties_crc_ok is False:
            say(ExpertKind.BAD_MESSAGE, f"message {number} does not fit its CRC")
    return found


def shown_finding(info: ExpertInfo) -> dict[str, object]:
    """Return a finding in JSON types."""
    return {
        "kind": info.kind.name,
        "severity": info.kind.severity.name.lower(),
        "detail": info.detail,
        "offset": info.offset if info.offset >= 0 else None,
    }


def command_row_of(seen: CommandSeen, captures: Sequence[str], limit: int = WHOLE) -> CommandRow:
    """Return the row of a command; `captures` are the names by index, `limit` bytes of a body."""
    pdu = seen.pdu
    command = pdu.command
    header = header_of(seen)
    body = body_of(seen)
    answers = command.is_response and seen.request is not None
    return CommandRow(
        capture=captures[capture_index(pdu.packet)],
        packet=packet_number(pdu.packet),
        time=text_of_time(pdu.ts),
        conversation=pdu.conversation,
        src=pdu.src,
        dst=pdu.dst,
        kind=kind_of(pdu),
        code=command.code,
        name=name_of(seen),
        opaque=command.opaque,
        flag=command.flag,
        language=command.language or None,
        version=command.version,
        version_name=version_name(command.version),
        serialize_type=command.serialize_type,
        remark=command.remark,
        ext_fields=shown_ext_fields(command.ext_fields),
        header_name=header.name,
        header=header.fields,
        header_parts=header_parts_of(seen, header),
        body=shown_body(body, pdu.body, limit),
        messages=shown_messages(seen, body, limit),
        header_length=pdu.header_length,
        body_length=pdu.body_length,
        missing=pdu.missing,
        request_packet=packet_number(seen.request.packet) if answers and seen.request else None,
        request_code=operation_code_of(seen) if answers else None,
        request_name=request_name_of(seen),
        latency_us=None if seen.latency is None else seen.latency // 1000,
        expert=[shown_finding(info) for info in findings_of(seen, header, body)],
    )


_ENCODER = msgspec.json.Encoder()


def json_of(row: CommandRow) -> bytes:
    """Return the row as one line of JSON."""
    try:
        return _ENCODER.encode(row) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair: a JSON header or body can bring one
        return _ENCODER.encode(encodable_value(msgspec.to_builtins(row))) + b"\n"


def command_fields(captures: Sequence[str]) -> FieldSet:
    """Return what a filter of commands can test: the flat columns, and single ext fields."""
    getters = _getters(captures)
    fields = [
        field_of_column(column.name, column.type, column.unit, _of_seen(getters[column.name]))
        for column in COMMAND_COLUMNS
        if column.name in getters
    ]
    latency = _of_seen(getters["latency_us"])
    fields.append(WhereField("latency", "int", latency, "µs", needs_unit=True))
    return FieldSet(fields, {"ext_fields": _ext_field})


def _ext_field(name: str) -> WhereField:
    def get(seen: CommandSeen) -> object:
        return seen.pdu.command.ext_fields.get(name)

    return WhereField(f"ext_fields.{name}", "string", _of_seen(get))


def _of_seen(get: Callable[[CommandSeen], object]) -> Callable[[object], object]:
    """Return a getter for any row; rows of commands are always CommandSeen."""
    return get  # type: ignore[return-value]


def _getters(captures: Sequence[str]) -> dict[str, Callable[[CommandSeen], object]]:
    def of_request(get: Callable[[Pdu], object]) -> Callable[[CommandSeen], object]:
        return lambda s: None if s.request is None else get(s.request)

    return {
        "capture": lambda s: captures[capture_index(s.pdu.packet)],
        "packet": lambda s: packet_number(s.pdu.packet),
        "time": lambda s: s.pdu.ts,
        "conversation": lambda s: s.pdu.conversation,
        "src": lambda s: s.pdu.src,
        "dst": lambda s: s.pdu.dst,
        "kind": lambda s: kind_of(s.pdu),
        "code": lambda s: s.pdu.command.code,
        "name": name_of,
        "opaque": lambda s: s.pdu.command.opaque,
        "flag": lambda s: s.pdu.command.flag,
        "language": lambda s: s.pdu.command.language or None,
        "version": lambda s: s.pdu.command.version,
        "version_name": lambda s: version_name(s.pdu.command.version),
        "serialize_type": lambda s: s.pdu.command.serialize_type,
        "remark": lambda s: s.pdu.command.remark,
        "header_length": lambda s: s.pdu.header_length,
        "body_length": lambda s: s.pdu.body_length,
        "missing": lambda s: s.pdu.missing,
        "request_packet": of_request(lambda pdu: packet_number(pdu.packet)),
        "request_code": of_request(lambda pdu: pdu.command.code),
        "request_name": request_name_of,
        "latency_us": lambda s: None if s.latency is None else s.latency // 1000,
        "expert": lambda s: [info.kind.name for info in s.pdu.expert or ()],
    }
