"""An exchange as a tree: every header field with its meaning, and the decoded body.

Rules: one fact per line, indented below its parent, with RocketMQ's own names, which can be
searched; only bodies and unreadably long values are cut, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import astuple
from mypy_extensions import mypyc_attr

from dissectors.budget import Budget
from dissectors.decode.command_row import (
    body_of,
    findings_of,
    header_parts_of,
    kind_of,
    name_of,
    plugin_findings,
    shown_body,
    shown_header_of,
    shown_messages,
)
from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import CommandSeen
from dissectors.findings import Finding, FindingKind, Severity, undecoded
from dissectors.grpc.command import CallCommand
from dissectors.printable import MOST_SHOWN
from dissectors.quantities import counted
from dissectors.remoting.bodies.body import MESSAGE_NAMES, Body, ShownMessage
from dissectors.remoting.flags import describe_command_flag, meaning_of
from dissectors.remoting.headers import ShownHeader, header_fields, shown_remark
from dissectors.remoting.versions import version_name
from dissectors.rows.outcome import is_notable
from dissectors.tcp.capture import capture_index, packet_number

from ..ui.console import MOST_OF_VALUE, UNLIMITED, Style, one_line, styled
from ..ui.figures import duration, moment

BODY_LIMIT = 1024
"""Default bytes of a body in a tree."""
STEP = "  "
ON_COMMANDS = frozenset(
    (FindingKind.OPAQUE_REUSED, FindingKind.PAIRING_LIMIT, FindingKind.UNKNOWN_CODE)
)
"""Findings that are shown at their command, and not repeated between exchanges."""
_FIXED: Final = STEP * 2
_FIELD: Final = STEP * 3
_BELOW_FIELD: Final = STEP * 4
"""indentation of the lines of a command"""
_FINDING_STYLES = {Severity.ERROR: Style.RED, Severity.WARNING: Style.YELLOW}


@mypyc_attr(allow_interpreted_subclasses=True)
class Tree:
    """Writes exchanges and findings as lines."""

    def __init__(
        self,
        captures: Sequence[str],
        colour: bool,
        body_limit: int | None,
        budget: Budget | None = None,
    ) -> None:
        """Take the names of captures by index; `body_limit` None: `BODY_LIMIT`."""
        self._budget = Budget() if budget is None else budget
        self._captures = captures
        self._colour = colour
        self._limit = BODY_LIMIT if body_limit is None else body_limit

    def exchange(self, exchange: Exchange) -> list[str]:
        """Return the lines of an exchange, followed by a blank line."""
        lines = [self._title(exchange)]
        request, response = exchange.request, exchange.response
        if request is not None:
            lines += self._lines_of("Request", CommandSeen(request, None, None))
        if response is not None:
            seen = CommandSeen(response, request, exchange.latency)
            lines += self._lines_of("Response", seen)
        return [*lines, ""]

    def _lines_of(self, what: str, seen: CommandSeen) -> list[str]:
        lines: list[str] = []
        try:
            self._add_command(lines, what, seen)
        except Exception as error:  # last resort: a single command must not end a run
            info = seen.pdu.say(FindingKind.BAD_BODY, undecoded(error))
            lines.append(STEP * 2 + self._finding_line(info, _line_of(info.detail)))
        return lines

    def finding(self, info: Finding) -> list[str]:
        """Return the lines of a finding without command."""
        if info.kind in ON_COMMANDS:
            return []
        where = f"conversation {info.conversation}: " if info.conversation >= 0 else ""
        at = f", packet {packet_number(info.packet)}" if info.packet else ""
        return [self._finding_line(info, f"{where}{_line_of(info.detail)}{at}"), ""]

    def _title(self, exchange: Exchange) -> str:
        request, response = exchange.request, exchange.response
        name = "?"
        if request is not None:
            name = name_of(CommandSeen(request, None, None))
        outcome, bad = exchange.status, exchange.status == "unanswered"
        if response is not None:
            outcome = name_of(CommandSeen(response, request, None))
            bad = is_notable(outcome)
            outcome = outcome if request is not None else f"orphan {outcome}"
        latency = exchange.latency
        took = f" in {duration(latency // 1000)}" if latency is not None else ""
        head = self._styled(_line_of(name), Style.BOLD)
        tail = self._styled(_line_of(outcome), Style.RED if bad else Style.GREEN)
        return f"{head}: {tail}{took}, conversation {exchange.conversation}"

    def _add_command(self, lines: list[str], what: str, seen: CommandSeen) -> None:
        pdu = seen.pdu
        capture = ""
        if len(self._captures) > 1:
            capture = f" of {_line_of(self._captures[capture_index(pdu.packet)])}"
        where = f"packet {packet_number(pdu.packet)}{capture}, {moment(pdu.ts)}"
        lines.append(f"{STEP}{self._styled(what, Style.CYAN)}: {where}, {pdu.src} → {pdu.dst}")
        self._budget.earn(pdu.header_length + len(pdu.body))
        header = shown_header_of(seen)
        body = body_of(seen, self._budget, header.typed.fields)
        for info in findings_of(seen, header.shown, body):
            lines.append(STEP * 2 + self._finding_line(info, _line_of(info.detail)))
        self._add_fixed_fields(lines, seen)
        self._add_header(lines, seen, header)
        self._add_body(lines, seen, body)

    def _add_fixed_fields(self, lines: list[str], seen: CommandSeen) -> None:
        pdu, command = seen.pdu, seen.pdu.command
        flag: int = command.flag
        wire = f", {command.wire_code} on the wire" if command.wire_code != command.code else ""
        flags = _flags_of(flag) or kind_of(pdu)
        code = f"{command.code} ({_line_of(name_of(seen))}{wire})"
        version = f"{command.version} ({version_name(command.version)})"
        if isinstance(command, CallCommand):  # a request has no code, a version no number
            code = code if command.is_response else _line_of(command.name)
            version = _line_of(command.client_version or "-")
        lines.append(f"{_FIXED}code: {code}")
        lines.append(f"{_FIXED}language: {_line_of(command.language) or '-'}")
        lines.append(f"{_FIXED}version: {version}")
        lines.append(f"{_FIXED}opaque: {command.opaque}")
        lines.append(f"{_FIXED}flag: {flag} ({flags})")
        lines.append(f"{_FIXED}serializeType: {_line_of(command.serialize_type)}")
        if command.remark is not None:
            lines.append(f"{_FIXED}remark: {_line_of(shown_remark(command.remark), MOST_OF_VALUE)}")
        missing = f", {pdu.missing} of it not captured" if pdu.missing else ""
        lines.append(
            f"{_FIXED}length: {pdu.frame_bytes} (header {pdu.header_length}, "
            f"body {pdu.body_length}{missing}), at stream offset {pdu.offset}"
        )

    def _add_header(self, lines: list[str], seen: CommandSeen, known: ShownHeader) -> None:
        name, fields = known.shown.name, known.shown.fields
        ext_fields = known.ext_fields
        if not ext_fields and not fields:
            return
        parts = header_parts_of(seen, known.shown) or {}
        wires = _wires_of(name or "")
        lines.append(STEP * 2 + self._styled(name or "extFields", Style.CYAN))
        for field, value in fields.items():
            wire = wires.get(field)
            head = _head_of(field) or ": "
            if wire is not None and wire in ext_fields:  # topic [b], in SEND_MESSAGE_V2
                head = f"{head[:-2]} [{wire}]: "
            lines.append(f"{_FIELD}{head}{_text_of(value, field, name)}")
            if field in parts:
                _add_parts(lines, _BELOW_FIELD, parts[field])

    def _add_body(self, lines: list[str], seen: CommandSeen, body: Body) -> None:
        pdu = seen.pdu
        shown = shown_body(body, pdu.body, self._limit)
        if shown is None:
            return
        kind = _line_of(str(shown.pop("kind")))
        problem = shown.pop("problem", None)
        head = self._styled(f"body: {kind}", Style.CYAN)
        lines.append(f"{STEP * 2}{head}, {counted(len(pdu.body), 'byte')}")
        if problem is not None:
            lines.append(STEP * 3 + self._styled(_line_of(str(problem)), Style.YELLOW))
        if "value" in shown:
            add_value(lines, STEP * 3, shown.pop("value"))
        _add_shown(lines, STEP * 3, shown)
        messages = shown_messages(seen, body, self._limit, self._budget) or []
        for number, message in enumerate(messages, 1):
            title = self._styled(f"message {number} of {len(messages)}", Style.CYAN)
            lines.append(_FIELD + title)
            _add_message(lines, _BELOW_FIELD, message)
        for info in plugin_findings(seen):
            lines.append(STEP * 3 + self._finding_line(info, _line_of(info.detail)))

    def encoded(self, lines: Sequence[str]) -> bytes:
        """Return lines as UTF-8, encoded one by one: one arrow would widen a joined text."""
        return b"\n".join([line.encode("utf-8", "replace") for line in lines]) + b"\n"

    def _finding_line(self, info: Finding, text: str) -> str:
        severity = info.kind.severity
        head = f"[{info.kind.name}, {severity.name.lower()}]"
        return f"{self._styled(head, _FINDING_STYLES.get(severity, Style.DIM))} {text}"

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text


# Each of these appends to one list, so that lines are not copied at each level.


def _add_message(lines: list[str], prefix: str, message: ShownMessage) -> None:
    """Append a message, each property with its parts."""
    parts = message.parts
    values: tuple[Any, ...] = astuple(message)
    for place in _PLACES:
        value = values[place]
        kind = type(value)
        if kind is str:
            lines.append(f"{prefix}{_HEADS[place]}{_scalar(value)}")
        elif kind is int:
            name = MESSAGE_NAMES[place]
            lines.append(f"{prefix}{_HEADS[place]}{_text_of(value, name)}")
        elif value is None or value is UNSET or value == []:
            continue
        elif place == _PROPERTIES and isinstance(parts, dict):
            lines.append(f"{prefix}{MESSAGE_NAMES[place]}:")
            _add_with_parts(lines, prefix + STEP, message.properties, parts)
        else:
            add_value(lines, prefix, value, MESSAGE_NAMES[place])
    cut = message.body_truncated
    _add_bytes(lines, prefix, message.body, message.body_form, message.body_size, cut)


def _add_with_parts(
    lines: list[str], prefix: str, values: Mapping[str, object], parts: Mapping[str, object]
) -> None:
    for name, value in values.items():
        add_value(lines, prefix, value, name)
        if name in parts:
            _add_parts(lines, prefix + STEP, parts[name])


def _add_parts(lines: list[str], prefix: str, parts: object) -> None:
    """Append the parts of a text, with nested parts below their parent."""
    if isinstance(parts, dict) and isinstance(parts.get("parts"), dict):
        flat = {name: value for name, value in parts.items() if name != "parts"}
        _add_with_parts(lines, prefix, flat, parts["parts"])
    else:
        add_value(lines, prefix, parts)


def _add_shown(lines: list[str], prefix: str, shown: Mapping[str, object]) -> None:
    """Append an undecoded body: its facts, then its bytes."""
    for name, value in shown.items():
        if name not in _BYTES and value is not None and value != []:
            add_value(lines, prefix, value, name)
    if "body" in shown:
        form, size = shown.get("bodyForm"), shown.get("bodySize")
        _add_bytes(lines, prefix, shown["body"], form, size, bool(shown.get("bodyTruncated")))


def _add_bytes(
    lines: list[str], prefix: str, body: object, form: object, size: object, cut: bool
) -> None:
    mark = ", cut" if cut else ""
    lines.append(f"{prefix}body ({form}, {size} bytes{mark}): {_scalar(body, UNLIMITED)}")


_BYTES: Final = frozenset(("body", "bodySize", "bodyForm", "bodyTruncated"))
_HEADS: Final = tuple(f"{name}: " for name in MESSAGE_NAMES)
_PROPERTIES: Final = MESSAGE_NAMES.index("properties")
_PLACES: Final = [
    place for place, name in enumerate(MESSAGE_NAMES) if name not in _BYTES and name != "parts"
]
"""fields of a message with separate lines"""


def add_value(lines: list[str], prefix: str, value: object, name: str = "") -> None:
    """Append the lines of a value after a prefix; `name`: its name, if any."""
    kind = type(value)
    if kind is str or kind is int:  # nearly all
        lines.append(f"{prefix}{_head_of(name)}{_text_of(value, name)}")
    elif isinstance(value, dict):
        if not value:
            lines.append(f"{prefix}{_head_of(name)}{{}}")
            return
        if name:
            lines.append(f"{prefix}{_line_of(name)}:")
            prefix += STEP
        for key, item in value.items():
            add_value(lines, prefix, item, str(key))
    elif isinstance(value, list):
        _add_list(lines, prefix, value, name)
    else:
        lines.append(f"{prefix}{_head_of(name)}{_scalar(value)}")


def _text_of(value: object, name: str, header: str | None = None) -> str:
    """Return a scalar with its meaning, for a header field or any other member."""
    if type(value) is int:
        meaning = meaning_of(header, name, value) if name else None
        return f"{value} ({_line_of(meaning)})" if meaning else str(value)
    return _scalar(value)


def _add_list(lines: list[str], prefix: str, value: Sequence[object], name: str) -> None:
    nested = False
    for item in value:
        if isinstance(item, (dict, list)):
            nested = True
            break
    if not nested:
        text = ", ".join([_scalar(item) for item in value])
        lines.append(f"{prefix}{_head_of(name)}[{text}]")
        return
    for number, item in enumerate(value, 1):
        lines.append(f"{prefix}{_line_of(name) or 'item'} {number} of {len(value)}:")
        add_value(lines, prefix + STEP, item)


def _line_of(text: str | None, most: int = MOST_SHOWN) -> str:
    """Return `one_line(text)`, with a compiled shortcut for plain text."""
    if text is not None and len(text) <= most and text.isprintable():
        return text
    return one_line(text, most)


def _scalar(value: object, most: int = MOST_OF_VALUE) -> str:
    if type(value) is str:
        return _line_of(value, most)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _line_of(str(value), most)


def _head_of(name: str) -> str:
    """Return the prefix of a value, empty without a name."""
    head = _heads.get(name)
    if head is None:
        head = f"{_line_of(name)}: " if name else ""
        if len(name) <= _LONGEST_KEPT:
            if len(_heads) >= _MOST_KEPT:
                _heads.clear()
            _heads[name] = head
    return head


_heads: Final[dict[str, str]] = {}
_MOST_KEPT: Final = 4096
_LONGEST_KEPT: Final = 64
"""cached names, and characters of a name: a peer can send many long names"""


@lru_cache(maxsize=1024)
def _flags_of(flag: int) -> str:
    return "|".join(describe_command_flag(flag))


@lru_cache(maxsize=256)
def _wires_of(name: str) -> Mapping[str, str]:
    """Return the wire names of the fields of a header class, if they differ."""
    return {field.name: field.wire for field in header_fields(name) if field.wire != field.name}
