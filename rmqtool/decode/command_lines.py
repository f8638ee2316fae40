"""One line per command: when, who to whom, what, and its ext fields as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dissectors.decode.command_row import ONEWAY, header_of, kind_of, name_of, request_name_of
from dissectors.decode.pipeline import CommandSeen
from dissectors.rows.outcome import is_notable
from dissectors.tcp.capture import capture_index, packet_number

from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import clock, day, duration, moment, zone_name
from .exchange_lines import SAMPLE
from .row_run import Choose

_FIELDS_SHOWN = 400


def _name(seen: CommandSeen) -> str:
    name = one_line(name_of(seen))
    if seen.pdu.command.is_response:
        return f"{one_line(request_name_of(seen)) or '?'} ← {name}"
    return f"{name} (oneway)" if kind_of(seen.pdu) == ONEWAY else name


def _name_style(seen: CommandSeen) -> str:
    if not seen.pdu.command.is_response:
        return Style.CYAN
    return Style.RED if is_notable(name_of(seen)) else Style.GREEN


def _fields(seen: CommandSeen) -> str:
    command = seen.pdu.command
    parts = []
    if seen.pdu.expert:
        parts.append(f"[{' '.join(info.kind.name for info in seen.pdu.expert)}]")
    if command.remark:
        parts.append(one_line(command.remark, _FIELDS_SHOWN))
    for name, value in header_of(seen).fields.items():
        text = value if type(value) is str else str(value)
        if len(text) > _FIELDS_SHOWN or not text.isprintable():
            text = one_line(text, _FIELDS_SHOWN)
        parts.append(f"{_shown_name(name[:60])}={text}")
    return " ".join(parts)


@lru_cache(maxsize=4096)
def _shown_name(name: str) -> str:
    return one_line(name)


def _dim(_: CommandSeen) -> str:
    return Style.DIM


def _latency(seen: CommandSeen) -> str:
    return "" if seen.latency is None else duration(seen.latency // 1000)


def command_lines(
    terminal: Terminal, captures: Sequence[str], live: bool, choose: Choose[CommandSeen] = list
) -> LineTable[CommandSeen]:
    """Return the table of commands; `captures` are the names by index.

    `live`: rows come slowly, so the first is shown at once. `choose` picks its columns.
    """

    def capture(seen: CommandSeen) -> str:
        return one_line(captures[capture_index(seen.pdu.packet)])

    def section(seen: CommandSeen) -> str:
        name = f"  {capture(seen)}" if len(captures) > 1 else ""
        return f"-- {day(seen.pdu.ts)} {zone_name()}{name} --"

    if terminal.is_terminal:
        time = LineColumn("TIME", lambda s: clock(s.pdu.ts), 1, 12, 12, style=_dim)
    else:
        time = LineColumn("TIME", lambda s: moment(s.pdu.ts), 1, 27, 32, style=_dim)
    columns: list[LineColumn[CommandSeen]] = [
        LineColumn("PACKET", lambda s: str(packet_number(s.pdu.packet)), 1, 6, 9, True, _dim),
        time,
        LineColumn("SRC", lambda s: s.pdu.src, 4, 15, 47, keep_end=True),
        LineColumn("DST", lambda s: s.pdu.dst, 5, 15, 47, keep_end=True),
        LineColumn("COMMAND", _name, 2, 24, 50, style=_name_style),
        LineColumn("LATENCY", _latency, 6, 7, 11, True),
        LineColumn("OPAQUE", lambda s: str(s.pdu.command.opaque), 9, 6, 11, True, _dim),
        LineColumn("BODY", lambda s: str(s.pdu.body_length), 10, 5, 8, True, _dim),
        LineColumn("FIELDS", _fields, 8, 20, 2000),
    ]
    if len(captures) > 1 and not terminal.is_terminal:
        columns.insert(0, LineColumn("CAPTURE", capture, 0, 7, 60))
    sections = section if terminal.is_terminal else None
    return LineTable(choose(columns), terminal, 1 if live else SAMPLE, sections)
