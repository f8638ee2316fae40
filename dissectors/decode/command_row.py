"""A command as one row with nothing left out: the wire's fields, typed ones, the body taken apart.

Rules: credentials are masked in both forms of the header and by the body decoders; the bodies of
applications' messages are never changed. A body that nobody understands is given as text where it
is UTF-8 and as base64 otherwise, and says which. What is shown of bodies is bounded, also after
decompression, so that a row is not a bomb. RocketMQ: RemotingCommand.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import msgspec

from ..budget import Budget
from ..conversations.conversation import Pdu
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..foreign import read_json
from ..grpc.command import CallCommand
from ..remoting.bodies import Body, body_form, body_value, decode_body
from ..remoting.bodies.body import NONE, RAW
from ..remoting.bodies.custom import take_problems
from ..remoting.bodies.message_texts.sent import SENT_FORM, text_of_sent
from ..remoting.bodies.message_texts.stored import STORED_FORMS, text_of_stored
from ..remoting.bodies.messages import shown_message
from ..remoting.bodies.secrets import has_no_secret, text_without_secrets
from ..remoting.bodies.shown_message import ShownMessage, message_dict
from ..remoting.code_names import request_name, response_name
from ..remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from ..remoting.headers import ShownHeader, TypedHeader, mask_secret, shown_header
from ..remoting.ids.parts import header_parts, property_parts
from ..remoting.messages.orphan_responses import request_code_of_response
from ..remoting.versions import V4_1_0_SNAPSHOT, version_name
from ..rows.command_record import CommandRow
from ..rows.tables import encodable_value
from ..tcp.capture import capture_index, packet_number
from ..times import text_of_time
from .call_body import call_body_of
from .command_order import CommandSeen

WHOLE: Final = 4 * 1024 * 1024
"""bytes that are shown of one body where all is wanted: a broker's default for a message"""
ROW_BUDGET: Final = 32 * 1024 * 1024
"""bytes that are shown of all bodies in one command: what decompresses to more is cut"""
NO_REQUEST: Final = -1
"""request code of a response whose request was not seen; no operation has it"""

REQUEST, RESPONSE, ONEWAY = "request", "response", "oneway"
_NO_BODY: Final = Body(NONE)


def kind_of(pdu: Pdu) -> str:
    """Return `request`, `response` or `oneway`."""
    flag: int = pdu.command.flag
    if flag & RESPONSE_FLAG:
        return RESPONSE
    return ONEWAY if flag & ONEWAY_FLAG else REQUEST


def operation_code_of(seen: CommandSeen) -> int:
    """Return the request code of a command's operation; NO_REQUEST where that is not known."""
    pdu = seen.pdu
    command = pdu.command
    if not command.flag & RESPONSE_FLAG:
        return command.code
    if seen.request is not None:
        return seen.request.command.code
    if isinstance(command, CallCommand):
        return NO_REQUEST
    code = request_code_of_response(command.code, command.ext_fields, pdu.body, pdu.missing)
    return NO_REQUEST if code is None else int(code)


def name_of(seen: CommandSeen) -> str:
    """Return the name of the command's own code."""
    command = seen.pdu.command
    if isinstance(command, CallCommand):
        return command.name
    if not command.flag & RESPONSE_FLAG:
        return request_name(command.code, command.version)
    asked = seen.request.command.code if seen.request is not None else None
    return response_name(command.code, asked, command.version)


def request_name_of(seen: CommandSeen) -> str | None:
    """Return the name of the request that a response answers, None for what is not a response."""
    if seen.request is None or not seen.pdu.command.flag & RESPONSE_FLAG:
        return None
    asked = seen.request.command
    if isinstance(asked, CallCommand):
        return asked.name
    return request_name(asked.code, asked.version)


def header_of(seen: CommandSeen) -> TypedHeader:
    """Return the ext fields by long name and typed, credentials masked."""
    return shown_header_of(seen).shown


def shown_header_of(seen: CommandSeen) -> ShownHeader:
    """Return the ext fields typed, and as they may be shown: credentials masked."""
    command = seen.pdu.command
    response = command.flag & RESPONSE_FLAG != 0
    return shown_header(operation_code_of(seen), response, command.ext_fields, command.version)


def shown_ext_fields(ext_fields: Mapping[str, str]) -> dict[str, str]:
    """Return the ext fields as on the wire, credentials masked."""
    return {name: mask_secret(name, value) for name, value in ext_fields.items()}


def body_of(
    seen: CommandSeen, budget: Budget | None = None, fields: Mapping[str, object] | None = None
) -> Body:
    """Return the body taken apart, as far as it was captured and `budget` has room for it.

    `fields` are the ext fields by long name and typed, nothing masked, where they are known.
    """
    pdu = seen.pdu
    command = pdu.command
    if isinstance(command, CallCommand):
        return call_body_of(pdu, command, budget)
    raw = pdu.body
    if not raw:
        return _NO_BODY
    response = command.flag & RESPONSE_FLAG != 0
    body = decode_body(
        operation_code_of(seen),
        response,
        command.code,
        raw,
        command.ext_fields,
        command.version,
        budget,
        None if response else fields,
    )
    if response and seen.request is None and not body.messages:
        return Body(body.kind, body.value, body.messages, "its request was not captured")
    return body


def shown_body(body: Body, raw: bytes, limit: int) -> dict[str, object] | None:
    """Return a body in JSON types without its messages; None where there is no body."""
    if not raw:
        return None
    # Messages are not shown here, so nothing in their bytes can be a secret that is.
    clean = bool(body.messages) or has_no_secret(raw)
    shown = body_value(body, secrets=clean, messages=False)
    if body.kind == RAW:
        shown |= shown_bytes(raw, limit)
        if shown["bodyForm"] == "text":  # what was to be taken apart may have secrets all the same
            shown["body"] = text_without_secrets(str(shown["body"]))
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


def _may_count_from_noon(command: RemotingCommand) -> bool:
    """Return whether messages are sent by a client whose ids may count from noon."""
    return not command.is_response and 0 < command.version < V4_1_0_SNAPSHOT


def shown_messages(
    seen: CommandSeen, body: Body, limit: int, budget: Budget | None = None
) -> list[ShownMessage] | None:
    """Return the messages of a body in JSON types; None where it has none.

    Where properties can be taken apart, the message has `parts`: property → its parts.
    """
    if not body.messages:
        return None
    left = ROW_BUDGET
    shown: list[ShownMessage] = []
    sound = body.sound
    noon = _may_count_from_noon(seen.pdu.command)
    for message in body.messages:
        wanted = min(limit, left)
        if budget is not None and message.compression is not None and budget.room < wanted:
            budget.end(f"packet {packet_number(seen.pdu.packet)}, offset {seen.pdu.offset}")
        value = shown_message(message, wanted, budget, sound)
        left = max(left - len(value.body), 0)
        parts = property_parts(message.properties, message.born_timestamp or _millis_of(seen), noon)
        if parts:
            value.parts = parts
        shown.append(value)
    return shown


def findings_of(seen: CommandSeen, header: TypedHeader, body: Body) -> list[ExpertInfo]:
    """Return the findings about a command, with those that only its fields and its body show."""
    pdu = seen.pdu
    found = list(pdu.expert) if pdu.expert else []
    for problem in header.problems:
        found.append(_finding(pdu, ExpertKind.BAD_FIELD, problem))
    if body.problem is not None and not pdu.missing:
        response = pdu.command.is_response
        known = body_form(operation_code_of(seen), response, pdu.command.version) is not None
        said = any(info.kind is ExpertKind.BAD_BODY for info in found)
        if known and not said:
            found.append(_finding(pdu, ExpertKind.BAD_BODY, body.problem))
    if body.sound:
        return found
    for number, message in enumerate(body.messages, 1):
        if message.crc_ok is False or message.properties_crc_ok is False:
            detail = f"message {number} does not fit its CRC"
            found.append(_finding(pdu, ExpertKind.BAD_MESSAGE, detail))
    return found


def _finding(pdu: Pdu, kind: ExpertKind, detail: str) -> ExpertInfo:
    return ExpertInfo(kind, detail, pdu.ts, pdu.packet, pdu.conversation, pdu.offset)


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


@final
class TakenApart:
    """A command's header and body in JSON types."""

    def __init__(
        self,
        ext_fields: dict[str, str],
        header: TypedHeader,
        header_parts: dict[str, object] | None,
        body: dict[str, object] | None,
        messages: list[ShownMessage] | msgspec.Raw | None,
        findings: list[ExpertInfo],
    ) -> None:
        self.ext_fields = ext_fields
        self.header = header
        self.header_parts = header_parts
        self.body = body
        self.messages = messages
        self.findings = findings


def taken_apart(
    seen: CommandSeen, limit: int, budget: Budget | None = None, written: bool = False
) -> TakenApart:
    """Return what header and body of a command say, `limit` bytes of a body at most.

    `written`: messages may be JSON already.
    """
    if budget is not None:
        budget.earn(seen.pdu.header_length + len(seen.pdu.body))
    try:
        known = shown_header_of(seen)
        header = known.shown
        parts = header_parts_of(seen, header)
        found = _written_messages(seen, known.typed, limit) if written else None
        if found is not None:
            form, text = found
            findings = findings_of(seen, header, Body(form, sound=True))
            return TakenApart(known.ext_fields, header, parts, {"kind": form}, text, findings)
        body = body_of(seen, budget, known.typed.fields)
        shown = shown_body(body, seen.pdu.body, limit)
        messages = shown_messages(seen, body, limit, budget)
        findings = findings_of(seen, header, body)
        findings += plugin_findings(seen)
        return TakenApart(known.ext_fields, header, parts, shown, messages, findings)
    except Exception as error:  # the last line of defence: one command never ends a run
        ext_fields = shown_ext_fields(seen.pdu.command.ext_fields)
        header = TypedHeader(None, dict(ext_fields), ())
        body = Body(RAW, problem=undecoded(error))
        seen.pdu.say(ExpertKind.BAD_BODY, undecoded(error))
        shown = shown_body(body, seen.pdu.body, limit)
        found_before = list(seen.pdu.expert or ())
        return TakenApart(ext_fields, header, None, shown, None, found_before)


def _written_messages(
    seen: CommandSeen, header: TypedHeader, limit: int
) -> tuple[str, msgspec.Raw] | None:
    """Return the form of a body of messages, and these as JSON; None for other bodies, and where a
    message is odd.
    """
    pdu = seen.pdu
    if not pdu.body or pdu.missing or len(pdu.body) > limit:
        return None
    command = pdu.command
    response = command.flag & RESPONSE_FLAG != 0
    form = body_form(operation_code_of(seen), response, command.version)
    if form is None:
        return None
    text: bytes | None = None
    if form in STORED_FORMS:
        text = text_of_stored(pdu.body, _millis_of(seen))
    elif form == SENT_FORM and not (response or _may_count_from_noon(command)):
        text = text_of_sent(pdu.body, header.fields, _millis_of(seen))
    return None if text is None else (form, msgspec.Raw(text))


def command_row_of(
    seen: CommandSeen,
    captures: Sequence[str],
    limit: int = WHOLE,
    budget: Budget | None = None,
) -> CommandRow:
    """Return the row of a command; `captures` are the names by index, `limit` bytes of a body."""
    apart = taken_apart(seen, limit, budget)
    messages = apart.messages
    named = None
    if isinstance(messages, list):
        named = [message_dict(one) for one in messages]
    return _row_of(seen, captures, apart, named)


def command_line_of(
    seen: CommandSeen,
    captures: Sequence[str],
    limit: int = WHOLE,
    budget: Budget | None = None,
) -> bytes:
    """Return the row of a command as one line of JSON; arguments of `command_row_of`."""
    apart = taken_apart(seen, limit, budget, written=True)
    # Messages are written as what `message_dict` makes of them.
    return json_of(_row_of(seen, captures, apart, apart.messages))


def _row_of(
    seen: CommandSeen, captures: Sequence[str], apart: TakenApart, messages: Any
) -> CommandRow:
    pdu = seen.pdu
    command = pdu.command
    request = seen.request
    request_packet: int | None = None
    request_code: int | None = None
    latency_us: int | None = None
    if request is not None:
        request_packet = packet_number(request.packet)
        request_code = request.command.code
    if seen.latency is not None:
        latency_us = seen.latency // 1000
    expert: list[dict[str, object]] = []
    if apart.findings:
        expert = [shown_finding(info) for info in apart.findings]
    capture, packet = captures[capture_index(pdu.packet)], packet_number(pdu.packet)
    time, kind, name = text_of_time(pdu.ts), kind_of(pdu), name_of(seen)
    request_name = request_name_of(seen)
    header_name, header = apart.header.name, apart.header.fields
    # By position, as `exchange_row.record_of` does it.
    # fmt: off
    return CommandRow(
        capture, packet, time, pdu.conversation, pdu.src, pdu.dst, kind,
        command.code, name, command.opaque, command.flag, command.language or None,
        command.version, version_name(command.version), command.serialize_type, command.remark,
        apart.ext_fields, header_name, header, apart.header_parts, apart.body, messages,
        pdu.header_length, pdu.body_length, pdu.missing, request_packet, request_code,
        request_name, latency_us, expert,
    )
    # fmt: on


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[dict[str, object]])


def json_of(row: CommandRow) -> bytes:
    """Return the row as one line of JSON."""
    try:
        return _ENCODER.encode_lines([row])  # msgspec keeps the iterator of a tuple for ever
    except UnicodeEncodeError:  # half a surrogate pair: a JSON header or body can bring one
        if isinstance(row.messages, msgspec.Raw):
            row.messages = read_json(_DECODER, bytes(row.messages))
        return _ENCODER.encode(encodable_value(msgspec.to_builtins(row))) + b"\n"
