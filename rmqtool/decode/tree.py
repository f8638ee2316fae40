"""An exchange as a tree: every header field with its meaning, the body taken apart.

Rules: one fact a line, indented by what it belongs to, names as RocketMQ writes them, so that the
text can be searched; nothing is cut but bodies and values that nobody can read, and it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dissectors.budget import Budget
from dissectors.decode.command_row import (
    body_of,
    findings_of,
    header_of,
    header_parts_of,
    kind_of,
    name_of,
    plugin_findings,
    shown_body,
    shown_ext_fields,
    shown_messages,
)
from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import CommandSeen
from dissectors.expert import ExpertInfo, ExpertKind, Severity, undecoded
from dissectors.remoting.bodies import Body
from dissectors.remoting.code_names import request_name, response_name
from dissectors.remoting.flags import describe_command_flag, meaning_of
from dissectors.remoting.headers import TypedHeader, header_fields
from dissectors.remoting.versions import version_name
from dissectors.rows.outcome import is_notable
from dissectors.tcp.capture import capture_index, packet_number

from ..ui.console import MOST_OF_VALUE, UNLIMITED, Style, one_line, styled
from ..ui.figures import counted, duration, moment

BODY_LIMIT = 1024
"""Bytes of a body that a tree shows, unless it is told otherwise."""
STEP = "  "
ON_COMMANDS = frozenset(
    (ExpertKind.OPAQUE_REUSED, ExpertKind.PAIRING_LIMIT, ExpertKind.UNKNOWN_CODE)
)
"""Findings that are shown at their command, so not once more between the exchanges."""
_FINDING_STYLES = {Severity.ERROR: Style.RED, Severity.WARNING: Style.YELLOW}


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
        """Return the lines of an exchange, a blank one last."""
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
            lines.extend(self._command(what, seen))
        except Exception as error:  # the last line of defence: one command never ends a run
            info = seen.pdu.say(ExpertKind.BAD_BODY, undecoded(error))
            lines.append(STEP * 2 + self._finding_line(info, one_line(info.detail)))
        return lines

    def finding(self, info: ExpertInfo) -> list[str]:
        """Return the lines of a finding that is not about one command."""
        if info.kind in ON_COMMANDS:
            return []
        where = f"conversation {info.conversation}: " if info.conversation >= 0 else ""
        at = f", packet {packet_number(info.packet)}" if info.packet else ""
        return [self._finding_line(info, f"{where}{one_line(info.detail)}{at}"), ""]

    def _title(self, exchange: Exchange) -> str:
        request, response = exchange.request, exchange.response
        name = "?"
        if request is not None:
            name = request_name(request.command.code, request.command.version)
        outcome, bad = exchange.status, exchange.status == "unanswered"
        if response is not None:
            asked = request.command.code if request is not None else None
            outcome = response_name(response.command.code, asked, response.command.version)
            bad = is_notable(outcome)
            outcome = outcome if request is not None else f"orphan {outcome}"
        latency = exchange.latency
        took = f" in {duration(latency // 1000)}" if latency is not None else ""
        head = self._styled(one_line(name), Style.BOLD)
        tail = self._styled(one_line(outcome), Style.RED if bad else Style.GREEN)
        return f"{head}: {tail}{took}, conversation {exchange.conversation}"

    def _command(self, what: str, seen: CommandSeen) -> Iterator[str]:
        pdu = seen.pdu
        capture = ""
        if len(self._captures) > 1:
            capture = f" of {one_line(self._captures[capture_index(pdu.packet)])}"
        where = f"packet {packet_number(pdu.packet)}{capture}, {moment(pdu.ts)}"
        yield f"{STEP}{self._styled(what, Style.CYAN)}: {where}, {pdu.src} → {pdu.dst}"
        self._budget.earn(pdu.header_length + len(pdu.body))
        header, body = header_of(seen), body_of(seen, self._budget)
        for info in findings_of(seen, header, body):
            yield STEP * 2 + self._finding_line(info, one_line(info.detail))
        yield from indented(2, self._fixed_fields(seen))
        yield from indented(2, self._header(seen, header))
        yield from indented(2, self._body(seen, body))

    def _fixed_fields(self, seen: CommandSeen) -> Iterator[str]:
        pdu, command = seen.pdu, seen.pdu.command
        wire = f", {command.wire_code} on the wire" if command.wire_code != command.code else ""
        flags = "|".join(describe_command_flag(command.flag)) or kind_of(pdu)
        yield f"code: {command.code} ({one_line(name_of(seen))}{wire})"
        yield f"language: {one_line(command.language) or '-'}"
        yield f"version: {command.version} ({version_name(command.version)})"
        yield f"opaque: {command.opaque}"
        yield f"flag: {command.flag} ({flags})"
        yield f"serializeType: {one_line(command.serialize_type)}"
        if command.remark is not None:
            yield f"remark: {one_line(command.remark, MOST_OF_VALUE)}"
        missing = f", {pdu.missing} of it not captured" if pdu.missing else ""
        yield (
            f"length: {pdu.frame_bytes} (header {pdu.header_length}, "
            f"body {pdu.body_length}{missing}), at stream offset {pdu.offset}"
        )

    def _header(self, seen: CommandSeen, header: TypedHeader) -> Iterator[str]:
        name, fields = header.name, header.fields
        ext_fields = shown_ext_fields(seen.pdu.command.ext_fields)
        if not ext_fields and not fields:
            return
        parts = header_parts_of(seen, header) or {}
        wires = {field.name: field.wire for field in header_fields(name or "")}
        yield self._styled(name or "extFields", Style.CYAN)
        for field, value in fields.items():
            wire = wires.get(field, field)
            letter = f" [{wire}]" if wire != field and wire in ext_fields else ""
            meaning = meaning_of(name, field, value)
            shown = _scalar(value) + (f" ({one_line(meaning)})" if meaning else "")
            yield f"{STEP}{one_line(field)}{letter}: {shown}"
            if field in parts:
                yield from indented(2, part_lines(parts[field]))

    def _body(self, seen: CommandSeen, body: Body) -> Iterator[str]:
        pdu = seen.pdu
        shown = shown_body(body, pdu.body, self._limit)
        if shown is None:
            return
        kind = one_line(str(shown.pop("kind")))
        problem = shown.pop("problem", None)
        yield f"{self._styled(f'body: {kind}', Style.CYAN)}, {counted(len(pdu.body), 'byte')}"
        if problem is not None:
            yield f"{STEP}{self._styled(one_line(str(problem)), Style.YELLOW)}"
        if "value" in shown:
            yield from indented(1, value_lines(shown.pop("value")))
        yield from indented(1, _shown_lines(shown))
        messages = shown_messages(seen, body, self._limit, self._budget) or []
        for number, message in enumerate(messages, 1):
            yield f"{STEP}{self._styled(f'message {number} of {len(messages)}', Style.CYAN)}"
            yield from indented(2, _message_lines(message))
        for info in plugin_findings(seen):
            yield STEP + self._finding_line(info, one_line(info.detail))

    def _finding_line(self, info: ExpertInfo, text: str) -> str:
        severity = info.kind.severity
        head = f"[{info.kind.name}, {severity.name.lower()}]"
        return f"{self._styled(head, _FINDING_STYLES.get(severity, Style.DIM))} {text}"

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text


def _message_lines(message: dict[str, object]) -> Iterator[str]:
    """Give a message, each property with its parts."""
    properties, parts = message.get("properties"), message.pop("parts", None)
    if not isinstance(properties, dict) or not isinstance(parts, dict):
        yield from _shown_lines(message)
        return
    for name, value in message.items():
        if name == "properties":
            yield "properties:"
            yield from indented(1, _lines_with_parts(properties, parts))
            continue
        if name not in _BYTES:
            yield from _shown_lines({name: value})
    yield from _shown_lines({name: message[name] for name in _BYTES if name in message})


def _lines_with_parts(values: Mapping[str, object], parts: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        yield from value_lines(value, name)
        if name in parts:
            yield from indented(1, part_lines(parts[name]))


def part_lines(parts: object) -> Iterator[str]:
    """Give the parts of a text; those of a part stand below it."""
    if isinstance(parts, dict) and isinstance(parts.get("parts"), dict):
        flat = {name: value for name, value in parts.items() if name != "parts"}
        yield from _lines_with_parts(flat, parts["parts"])
    else:
        yield from value_lines(parts)


def _shown_lines(shown: Mapping[str, object]) -> Iterator[str]:
    """Give a message, or a body that nobody understood: what is there, and the bytes last."""
    for name, value in shown.items():
        if name not in _BYTES and value is not None and value != []:
            yield from value_lines(value, name)
    if "body" in shown:
        cut = ", cut" if shown.get("bodyTruncated") else ""
        size = f"{shown.get('bodySize')} bytes"
        yield f"body ({shown.get('bodyForm')}, {size}{cut}): {_scalar(shown['body'], UNLIMITED)}"


_BYTES = frozenset(("body", "bodySize", "bodyForm", "bodyTruncated"))


def indented(steps: int, lines: Iterator[str]) -> Iterator[str]:
    """Give the lines so many steps to the right."""
    prefix = STEP * steps
    for line in lines:
        yield prefix + line


def value_lines(value: object, name: str = "") -> Iterator[str]:
    """Give a value in JSON types as lines: a scalar on one, what is nested indented below."""
    head = f"{one_line(name)}: " if name else ""
    if isinstance(value, dict):
        if not value:
            yield f"{head}{{}}"
            return
        if name:
            yield f"{one_line(name)}:"
        for key, item in value.items():
            yield from indented(1 if name else 0, value_lines(item, str(key)))
    elif isinstance(value, list):
        yield from _list_lines(value, name, head)
    else:
        meaning = meaning_of(None, name, value) if name else None
        yield f"{head}{_scalar(value)}" + (f" ({one_line(meaning)})" if meaning else "")


def _list_lines(value: Sequence[object], name: str, head: str) -> Iterator[str]:
    if not any(isinstance(item, dict | list) for item in value):
        text = ", ".join(map(_scalar, value))
        yield f"{head}[{text}]"
        return
    for number, item in enumerate(value, 1):
        yield f"{one_line(name) or 'item'} {number} of {len(value)}:"
        yield from indented(1, value_lines(item))


def _scalar(value: object, most: int = MOST_OF_VALUE) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(str(value), most)
