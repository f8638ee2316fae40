"""Row of a command with nothing left out: raw fields, typed fields, and the parsed body.

Rules: credentials are masked in both forms of the header and by the body decoders; message bodies
of applications are never changed. Shown body bytes are limited, also after decompression.
RocketMQ: RemotingCommand.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from ..budget import Budget
from ..conversations.conversation import Pdu
from ..findings import Finding, FindingKind, undecoded
from ..grpc.bodies import call_body_of
from ..grpc.command import CallCommand
from ..remoting.bodies.body import NONE, RAW, Body, ShownMessage, message_dict
from ..remoting.bodies.custom import take_problems
from ..remoting.bodies.message_texts import SENT_FORM, STORED_FORMS, text_of_sent, text_of_stored
from ..remoting.bodies.messages import shown_message
from ..remoting.bodies.registry import body_form, body_value, decode_body
from ..remoting.bodies.secrets import (
    data_without_secrets,
    has_no_secret,
    text_without_secrets,
)
from ..remoting.code_names import request_name, response_name
from ..remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from ..remoting.headers import ShownHeader, TypedHeader, mask_secret, shown_header, shown_remark
from ..remoting.ids.parts import header_parts, property_parts
from ..remoting.messages.orphan_responses import request_code_of_response
from ..remoting.versions import V4_1_0_SNAPSHOT, version_name
from ..rows.command_record import COMMAND_COLUMNS, CommandRow
from ..rows.row_sink import JsonSink, ObjectSink, RowSink
from ..tcp.capture import capture_index, packet_number
from ..times import text_of_time
from .command_order import CommandSeen

WHOLE: Final = 4 * 1024 * 1024
"""maximum bytes shown of one body: a broker's default message size limit"""
ROW_BUDGET: Final = 32 * 1024 * 1024
"""maximum bytes shown of all bodies in one command, after decompression"""
NO_REQUEST: Final = -1
"""request code of a response whose request was not seen; not used by any operation"""

REQUEST, RESPONSE, ONEWAY = "request", "response", "oneway"
_NO_BODY: Final = Body(NONE)


def kind_of(pdu: Pdu) -> str:
    """Return `request`, `response` or `oneway`."""
    flag: int = pdu.command.flag
    if flag & RESPONSE_FLAG:
        return RESPONSE
    return ONEWAY if flag & ONEWAY_FLAG else REQUEST


def operation_code_of(seen: CommandSeen) -> int:
    """Return the request code of a command's operation, or NO_REQUEST if unknown."""
    pdu = seen.pdu
    command = pdu.command
    if not command.flag & RESPONSE_FLAG:
        return command.code
    if seen.request is not None:
        return seen.request.command.code
    if isinstance(command, CallCommand):
        return NO_REQUEST
    # A response does not name its operation; only a few show it in their ext fields or body.
    code = request_code_of_response(command.code, command.ext_fields, pdu.body, pdu.missing)
    return NO_REQUEST if code is None else int(code)


def name_of(seen: CommandSeen) -> str:
    """Return the name of the command's own code."""
    command = seen.pdu.command
    if isinstance(command, CallCommand):
        return command.name
    if not command.flag & RESPONSE_FLAG:
        return request_name(command.code)
    request_code = seen.request.command.code if seen.request is not None else None
    return response_name(command.code, request_code, command.version)


def request_name_of(seen: CommandSeen) -> str | None:
    """Return the name of a response's request, or None."""
    if seen.request is None or not seen.pdu.command.flag & RESPONSE_FLAG:
        return None
    request = seen.request.command
    if isinstance(request, CallCommand):
        return request.name
    return request_name(request.code)


def header_of(seen: CommandSeen) -> TypedHeader:
    """Return the typed ext fields by long name, with credentials masked."""
    return shown_header_of(seen).shown


def shown_header_of(seen: CommandSeen) -> ShownHeader:
    """Return the typed ext fields and their display form, with credentials masked."""
    command = seen.pdu.command
    response = command.flag & RESPONSE_FLAG != 0
    return shown_header(operation_code_of(seen), response, command.ext_fields)


def shown_ext_fields(ext_fields: Mapping[str, str]) -> dict[str, str]:
    """Return the ext fields as on the wire, with credentials masked."""
    return {name: mask_secret(name, value) for name, value in ext_fields.items()}


def body_of(
    seen: CommandSeen, budget: Budget | None = None, fields: Mapping[str, object] | None = None
) -> Body:
    """Return the parsed body, as far as captured and within `budget`.

    `fields` are the typed ext fields by long name, unmasked, if already known.
    """
    pdu = seen.pdu
    command = pdu.command
    if isinstance(command, CallCommand):
        return call_body_of(command, pdu.body, budget)
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
        budget,
        None if response else fields,
    )
    # Without its request, a response could be of any operation; only messages are certain.
    if response and seen.request is None and not body.messages:
        return Body(body.kind, body.value, body.messages, "its request was not captured")
    return body


def shown_body(body: Body, raw: bytes, limit: int) -> dict[str, object] | None:
    """Return a body in JSON types without its messages, or None if there is no body."""
    if not raw:
        return None
    # Messages are not shown here, so secrets inside them are not either.
    clean = bool(body.messages) or has_no_secret(raw)
    shown = body_value(body, secrets=clean)
    if body.kind == RAW:
        shown |= shown_bytes(raw, limit)
        # An undecodable body may still contain secrets.
        if shown["bodyForm"] == "text":
            shown["body"] = text_without_secrets(str(shown["body"]))
        else:
            shown["body"] = base64.b64encode(data_without_secrets(raw[:limit])).decode()
    return shown


def shown_bytes(data: bytes, limit: int) -> dict[str, object]:
    """Return bytes in JSON types: as text if UTF-8, otherwise as base64, with a label."""
    kept = data[:limit]
    text = _text_of(kept, cut=len(kept) < len(data))
    return {
        "bodySize": len(data),
        "bodyForm": "base64" if text is None else "text",
        "body": base64.b64encode(kept).decode() if text is None else text,
        "bodyTruncated": len(kept) < len(data),
    }


def _text_of(data: bytes, cut: bool) -> str | None:
    """Return UTF-8 as text, without a truncated last character; None if it is not UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # A character cut at the end leaves at most three of its bytes.
        if not cut or error.end < len(data) or len(data) - error.start > 3:
            return None
        text = data[: error.start].decode()
    return None if "\0" in text else text


def header_parts_of(seen: CommandSeen, header: TypedHeader) -> dict[str, object] | None:
    """Return the parsed parts of structured ext fields, or None."""
    return header_parts(header.name, header.fields, _millis_of(seen)) or None


def _millis_of(seen: CommandSeen) -> int:
    return seen.pdu.ts // 1_000_000


def _may_count_from_noon(command: RemotingCommand) -> bool:
    """Return whether messages are from a client whose ids may count from noon."""
    return not command.is_response and 0 < command.version < V4_1_0_SNAPSHOT


def shown_messages(
    seen: CommandSeen, body: Body, limit: int, budget: Budget | None = None
) -> list[ShownMessage] | None:
    """Return the messages of a body in JSON types, or None.

    A message with structured properties has `parts`: property → its parts.
    """
    if not body.messages:
        return None
    left = ROW_BUDGET
    shown: list[ShownMessage] = []
    sound = body.sound
    noon = _may_count_from_noon(seen.pdu.command)
    for message in body.messages:
        wanted = min(limit, left)
        # Only decompression makes more bytes than were captured.
        if budget is not None and message.compression is not None and budget.room < wanted:
            budget.end(f"packet {packet_number(seen.pdu.packet)}, offset {seen.pdu.offset}")
        value = shown_message(message, wanted, budget, sound)
        left = max(left - len(value.body), 0)
        parts = property_parts(message.properties, message.born_timestamp or _millis_of(seen), noon)
        if parts:
            value.parts = parts
        shown.append(value)
    return shown


def findings_of(seen: CommandSeen, header: TypedHeader, body: Body) -> list[Finding]:
    """Return the findings about a command, including those from its fields and body."""
    pdu = seen.pdu
    findings = list(pdu.findings) if pdu.findings else []
    for problem in header.problems:
        findings.append(_finding(pdu, FindingKind.BAD_FIELD, problem))
    # A body that the capture does not have in full cannot be parsed: not the sender's fault.
    if body.problem is not None and not pdu.missing:
        response = pdu.command.is_response
        # A body of unknown form is not malformed, only unknown.
        known = body_form(operation_code_of(seen), response) is not None
        is_reported = any(info.kind is FindingKind.BAD_BODY for info in findings)
        if known and not is_reported:
            findings.append(_finding(pdu, FindingKind.BAD_BODY, body.problem))
    if body.sound:
        return findings
    for number, message in enumerate(body.messages, 1):
        if message.crc_ok is False or message.properties_crc_ok is False:
            detail = f"message {number} does not fit its CRC"
            findings.append(_finding(pdu, FindingKind.BAD_MESSAGE, detail))
    return findings


def _finding(pdu: Pdu, kind: FindingKind, detail: str) -> Finding:
    return Finding(kind, detail, pdu.ts, pdu.packet, pdu.conversation, pdu.offset)


def plugin_findings(seen: CommandSeen) -> list[Finding]:
    """Return the errors of plug-ins on the messages of a command."""
    return [seen.pdu.say(FindingKind.BAD_BODY, text) for text in take_problems()]


def shown_finding(info: Finding) -> dict[str, object]:
    """Return a finding in JSON types."""
    return {
        "kind": info.kind.name,
        "severity": info.kind.severity.name.lower(),
        "detail": info.detail,
        "offset": info.offset if info.offset >= 0 else None,
    }


@final
class TakenApart:
    """Header and body of a command in JSON types."""

    def __init__(
        self,
        ext_fields: dict[str, str],
        header: TypedHeader,
        header_parts: dict[str, object] | None,
        body: dict[str, object] | None,
        messages: list[ShownMessage] | msgspec.Raw | None,
        findings: list[Finding],
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
    """Return the parsed header and body, with at most `limit` bytes of a body.

    `written`: messages may already be JSON.
    """
    if budget is not None:
        budget.earn(seen.pdu.header_length + len(seen.pdu.body))
    try:
        known = shown_header_of(seen)
        header = known.shown
        parts = header_parts_of(seen, header)
        written_messages = _written_messages(seen, known.typed, limit) if written else None
        if written_messages is not None:
            form, text = written_messages
            findings = findings_of(seen, header, Body(form, sound=True))
            return TakenApart(known.ext_fields, header, parts, {"kind": form}, text, findings)
        body = body_of(seen, budget, known.typed.fields)
        shown = shown_body(body, seen.pdu.body, limit)
        messages = shown_messages(seen, body, limit, budget)
        findings = findings_of(seen, header, body)
        findings += plugin_findings(seen)
        return TakenApart(known.ext_fields, header, parts, shown, messages, findings)
    except Exception as error:  # last line of defence: a bad command must not end the run
        ext_fields = shown_ext_fields(seen.pdu.command.ext_fields)
        header = TypedHeader(None, dict(ext_fields), ())
        body = Body(RAW, problem=undecoded(error))
        seen.pdu.say(FindingKind.BAD_BODY, undecoded(error))
        shown = shown_body(body, seen.pdu.body, limit)
        found_before = list(seen.pdu.findings or ())
        return TakenApart(ext_fields, header, None, shown, None, found_before)


def _written_messages(
    seen: CommandSeen, header: TypedHeader, limit: int
) -> tuple[str, msgspec.Raw] | None:
    """Return the form and JSON of a body of messages, or None.

    None for other bodies, and if a message is unusual.
    """
    pdu = seen.pdu
    if not pdu.body or pdu.missing or len(pdu.body) > limit:
        return None
    command = pdu.command
    response = command.flag & RESPONSE_FLAG != 0
    form = body_form(operation_code_of(seen), response)
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
    """Return the row of a command with at most `limit` body bytes; `captures` are names by
    index.
    """
    apart = taken_apart(seen, limit, budget)
    messages = apart.messages
    named = None
    if isinstance(messages, list):
        named = [message_dict(message) for message in messages]
    sink = ObjectSink(CommandRow)
    write_command(sink, seen, captures, apart, named)
    row: CommandRow = sink.take()[0]
    return row


@final
class CommandLineWriter:
    """Writes commands as JSON lines, mostly by copying message bytes."""

    def __init__(
        self, captures: Sequence[str], limit: int = WHOLE, budget: Budget | None = None
    ) -> None:
        """See `command_row_of` for the arguments."""
        self._sink = JsonSink(COMMAND_COLUMNS)
        self._captures = captures
        self._limit = limit
        self._budget = budget

    def line_of(self, seen: CommandSeen) -> bytes:
        """Return the line of a command."""
        apart = taken_apart(seen, self._limit, self._budget, written=True)
        # A message that is not text yet is written in the form of `message_dict`.
        write_command(self._sink, seen, self._captures, apart, apart.messages)
        return self._sink.take()


def write_command(
    sink: RowSink,
    seen: CommandSeen,
    captures: Sequence[str],
    apart: TakenApart,
    messages: object,
) -> None:
    """Write the row of a command; everything that may fail comes before the first value."""
    pdu, command, request = seen.pdu, seen.pdu.command, seen.request
    capture = captures[capture_index(pdu.packet)]
    name, request_name = name_of(seen), request_name_of(seen)
    findings = [shown_finding(info) for info in apart.findings]
    time, version = text_of_time(pdu.ts), version_name(command.version)
    latency_us = None if seen.latency is None else seen.latency // 1000
    sink.text("capture", capture)
    sink.integer("packet", packet_number(pdu.packet))
    sink.value("time", time)
    sink.integer("conversation", pdu.conversation)
    sink.text("client_address", pdu.dst if command.is_response else pdu.src)
    sink.text("server_address", pdu.src if command.is_response else pdu.dst)
    sink.text("kind", kind_of(pdu))
    sink.integer("code", command.code)
    sink.text("name", name)
    sink.integer("opaque", command.opaque)
    sink.integer("flag", command.flag)
    sink.text("language", command.language or None)
    sink.integer("version", command.version)
    sink.text("version_name", version)
    sink.text("serialize_type", command.serialize_type)
    sink.text("remark", shown_remark(command.remark))
    sink.value("ext_fields", apart.ext_fields)
    sink.text("header_name", apart.header.name)
    sink.value("header", apart.header.fields)
    sink.value("header_parts", apart.header_parts)
    sink.value("body", apart.body)
    sink.value("messages", messages)
    sink.integer("header_bytes", pdu.header_length)
    sink.integer("body_bytes", pdu.body_length)
    sink.integer("missing_bytes", pdu.missing)
    sink.value("request_packet", None if request is None else packet_number(request.packet))
    sink.value("request_code", None if request is None else request.command.code)
    sink.text("request_name", request_name)
    sink.value("latency_us", latency_us)
    sink.value("findings", findings)
    sink.end()
