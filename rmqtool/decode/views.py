"""The views of whole commands: trees of exchanges, and rows or lines of commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter

from dissectors.budget import Budget
from dissectors.decode.command_row import (
    ONEWAY,
    WHOLE,
    command_row_of,
    header_of,
    kind_of,
    name_of,
    request_name_of,
)
from dissectors.decode.exchange import Exchange
from dissectors.decode.exchange_row import record_of
from dissectors.decode.pipeline import CommandSeen, Decode, settled_by
from dissectors.findings import Finding
from dissectors.processes.choice import command_lines_of
from dissectors.processes.command_lines import CommandLines
from dissectors.remoting.headers import shown_remark
from dissectors.rows.encoded import EncodedRows, RowForm
from dissectors.rows.outcome import is_notable
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.where.fields import exchange_fields

from ..api.tables.commands import COMMANDS
from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import duration
from ..ui.output import Output
from ..ui.screen.shapes import tree_lines
from .exchange_lines import dim, line_table, with_origin
from .options import NESTED, DecodeRequest
from .row_run import (
    Choose,
    RowSource,
    chosen_sink,
    compiled,
    is_live,
    output_of,
    output_terminal,
    rows_of_table,
)
from .sinks import EncodedSink, LinesSink, Sink, TextSink, with_cut
from .tree import STEP, Tree

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
    if seen.pdu.findings:
        parts.append(f"[{' '.join(info.kind.name for info in seen.pdu.findings)}]")
    if command.remark:
        parts.append(one_line(shown_remark(command.remark), _FIELDS_SHOWN))
    for name, value in header_of(seen).fields.items():
        text = value if type(value) is str else str(value)
        if len(text) > _FIELDS_SHOWN or not text.isprintable():
            text = one_line(text, _FIELDS_SHOWN)
        parts.append(f"{_shown_name(name[:60])}={text}")
    return " ".join(parts)


@lru_cache(maxsize=4096)
def _shown_name(name: str) -> str:
    return one_line(name)


def _latency(seen: CommandSeen) -> str:
    return "" if seen.latency is None else duration(seen.latency // 1000)


def command_lines(
    terminal: Terminal, captures: Sequence[str], live: bool, choose: Choose[CommandSeen] = list
) -> LineTable[CommandSeen]:
    """Return the table of commands; `captures` are the names by index.

    `live`: rows come slowly, so the first is shown at once. `choose` picks its columns.
    """

    def capture(seen: CommandSeen) -> str:
        return captures[capture_index(seen.pdu.packet)]

    time = attrgetter("pdu.ts")
    columns: list[LineColumn[CommandSeen]] = [
        LineColumn("PACKET", lambda s: str(packet_number(s.pdu.packet)), 1, 6, 9, True, dim),
        LineColumn("SRC", lambda s: s.pdu.src, 4, 15, 47, keep_end=True),
        LineColumn("DST", lambda s: s.pdu.dst, 5, 15, 47, keep_end=True),
        LineColumn("COMMAND", _name, 2, 24, 50, style=_name_style),
        LineColumn("LATENCY", _latency, 6, 7, 11, True),
        LineColumn("OPAQUE", lambda s: str(s.pdu.command.opaque), 9, 6, 11, True, dim),
        LineColumn("BODY", lambda s: str(s.pdu.body_length), 10, 5, 8, True, dim),
        LineColumn("FIELDS", _fields, 8, 20, 2000),
    ]
    number = len(captures)
    chosen = choose(with_origin(columns, terminal, number, time, capture))
    return line_table(chosen, terminal, number, live, time, capture)


def tree_rows(request: DecodeRequest, decode: Decode) -> RowSource[Exchange]:
    """Return exchanges as trees; filters test the columns of the record."""
    test = compiled(request, exchange_fields)

    def matches(exchange: object) -> bool:
        assert isinstance(exchange, Exchange)
        assert test is not None
        return test(record_of(exchange, decode.capture_name(settled_by(exchange))))

    def time(exchange: Exchange) -> int | None:
        command = exchange.request or exchange.response
        return None if command is None else command.ts

    return RowSource(
        decode.exchanges,
        None if test is None else matches,
        time,
        lambda: TreeSink(request, decode.sources),
        "exchanges",
    )


_WRITTEN = 64 * 1024
"""bytes or characters per write"""


class TreeSink(TextSink[Exchange]):
    """Writes a tree per exchange, with findings about conversations in between."""

    def __init__(self, request: DecodeRequest, names: Sequence[str]) -> None:
        output = output_of(request)
        super().__init__(output, list)
        self._terminal = output_terminal(request)
        self._budget = Budget(request.max_output)
        self._tree = Tree(names, self._terminal.colour, request.body_limit, self._budget)
        # with a filter, findings of other exchanges would bury the matches
        self.wants_findings = not request.where

    def write(self, rows: Sequence[Exchange]) -> None:
        waiting: list[str] = []
        size = 0
        for exchange in rows:
            lines = self._tree.exchange(exchange)
            if self._terminal.is_terminal:
                *lines, empty = lines  # no branches at the blank line between exchanges
                lines = [*tree_lines(lines, len(STEP), self._terminal), empty]
            waiting += lines
            size += sum(map(len, lines))
            if size >= _WRITTEN:
                self.write_lines(waiting)
                waiting, size = [], 0
        self.write_lines(waiting)

    def encoded(self, lines: Sequence[str]) -> bytes:
        return self._tree.encoded(lines) if self._encoding == "utf-8" else super().encoded(lines)

    def write_findings(self, findings: Sequence[Finding]) -> None:
        for info in findings:
            self.write_lines(self._tree.finding(info))

    def finish(self, decode: Decode) -> str:
        return with_cut(super().finish(decode), self._budget)


def command_rows(request: DecodeRequest, decode: Decode) -> RowSource[CommandSeen]:
    """Return commands as lines or JSON."""

    limit = WHOLE if request.body_limit is None else request.body_limit
    budget = Budget(request.max_output)
    encoded = None
    if request.format.is_json and not request.columns:
        encoded = command_lines_of(decode, limit, budget)

    def sink() -> Sink[CommandSeen]:
        return _command_sink(request, decode.sources, limit, budget, encoded is not None)

    return rows_of_table(COMMANDS, request, decode, sink)._replace(encoded=encoded)


class CommandsSink(Sink[CommandSeen]):
    """Writes an object per command, in small writes: a command may have megabytes."""

    def __init__(
        self,
        output: Output,
        names: Sequence[str],
        limit: int,
        budget: Budget,
        to_screen: bool,
        form: RowForm,
    ) -> None:
        """`limit`: bytes of a body; `form`: encoding of commands from worker processes."""
        self.form = form
        self._output: EncodedSink[bytes] = EncodedSink(output, b"".join, to_screen=to_screen)
        self._lines = CommandLines(names, limit, budget)
        self._budget = budget

    def write(self, rows: Sequence[CommandSeen]) -> None:
        waiting: list[bytes] = []
        size = 0
        for line in self._lines.each_of(rows):
            waiting.append(line)
            size += len(line)
            if size >= _WRITTEN:
                self._output.write(waiting)
                waiting, size = [], 0
        if waiting:
            self._output.write(waiting)

    def write_encoded(self, exchanges: EncodedRows, messages: EncodedRows | None) -> None:
        self._output.write_encoded(exchanges, messages)

    def idle(self) -> None:
        self._output.idle()

    def finish(self, decode: Decode) -> str:
        return with_cut(self._output.finish(decode), self._budget)

    def discard(self) -> None:
        self._output.discard()


def _nested_columns(
    names: Sequence[str], limit: int, budget: Budget
) -> dict[str, Callable[[CommandSeen], object]]:
    """Return getters of the columns that filters do not have, or have with another meaning."""
    # One row at a time, from which several columns are taken.
    row_of = lru_cache(maxsize=1)(lambda seen: command_row_of(seen, names, limit, budget))

    def getter(name: str) -> Callable[[CommandSeen], object]:
        return lambda seen: getattr(row_of(seen), name)

    return {name: getter(name) for name in NESTED}


def _command_sink(
    request: DecodeRequest, names: Sequence[str], limit: int, budget: Budget, is_encoded: bool
) -> Sink[CommandSeen]:
    if request.columns:
        return chosen_sink(
            request,
            COMMANDS,
            names,
            lambda t, _, live, choose: command_lines(t, names, live, choose),
            _nested_columns(names, limit, budget),
        )
    output = output_of(request)
    terminal = output_terminal(request)
    if request.format.is_json:
        form = RowForm.jsonl if is_encoded else RowForm.records
        return CommandsSink(output, names, limit, budget, terminal.is_terminal, form)
    return LinesSink(output, command_lines(terminal, names, is_live(request)))
