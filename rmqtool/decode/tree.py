"""An exchange as a tree: every header field with its meaning, the body taken apart.

Rules: one fact a line, indented by what it belongs to, names as RocketMQ writes them, so that the
text can be searched; nothing is cut but bodies and values that nobody can read, and it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

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
from dissectors.expert import ExpertInfo, ExpertKind, Severity, undecoded
from dissectors.grpc.command import CallCommand
from dissectors.remoting.bodies import Body
from dissectors.remoting.flags import describe_command_flag, meaning_of
from dissectors.remoting.headers import ShownHeader, header_fields
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
            self._add_command(lines, what, seen)
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
            name = name_of(CommandSeen(request, None, None))
        outcome, bad = exchange.status, exchange.status == "unanswered"
        if response is not None:
            outcome = name_of(CommandSeen(response, request, None))
            bad = is_notable(outcome)
            outcome = outcome if request is not None else f"orphan {outcome}"
        latency = exchange.latency
        took = f" in {duration(latency // 1000)}" if latency is not None else ""
        head = self._styled(one_line(name), Style.BOLD)
        tail = self._styled(one_line(outcome), Style.RED if bad else Style.GREEN)
        return f"{head}: {tail}{took}, conversation {exchange.conversation}"

    def _add_command(self, lines: list[str], what: str, seen: CommandSeen) -> None:
        pdu = seen.pdu
        capture = ""
        if len(self._captures) > 1:
            capture = f" of {one_line(self._captures[capture_index(pdu.packet)])}"
        where = f"packet {packet_number(pdu.packet)}{capture}, {moment(pdu.ts)}"
        lines.append(f"{STEP}{self._styled(what, Style.CYAN)}: {where}, {pdu.src} → {pdu.dst}")
        self._budget.earn(pdu.header_length + len(pdu.body))
        header = shown_header_of(seen)
        body = body_of(seen, self._budget, header.typed.fields)
        for info in findings_of(seen, header.shown, body):
            lines.append(STEP * 2 + self._finding_line(info, one_line(info.detail)))
        lines += [STEP * 2 + line for line in self._fixed_fields(seen)]
        self._add_header(lines, seen, header)
        self._add_body(lines, seen, body)

    def _fixed_fields(self, seen: CommandSeen) -> Iterator[str]:
        pdu, command = seen.pdu, seen.pdu.command
        wire = f", {command.wire_code} on the wire" if command.wire_code != command.code else ""
        flags = _flags_of(command.flag) or kind_of(pdu)
        code = f"{command.code} ({one_line(name_of(seen))}{wire})"
        version = f"{command.version} ({version_name(command.version)})"
        if isinstance(command, CallCommand):  # a request has no code, a version no number
            code = code if command.is_response else one_line(command.name)
            version = one_line(command.client_version or "-")
        yield f"code: {code}"
        yield f"language: {one_line(command.language) or '-'}"
        yield f"version: {version}"
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
            if wire is not None and wire in ext_fields:
                head = f"{head[:-2]} [{wire}]: "
            lines.append(f"{STEP * 3}{head}{_text_of(value, field, name)}")
            if field in parts:
                _add_parts(lines, STEP * 4, parts[field])

    def _add_body(self, lines: list[str], seen: CommandSeen, body: Body) -> None:
        pdu = seen.pdu
        shown = shown_body(body, pdu.body, self._limit)
        if shown is None:
            return
        kind = one_line(str(shown.pop("kind")))
        problem = shown.pop("problem", None)
        head = self._styled(f"body: {kind}", Style.CYAN)
        lines.append(f"{STEP * 2}{head}, {counted(len(pdu.body), 'byte')}")
        if problem is not None:
            lines.append(STEP * 3 + self._styled(one_line(str(problem)), Style.YELLOW))
        if "value" in shown:
            _add_value(lines, STEP * 3, shown.pop("value"))
        _add_shown(lines, STEP * 3, shown)
        messages = shown_messages(seen, body, self._limit, self._budget) or []
        for number, message in enumerate(messages, 1):
            title = self._styled(f"message {number} of {len(messages)}", Style.CYAN)
            lines.append(STEP * 3 + title)
            _add_message(lines, STEP * 4, message)
        for info in plugin_findings(seen):
            lines.append(STEP * 3 + self._finding_line(info, one_line(info.detail)))

    def _finding_line(self, info: ExpertInfo, text: str) -> str:
        severity = info.kind.severity
        head = f"[{info.kind.name}, {severity.name.lower()}]"
        return f"{self._styled(head, _FINDING_STYLES.get(severity, Style.DIM))} {text}"

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text


def value_lines(value: object, name: str = "") -> list[str]:
    """Return a value in JSON types as lines: a scalar on one, what is nested indented below."""
    lines: list[str] = []
    _add_value(lines, "", value, name)
    return lines


# Each of these appends lines, so that a line is made once and not again by all that it is below.


def _add_message(lines: list[str], prefix: str, message: dict[str, object]) -> None:
    """Append a message, each property with its parts."""
    properties, parts = message.get("properties"), message.pop("parts", None)
    if not isinstance(properties, dict) or not isinstance(parts, dict):
        _add_shown(lines, prefix, message)
        return
    for name, value in message.items():
        if name == "properties":
            lines.append(f"{prefix}properties:")
            _add_with_parts(lines, prefix + STEP, properties, parts)
        elif name in _BYTES or value is None or value == []:
            continue
        else:
            _add_value(lines, prefix, value, name)
    _add_bytes(lines, prefix, message)


def _add_with_parts(
    lines: list[str], prefix: str, values: Mapping[str, object], parts: Mapping[str, object]
) -> None:
    for name, value in values.items():
        _add_value(lines, prefix, value, name)
        if name in parts:
            _add_parts(lines, prefix + STEP, parts[name])


def _add_parts(lines: list[str], prefix: str, parts: object) -> None:
    """Append the parts of a text; those of a part stand below it."""
    if isinstance(parts, dict) and isinstance(parts.get("parts"), dict):
        flat = {name: value for name, value in parts.items() if name != "parts"}
        _add_with_parts(lines, prefix, flat, parts["parts"])
    else:
        _add_value(lines, prefix, parts)


def _add_shown(lines: list[str], prefix: str, shown: Mapping[str, object]) -> None:
    """Append a message, or a body that nobody understood: what is there, and the bytes last."""
    for name, value in shown.items():
        if name not in _BYTES and value is not None and value != []:
            _add_value(lines, prefix, value, name)
    _add_bytes(lines, prefix, shown)


def _add_bytes(lines: list[str], prefix: str, shown: Mapping[str, object]) -> None:
    if "body" in shown:
        cut = ", cut" if shown.get("bodyTruncated") else ""
        head = f"body ({shown.get('bodyForm')}, {shown.get('bodySize')} bytes{cut})"
        lines.append(f"{prefix}{head}: {_scalar(shown['body'], UNLIMITED)}")


_BYTES = frozenset(("body", "bodySize", "bodyForm", "bodyTruncated"))


def _add_value(lines: list[str], prefix: str, value: object, name: str = "") -> None:
    kind = type(value)
    if kind is str or kind is int:  # nearly all
        lines.append(f"{prefix}{_head_of(name)}{_text_of(value, name)}")
    elif isinstance(value, dict):
        if not value:
            lines.append(f"{prefix}{_head_of(name)}{{}}")
            return
        if name:
            lines.append(f"{prefix}{one_line(name)}:")
            prefix += STEP
        for key, item in value.items():
            _add_value(lines, prefix, item, str(key))
    elif isinstance(value, list):
        _add_list(lines, prefix, value, name)
    else:
        lines.append(f"{prefix}{_head_of(name)}{_scalar(value)}")


def _text_of(value: object, name: str, header: str | None = None) -> str:
    """Return a scalar and what it means: of a field of a header class, or of any other member."""
    if type(value) is int:
        meaning = meaning_of(header, name, value) if name else None
        return f"{value} ({one_line(meaning)})" if meaning else str(value)
    return _scalar(value)


def _add_list(lines: list[str], prefix: str, value: Sequence[object], name: str) -> None:
    if not any(isinstance(item, dict | list) for item in value):
        text = ", ".join(map(_scalar, value))
        lines.append(f"{prefix}{_head_of(name)}[{text}]")
        return
    for number, item in enumerate(value, 1):
        lines.append(f"{prefix}{one_line(name) or 'item'} {number} of {len(value)}:")
        _add_value(lines, prefix + STEP, item)


def _scalar(value: object, most: int = MOST_OF_VALUE) -> str:
    if type(value) is str:
        return value if len(value) <= most and value.isprintable() else one_line(value, most)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(str(value), most)


def _head_of(name: str) -> str:
    """Return what stands before a value; nothing where it has no name."""
    if len(name) <= _LONGEST_KEPT:
        return _kept_head(name)
    return f"{one_line(name)}: "


_LONGEST_KEPT = 64
"""characters of a name that may be kept: a peer can write any number of long ones"""


@lru_cache(maxsize=4096)
def _kept_head(name: str) -> str:
    return f"{one_line(name)}: " if name else ""


@lru_cache(maxsize=1024)
def _flags_of(flag: int) -> str:
    return "|".join(describe_command_flag(flag))


@lru_cache(maxsize=256)
def _wires_of(name: str) -> Mapping[str, str]:
    """Return what fields of a header class are called on the wire, where that is another name."""
    return {field.name: field.wire for field in header_fields(name) if field.wire != field.name}
