"""Fields of command filters: flat row columns, ext fields, and aliases.

Rules: a name shared with exchange filters has the same meaning, as far as the command or its
request shows it. A name that only exchanges have is an error with a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..conversations.conversation import Pdu
from ..endpoint import host_of
from ..remoting.headers import shown_remark
from ..remoting.send_fields import BROKERS, TOPICS, first_of, send_fields_of
from ..remoting.versions import version_name
from ..rows.command_record import COMMAND_COLUMNS
from ..rows.outcome import ANSWERED, FAILED, ONEWAY, ORPHAN, is_failure, outcome_class_of
from ..tcp.capture import capture_index, packet_number
from ..where.fields import (
    FieldSet,
    WhereField,
    exchange_fields,
    field_of_column,
    named_end,
    response_names,
)
from .command_order import CommandSeen
from .command_row import kind_of, name_of, request_name_of

_Get = Callable[[CommandSeen], object]


def _requested_name(seen: CommandSeen) -> str | None:
    return request_name_of(seen) if seen.pdu.command.is_response else name_of(seen)


def _response_name(seen: CommandSeen) -> str | None:
    return name_of(seen) if seen.pdu.command.is_response else None


def _outcome(seen: CommandSeen) -> str | None:
    if not seen.pdu.command.is_response:
        return ONEWAY if seen.pdu.command.is_oneway else None
    return name_of(seen) if seen.request is not None else ORPHAN


def _is_failed(seen: CommandSeen) -> bool:
    response = _response_name(seen)
    if seen.request is None:
        return is_failure(response)
    topic = first_of(seen.request.command.ext_fields, TOPICS)
    return outcome_class_of(ANSWERED, request_name_of(seen), response, topic) == FAILED


def _client_address(seen: CommandSeen) -> str:
    return seen.pdu.dst if seen.pdu.command.is_response else seen.pdu.src


def _server_address(seen: CommandSeen) -> str:
    return seen.pdu.src if seen.pdu.command.is_response else seen.pdu.dst


def _broker(seen: CommandSeen) -> list[object]:
    address = _server_address(seen)
    request = seen.request if seen.pdu.command.is_response else seen.pdu
    if request is None:
        return named_end(None, address)
    fields = request.command.ext_fields
    # A V2 send has the name in a field of one letter.
    field = fields.get(send_fields_of(request.command.code).broker_name)
    return named_end(field or first_of(fields, BROKERS), address)


def _of_request(get: Callable[[Pdu], object]) -> _Get:
    return lambda seen: None if seen.request is None else get(seen.request)


_VALUES: Final[Mapping[str, _Get]] = {
    "packet": lambda seen: packet_number(seen.pdu.packet),
    "conversation": lambda seen: seen.pdu.conversation,
    "client_address": _client_address,
    "server_address": _server_address,
    "kind": lambda seen: kind_of(seen.pdu),
    "code": lambda seen: seen.pdu.command.code,
    "name": name_of,
    "opaque": lambda seen: seen.pdu.command.opaque,
    "flag": lambda seen: seen.pdu.command.flag,
    "language": lambda seen: seen.pdu.command.language or None,
    "version": lambda seen: seen.pdu.command.version,
    "version_name": lambda seen: version_name(seen.pdu.command.version),
    "serialize_type": lambda seen: seen.pdu.command.serialize_type,
    "remark": lambda seen: shown_remark(seen.pdu.command.remark),
    "header_bytes": lambda seen: seen.pdu.header_length,
    "body_bytes": lambda seen: seen.pdu.body_length,
    "missing_bytes": lambda seen: seen.pdu.missing,
    "request_packet": _of_request(lambda pdu: packet_number(pdu.packet)),
    "request_code": _of_request(lambda pdu: pdu.command.code),
    "request_name": request_name_of,
    "latency_us": lambda seen: None if seen.latency is None else seen.latency // 1000,
}
"""column → getter, for columns that do not need the body"""

_LIKE: Final = {
    "request": "request_name",
    "operation": "request_name",
    "response": "response_name",
    "answer": "response_name",
}
"""name → exchange column with values from the same closed list"""
_MORE: Final[tuple[tuple[str, str, str, _Get], ...]] = (
    ("request", "name of the request, also for its response", "string", _requested_name),
    ("operation", "name of the request, also for its response", "string", _requested_name),
    ("response", "name of the response code; none for a request", "string", _response_name),
    ("answer", "name of the response code; none for a request", "string", _response_name),
    ("outcome", "name of the response code; `oneway`; `orphan` for a response without request",
     "string", _outcome),
    ("failed", "whether the command is an error response", "bool",
     _is_failed),
    ("body", "`body_bytes`", "int", lambda seen: seen.pdu.body_length),
    ("note", "`remark`", "string",
     lambda seen: shown_remark(seen.pdu.command.remark)),
    ("broker", "broker in the request, and the server's address with and without port",
     "list", _broker),
    ("client", "the client's address with and without port", "list",
     lambda seen: named_end(None, _client_address(seen))),
    ("src", "the sender's address with port", "string", lambda seen: seen.pdu.src),
    ("dst", "the receiver's address with port", "string", lambda seen: seen.pdu.dst),
    ("ip", "addresses of both ends, without port", "list",
     lambda seen: [host_of(seen.pdu.src), host_of(seen.pdu.dst)]),
)  # fmt: skip
COMMAND_ALIASES: Final = (
    ("latency", "`latency_us`, with a unit"),
    *((name, meaning) for name, meaning, _, _ in _MORE),
)
"""names beside the columns, with their meaning"""


def command_fields(captures: Sequence[str]) -> FieldSet:
    """Return the fields of command filters: flat columns, aliases, and ext fields."""
    getters = _getters(captures)
    fields = [
        field_of_column(column.name, column.type, column.unit, _of_seen(getters[column.name]))
        for column in COMMAND_COLUMNS
        if column.name in getters
    ]
    latency = _of_seen(getters["latency_us"])
    fields.append(WhereField("latency", "int", latency, "µs", needs_unit=True))
    fields += [_field(name, type_, get) for name, _, type_, get in _MORE]
    hint = "only exchanges have it; for a command, use ext_fields.NAME"
    elsewhere = dict.fromkeys(exchange_fields().names, hint)
    return FieldSet(fields, {"ext_fields": _ext_field}, elsewhere)


def _field(name: str, type_: str, get: _Get) -> WhereField:
    column, unit = _LIKE.get(name, name), "bytes" if name == "body" else ""
    field = replace(field_of_column(column, type_, unit, _of_seen(get)), name=name)
    if name == "outcome":
        field = replace(field, known=lambda: dict.fromkeys((*response_names(), ONEWAY, ORPHAN)))
    return field


def _ext_field(name: str) -> WhereField:
    def get(seen: CommandSeen) -> object:
        return seen.pdu.command.ext_fields.get(name)

    return WhereField(f"ext_fields.{name}", "string", _of_seen(get))


def _of_seen(get: _Get) -> Callable[[object], object]:
    """Cast a getter for use with any row; rows of commands are always CommandSeen."""
    return get  # type: ignore[return-value]


def _getters(captures: Sequence[str]) -> dict[str, _Get]:
    """Return the getters of the flat columns; times and findings are in raw form."""
    return {
        **_VALUES,
        "capture": lambda seen: captures[capture_index(seen.pdu.packet)],
        "time": lambda seen: seen.pdu.ts,
        "findings": lambda seen: [info.kind.name for info in seen.pdu.findings or ()],
    }
