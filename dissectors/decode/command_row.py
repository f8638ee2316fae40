"""A command as one row with nothing left out: the wire's fields, typed ones, the body taken apart.

Rules: credentials are masked in both forms of the header and by the body decoders; the bodies of
applications' messages are never changed. A body that nobody understands is given as text where it
is UTF-8 and as base64 otherwise, and says which. What is shown of bodies is bounded, also after
decompression, so that a row is no bomb. RocketMQ: RemotingCommand.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from ..budget import Budget
from ..conversations.conversation import Pdu
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..remoting.bodies import Body, body_form, body_value, decode_body, message_value
from ..remoting.bodies.body import RAW
from ..remoting.bodies.custom import take_problems
from ..remoting.code_names import request_name, response_name
from ..remoting.headers import TypedHeader, mask_secret, typed_header
from ..remoting.ids.parts import header_parts, property_parts
from ..remoting.versions import version_name
from ..rows.column import Description, columns_of
from ..rows.tables import encodable_value
from ..tcp.capture import capture_index, packet_number
from ..times import text_of_time
from .pipeline import CommandSeen

WHOLE: Final = 4 * 1024 * 1024
"""bytes that are shown of one body where all is wanted: a broker's default for a message"""
ROW_BUDGET: Final = 32 * 1024 * 1024
"""bytes that are shown of all bodies in one command: what decompresses to more is cut"""
NO_REQUEST: Final = -1
"""request code of a response whose request was not seen; no operation has it"""

REQUEST, RESPONSE, ONEWAY = "request", "response", "oneway"


class CommandRow(msgspec.Struct, gc=False):
    """A command, all that is known of it."""

    capture: Annotated[str, Description("name of the capture file", "the file")]
    packet: Annotated[int, Description("packet that completed the command", "capture")]
    time: Annotated[str, Description("time of that packet", "capture", type="time")]
    conversation: Annotated[int, Description("number of the TCP connection", "TCP")]
    src: Annotated[str, Description("`address:port` of the sender", "IP and TCP header")]
    dst: Annotated[str, Description("`address:port` of the receiver", "IP and TCP header")]
    kind: Annotated[str, Description("`request`, `response` or `oneway`", "flag")]
    code: Annotated[int, Description("request or response code, the real one", "frame header")]
    name: Annotated[str, Description("its name", "RequestCode, ResponseCode")]
    opaque: Annotated[int, Description("number that pairs request and response", "frame header")]
    flag: Annotated[int, Description("bit 0 response, bit 1 oneway", "frame header")]
    language: Annotated[str | None, Description("language of the sender", "frame header")]
    version: Annotated[int, Description("MQVersion ordinal of the sender", "frame header")]
    version_name: Annotated[str, Description("its name", "MQVersion")]
    serialize_type: Annotated[str, Description("`JSON` or `ROCKETMQ`", "frame prefix")]
    remark: Annotated[
        str | None, Description("remark, usually the error text of a response", "frame header")
    ]
    ext_fields: Annotated[
        dict[str, str], Description("ext fields as on the wire; credentials masked", "header")
    ]
    header_name: Annotated[str | None, Description("Java class of the ext fields", "operation")]
    header: Annotated[
        dict[str, object], Description("ext fields by long name and typed", "ext fields")
    ]
    header_parts: Annotated[
        dict[str, object] | None,
        Description("ids, receipts, … of `header` taken apart", "ext fields"),
    ]
    body: Annotated[
        dict[str, object] | None,
        Description("the body taken apart: `kind` and `value`, see below", "body"),
    ]
    messages: Annotated[
        list[dict[str, object]] | None, Description("messages in the body, see below", "body")
    ]
    header_length: Annotated[int, Description("length of the header", "frame prefix", unit="bytes")]
    body_length: Annotated[
        int, Description("length of the body on the wire", "frame prefix", unit="bytes")
    ]
    missing: Annotated[
        int, Description("bytes of the body that the capture does not have", "TCP", unit="bytes")
    ]
    request_packet: Annotated[
        int | None, Description("of a response: packet of its request", "pairing")
    ]
    request_code: Annotated[
        int | None, Description("of a response: code of its request", "pairing")
    ]
    request_name: Annotated[
        str | None, Description("of a response: name of its request", "pairing")
    ]
    latency_us: Annotated[
        int | None, Description("of a response: time since its request", "pairing", unit="µs")
    ]
    expert: Annotated[
        list[dict[str, object]],
        Description("findings: `kind`, `severity`, `detail`, `offset`", "ExpertKind"),
    ]


COMMAND_COLUMNS: Final = columns_of(CommandRow)


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


def body_of(seen: CommandSeen, budget: Budget | None = None) -> Body:
    """Return the body taken apart, as far as it was captured and `budget` has room for it."""
    pdu = seen.pdu
    command = pdu.command
    body = decode_body(
        operation_code_of(seen),
        command.is_response,
        command.code,
        pdu.body,
        command.ext_fields,
        command.version,
        budget,
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


def shown_messages(
    seen: CommandSeen, body: Body, limit: int, budget: Budget | None = None
) -> list[dict[str, object]] | None:
    """Return the messages of a body in JSON types; None where it has none.

    Where properties can be taken apart, the message has `parts`: property → its parts.
    """
    if not body.messages:
        return None
    left = ROW_BUDGET
    shown = []
    for message in body.messages:
        wanted = min(limit, left)
        if budget is not None and message.compression is not None and budget.room < wanted:
            budget.end(f"packet {packet_number(seen.pdu.packet)}, offset {seen.pdu.offset}")
        value = message_value(message, wanted, budget)
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
    said = any(info.kind is ExpertKind.BAD_BODY for info in found)
    if body.problem is not None and known and not pdu.missing and not said:
        say(ExpertKind.BAD_BODY, body.problem)
    for number, message in enumerate(body.messages, 1):
        if message.crc_ok is False or message.properties_crc_ok is False:
            say(ExpertKind.BAD_MESSAGE, f"message {number} does not fit its CRC")
    return found


def plugin_findings(seen: CommandSeen) -> list[ExpertInfo]:
    """Return what went wrong in plug-ins that looked at the messages of a command."""
    return [seen.pdu.say(ExpertKind.BAD_BODY, text) for text in take_problems()]


def shown_finding(info: ExpertInfo) -> dict[str, object]:
    """Return a finding in JSON types."""
    return {
        "kind": info.kind.name,
        "severity": info.kind.severity.name.lower(),
        "detail": info.detail,
        "offset": info.offset if info.offset >= 0 else None,
    }


class TakenApart(NamedTuple):
    """A command's header and body in JSON types."""

    header: TypedHeader
    header_parts: dict[str, object] | None
    body: dict[str, object] | None
    messages: list[dict[str, object]] | None
    findings: list[ExpertInfo]


def taken_apart(seen: CommandSeen, limit: int, budget: Budget | None = None) -> TakenApart:
    """Return what header and body of a command say, `limit` bytes of a body at most."""
    if budget is not None:
        budget.earn(seen.pdu.header_length + len(seen.pdu.body))
    try:
        header, body = header_of(seen), body_of(seen, budget)
        shown = shown_body(body, seen.pdu.body, limit)
        messages = shown_messages(seen, body, limit, budget)
        findings = [*findings_of(seen, header, body), *plugin_findings(seen)]
        return TakenApart(header, header_parts_of(seen, header), shown, messages, findings)
    except Exception as error:  # the last line of defence: one command never ends a run
        fields: dict[str, object] = dict(shown_ext_fields(seen.pdu.command.ext_fields))
        header, body = TypedHeader(None, fields, ()), Body(RAW, problem=undecoded(error))
        seen.pdu.say(ExpertKind.BAD_BODY, undecoded(error))
        shown = shown_body(body, seen.pdu.body, limit)
        return TakenApart(header, None, shown, None, list(seen.pdu.expert or ()))


def _of_request(get: Callable[[Pdu], Any]) -> Callable[[CommandSeen], Any]:
    return lambda seen: None if seen.request is None else get(seen.request)


VALUES: Final[Mapping[str, Callable[[CommandSeen], Any]]] = {
    "packet": lambda seen: packet_number(seen.pdu.packet),
    "conversation": lambda seen: seen.pdu.conversation,
    "src": lambda seen: seen.pdu.src,
    "dst": lambda seen: seen.pdu.dst,
    "kind": lambda seen: kind_of(seen.pdu),
    "code": lambda seen: seen.pdu.command.code,
    "name": name_of,
    "opaque": lambda seen: seen.pdu.command.opaque,
    "flag": lambda seen: seen.pdu.command.flag,
    "language": lambda seen: seen.pdu.command.language or None,
    "version": lambda seen: seen.pdu.command.version,
    "version_name": lambda seen: version_name(seen.pdu.command.version),
    "serialize_type": lambda seen: seen.pdu.command.serialize_type,
    "remark": lambda seen: seen.pdu.command.remark,
    "header_length": lambda seen: seen.pdu.header_length,
    "body_length": lambda seen: seen.pdu.body_length,
    "missing": lambda seen: seen.pdu.missing,
    "request_packet": _of_request(lambda pdu: packet_number(pdu.packet)),
    "request_code": _of_request(lambda pdu: pdu.command.code),
    "request_name": request_name_of,
    "latency_us": lambda seen: None if seen.latency is None else seen.latency // 1000,
}
"""Column → its value, of the columns that rows and filters have alike and that need no body."""


def command_row_of(
    seen: CommandSeen,
    captures: Sequence[str],
    limit: int = WHOLE,
    budget: Budget | None = None,
) -> CommandRow:
    """Return the row of a command; `captures` are the names by index, `limit` bytes of a body."""
    apart = taken_apart(seen, limit, budget)
    return CommandRow(
        capture=captures[capture_index(seen.pdu.packet)],
        time=text_of_time(seen.pdu.ts),
        ext_fields=shown_ext_fields(seen.pdu.command.ext_fields),
        header_name=apart.header.name,
        header=apart.header.fields,
        header_parts=apart.header_parts,
        body=apart.body,
        messages=apart.messages,
        expert=[shown_finding(info) for info in apart.findings],
        **{name: get(seen) for name, get in VALUES.items()},
    )


_ENCODER = msgspec.json.Encoder()


def json_of(row: CommandRow) -> bytes:
    """Return the row as one line of JSON."""
    try:
        return _ENCODER.encode(row) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair: a JSON header or body can bring one
        return _ENCODER.encode(encodable_value(msgspec.to_builtins(row))) + b"\n"
