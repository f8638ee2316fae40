"""The summary as text: a paragraph on the capture, then one table per question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dissectors.findings import Finding, FindingKind, Severity
from dissectors.histogram import Histogram
from dissectors.quantities import counted
from dissectors.rows.outcome import FAILED, is_notable
from dissectors.rows.record import STATUSES, ExchangeRecord
from dissectors.rows.relays import RelayedSends
from dissectors.tcp.capture import capture_index, packet_number

from ..ui.columns import LineColumn, alarm, counter, text_of_hidden
from ..ui.console import UNLIMITED, Style, Terminal, one_line
from ..ui.figures import clock, count, day, duration, share, size, text_of_counts, zone_name
from ..ui.remark import cause_of
from ..ui.screen.panels import FactLines, Labelled, panel_lines
from ..ui.screen.shapes import table_lines
from .summary import Bounded, ClientKey, OperationCount, Peer, ResponseCount, Summary
from .verdict import style_of_verdict, verdict_facts

if TYPE_CHECKING:
    from analytics.diagnosis.engine import Diagnosis
    from dissectors.decode.pipeline import CaptureStats, DecodeStats
    from dissectors.replication.progress import Replication


def _size(get: Callable[[Row], int], rank: int) -> LineColumn[Row]:
    return LineColumn("BYTES", lambda row: size(get(row)), rank, 7, 8, True)


# -- operations and responders ----------------------------------------------------------------

NamedOperation = tuple[str, OperationCount]


def operations(table: Bounded[str, OperationCount]) -> list[NamedOperation]:
    """Return the most frequent first."""
    return sorted(table.rows.items(), key=lambda item: -item[1].count)


def operation_columns(title: str) -> list[LineColumn[NamedOperation]]:
    """Return the columns; `title` says what the names are."""

    def latency(percent: float) -> LineColumn[NamedOperation]:
        def cell(row: NamedOperation) -> str:
            return duration(row[1].latency.percentile(percent))

        return LineColumn(f"P{percent:g}", cell, 2, 7, 11, True)

    return [
        LineColumn(title, lambda r: one_line(r[0]), 1, 20, 47),
        counter("COUNT", lambda r: r[1].count, 1),
        alarm("FAILED", lambda r: r[1].failed, 1),
        alarm("UNANSWERED", lambda r: r[1].unanswered, 4),
        counter("ONEWAY", lambda r: r[1].oneway, 8),
        latency(50),
        latency(99),
        LineColumn("MAX", lambda r: duration(r[1].latency.maximum), 3, 7, 11, True),
        _size(lambda r: r[1].bytes, 9),
    ]


# -- sends through proxies --------------------------------------------------------------------


class NamedProxy(NamedTuple):
    """A row of sends through proxies."""

    proxy: str
    """`address:port` of the proxy"""
    broker: str
    """of the broker behind it"""
    sends: RelayedSends
    """how long they took"""


def proxied(summary: Summary) -> list[NamedProxy]:
    """Return the most frequent first."""
    rows = [(relay, sends) for relay, sends in summary.relays.sends().items() if sends.outer.count]
    ranked = sorted(rows, key=lambda item: (-item[1].outer.count, item[0]))
    return [NamedProxy(relay.address, relay.server, sends) for relay, sends in ranked]


def _waited(
    title: str, rank: int, percent: float, get: Callable[[RelayedSends], Histogram]
) -> LineColumn[NamedProxy]:
    def cell(row: NamedProxy) -> str:
        return duration(get(row.sends).percentile(percent))

    return LineColumn(title, cell, rank, max(7, len(title)), 10, True)


PROXIED_COLUMNS: list[LineColumn[NamedProxy]] = [
    LineColumn("PROXY", lambda row: one_line(row.proxy), 1, 15, 47),
    LineColumn("BROKER", lambda row: one_line(row.broker), 1, 15, 47),
    counter("SENDS", lambda row: row.sends.outer.count, 1),
    _waited("WAITED P50", 2, 50, lambda sends: sends.outer),
    _waited("BROKER P50", 2, 50, lambda sends: sends.inner),
    _waited("PROXY P50", 2, 50, lambda sends: sends.own),
    _waited("WAITED P99", 4, 99, lambda sends: sends.outer),
    _waited("BROKER P99", 4, 99, lambda sends: sends.inner),
    _waited("PROXY P99", 4, 99, lambda sends: sends.own),
]


# -- responses ----------------------------------------------------------------------------------


class NamedResponse(NamedTuple):
    """A row of responses."""

    code: int
    name: str
    response: ResponseCount
    """how often, to what"""
    total: int
    """responses in all"""


def responses(summary: Summary) -> list[NamedResponse]:
    """Return success responses first, then failures, each by frequency."""
    rows = summary.responses.rows
    total = sum(response.count for response in rows.values())
    ranked = sorted(rows.items(), key=lambda item: (item[1].failed > 0, -item[1].count))
    return [NamedResponse(code, name, response, total) for (code, name), response in ranked]


def _requests(row: NamedResponse) -> str:
    ranked = sorted(row.response.requests.items(), key=lambda item: -item[1])
    names = [f"{one_line(name)} {count(n)}" for name, n in ranked[:3]]
    return ", ".join(names) + (", …" if len(ranked) > 3 else "")


def _response_example(row: NamedResponse) -> str:
    example = row.response.example
    if not is_notable(row.name) or example is None:
        return ""
    return f"packet {example.response_packet}: {cause_of(example.remark) or '-'}"


def _response_style(row: NamedResponse) -> str:
    return Style.RED if row.response.failed else ""


RESPONSE_COLUMNS: list[LineColumn[NamedResponse]] = [
    LineColumn("CODE", lambda r: str(r.code), 1, 4, 6, True),
    LineColumn("RESPONSE", lambda r: one_line(r.name), 1, 16, 40, style=_response_style),
    counter("COUNT", lambda r: r.response.count, 1),
    alarm("FAILED", lambda r: r.response.failed, 2),
    LineColumn("SHARE", lambda r: share(r.response.count, r.total), 3, 5, 6, True),
    LineColumn("TO", _requests, 4, 20, 90),
    LineColumn("EXAMPLE", _response_example, 8, 20, 200, wraps=True),
]


# -- clients and conversations ----------------------------------------------------------------

NamedClient = tuple[ClientKey, Peer]
NamedConversation = tuple[int, Peer]


def clients(summary: Summary) -> list[NamedClient]:
    """Return the busiest first."""
    return sorted(summary.clients.rows.items(), key=lambda item: -item[1].count)


def conversations(summary: Summary) -> list[NamedConversation]:
    """Return the busiest first."""
    return sorted(summary.conversations.rows.items(), key=lambda item: -item[1].count)


def _first_seen(peer: Peer) -> str:
    first = peer.first
    if first is None:
        return "-"
    return clock(first.request_time if first.request_time is not None else first.response_time)


def ends_of(peer: Peer) -> tuple[str, str]:
    """Return the usual client and server: a broker may have sent the first request."""
    if peer.first is None:
        return "-", "-"
    ends = peer.first.client_address, peer.first.server_address
    return ends if peer.reversed * 2 <= peer.count else ends[::-1]


CLIENT_COLUMNS: list[LineColumn[NamedClient]] = [
    LineColumn("ADDRESS", lambda r: r[0].address, 1, 15, 39),
    LineColumn("LANGUAGE", lambda r: one_line(r[0].language) or "-", 1, 8, 10),
    LineColumn("VERSION", lambda r: one_line(r[0].version) or "-", 1, 7, 20),
    counter("CONNECTIONS", lambda r: len(r[1].conversations), 5),
    counter("EXCHANGES", lambda r: r[1].count, 2),
    alarm("FAILED", lambda r: r[1].failed, 3),
    alarm("UNANSWERED", lambda r: r[1].unanswered, 4),
    _size(lambda r: r[1].bytes, 8),
]
CONVERSATION_COLUMNS: list[LineColumn[NamedConversation]] = [
    LineColumn("NUMBER", lambda r: str(r[0]) if r[0] >= 0 else "others", 3, 6, 8, True),
    LineColumn("CLIENT", lambda r: ends_of(r[1])[0], 1, 15, 47, keep_end=True),
    LineColumn("SERVER", lambda r: ends_of(r[1])[1], 1, 15, 47, keep_end=True),
    counter("EXCHANGES", lambda r: r[1].count, 2),
    alarm("FAILED", lambda r: r[1].failed, 4),
    alarm("UNANSWERED", lambda r: r[1].unanswered, 5),
    _size(lambda r: r[1].bytes, 6),
    LineColumn("FIRST SEEN", lambda r: _first_seen(r[1]), 9, 12, 12),
]


# -- replication ------------------------------------------------------------------------------


def _span_of(replication: Replication) -> str:
    return (
        "-"
        if replication.first_offset is None
        else f"{replication.first_offset}..{replication.last_offset}"
    )


def _offset(number: int | None) -> str:
    return "-" if number is None else str(number)


def _confirmed(replication: Replication) -> str:
    return "" if replication.confirm_offset is None else str(replication.confirm_offset)


def _epochs(replication: Replication) -> str:
    return ", ".join(f"{epoch} from {start}" for epoch, start in replication.epochs)


REPLICATION_COLUMNS: list[LineColumn[Replication]] = [
    LineColumn("NUMBER", lambda r: str(r.conversation), 6, 6, 8, True),
    LineColumn("KIND", lambda r: r.kind, 6, 7, 10),
    LineColumn("SLAVE", lambda r: r.slave, 1, 15, 47, keep_end=True),
    LineColumn("MASTER", lambda r: r.master, 1, 15, 47, keep_end=True),
    counter("TRANSFERS", lambda r: r.transfers, 4),
    _size(lambda r: r.bytes, 3),
    LineColumn("OFFSETS", _span_of, 5, 7, 32, True),
    LineColumn("REPORTED", lambda r: _offset(r.acknowledged), 5, 8, 16, True),
    LineColumn("BEHIND", lambda r: size(r.lag_bytes), 1, 7, 8, True),
    LineColumn("MOST", lambda r: size(r.largest_lag_bytes), 2, 7, 8, True),
    LineColumn("LAG P50", lambda r: duration(r.lag_p50_us), 2, 7, 11, True),
    LineColumn("LAG MAX", lambda r: duration(r.largest_lag_us), 1, 7, 11, True),
    counter("HEARTBEATS", lambda r: r.heartbeats, 9),
    counter("REPORTS", lambda r: r.reports, 9),
    alarm("GAPS", lambda r: r.gaps, 7),
    LineColumn("CONFIRMED", _confirmed, 8, 9, 16, True),
    LineColumn("EPOCHS", _epochs, 8, 6, 24),
]


# -- slowest exchanges ------------------------------------------------------------------------


def slowest(summary: Summary) -> list[ExchangeRecord]:
    """Return the slowest first."""
    return [record for _, _, record in sorted(summary.slowest, reverse=True)]


def _slow_outcome(record: ExchangeRecord) -> str:
    return one_line(record.response_name) or record.status


def _slow_style(record: ExchangeRecord) -> str:
    return Style.RED if record.outcome_class == FAILED else ""


SLOW_COLUMNS: list[LineColumn[ExchangeRecord]] = [
    LineColumn("LATENCY", lambda r: duration(r.latency_us), 1, 7, 11, True),
    LineColumn("TIME", lambda r: clock(r.request_time), 2, 12, 12),
    LineColumn("PACKET", lambda r: str(r.request_packet), 1, 6, 9, True),
    LineColumn("REQUEST", lambda r: one_line(r.request_name), 1, 15, 32),
    LineColumn("OUTCOME", _slow_outcome, 2, 10, 28, style=_slow_style),
    LineColumn("TOPIC", lambda r: one_line(r.topic) or "-", 4, 10, 40),
    LineColumn("SERVER", lambda r: r.server_address, 5, 15, 47, keep_end=True),
    LineColumn("CLIENT", lambda r: r.client_address, 8, 15, 47, keep_end=True),
]


# -- findings ---------------------------------------------------------------------------------


class FindingRow(NamedTuple):
    """A row of findings."""

    kind: FindingKind
    number: int
    """how often"""
    example: str
    """first place, and details"""


def findings(summary: Summary, stats: DecodeStats, names: Sequence[str]) -> list[FindingRow]:
    """Return the most severe first; `names` are the captures, by index."""
    ranked = sorted(stats.finding_counts.items(), key=lambda item: (-item[0].severity, -item[1]))
    return [FindingRow(kind, n, _example(summary, kind, names)) for kind, n in ranked]


def _example(summary: Summary, kind: FindingKind, names: Sequence[str]) -> str:
    info = summary.findings.get(kind)
    return "" if info is None else finding_text(info, names)


def finding_text(info: Finding, names: Sequence[str]) -> str:
    """Return place and details of a finding; `names` are the captures, by index."""
    if info.packet == 0:
        return one_line(info.detail)
    index = capture_index(info.packet)
    where = f"{one_line(names[index])} " if len(names) - 1 > 0 and index < len(names) else ""
    return f"{where}packet {packet_number(info.packet)}: {one_line(info.detail)}"


_SEVERITY_STYLES = {
    Severity.ERROR: Style.RED,
    Severity.WARNING: Style.YELLOW,
    Severity.NOTE: "",
    Severity.CHAT: Style.DIM,
}


def _severity_style(row: FindingRow) -> str:
    return _SEVERITY_STYLES[row.kind.severity]


FINDING_COLUMNS: list[LineColumn[FindingRow]] = [
    LineColumn("SEVERITY", lambda r: r.kind.severity.name.lower(), 1, 7, 8, style=_severity_style),
    LineColumn("KIND", lambda r: r.kind.name, 1, 12, 24, style=_severity_style),
    counter("COUNT", lambda r: r.number, 1),
    LineColumn("MEANING", lambda r: r.kind.meaning, 3, 20, 80),
    LineColumn("FIRST", lambda r: r.example, 8, 20, 200, wraps=True),
]


Row = TypeVar("Row")
MOST_CAPTURES = 8
"""Captures that are listed individually."""
MOST_ROWS = 15
"""Rows of clients and conversations that are shown; the rest is summed up."""
MOST_PROBLEMS = 6
"""Problems that are listed individually."""
INDENT = "  "


def summary_lines(
    summary: Summary,
    stats: DecodeStats,
    names: Sequence[str],
    terminal: Terminal,
    diagnosis: Diagnosis | None = None,
) -> list[str]:
    """Return the summary as printable lines; `names` are the captures, by index."""
    writer = _Writer(terminal)
    if diagnosis is not None:
        writer.verdict(diagnosis)
    writer.heading("Captures")
    writer.paragraphs(_capture_lines(stats.captures))
    writer.heading("Traffic")
    writer.paragraphs(_traffic_lines(summary, stats))
    writer.table("Operations", operations(summary.operations), operation_columns("REQUEST"))
    writer.table("Responses", responses(summary), RESPONSE_COLUMNS)
    writer.table(
        "Servers, without long polls",
        operations(summary.servers),
        operation_columns("SERVER"),
    )
    writer.table("Sends through proxies", proxied(summary), PROXIED_COLUMNS)
    writer.table("Clients", clients(summary), CLIENT_COLUMNS)
    writer.table("Conversations", conversations(summary), CONVERSATION_COLUMNS)
    writer.table("Replication", stats.replications, REPLICATION_COLUMNS)
    writer.table("Slowest, without long polls", slowest(summary), SLOW_COLUMNS)
    writer.table("Findings", findings(summary, stats, names), FINDING_COLUMNS)
    return writer.lines


class _Writer(FactLines):
    def verdict(self, diagnosis: Diagnosis) -> None:
        """Add the verdict, in a frame on a terminal."""
        facts = verdict_facts(diagnosis, MOST_PROBLEMS)
        if self.terminal.is_terminal:
            style = style_of_verdict(diagnosis.problems)
            self.lines += panel_lines("Verdict", style, facts, self.terminal)
            return
        self.heading("Verdict")
        self.paragraphs(
            [f"{fact.label} {fact.text}" if fact.label else fact.text for fact in facts]
        )

    def paragraphs(self, texts: Sequence[str]) -> None:
        """Add texts, each on its own lines."""
        indent = len(INDENT)
        self.text(*(Labelled(text, indent=indent, hang=indent) for text in texts))

    def table(self, title: str, rows: list[Row], columns: list[LineColumn[Row]]) -> None:
        """Add a table with its title, unless it is empty."""
        if not rows:
            return
        self.heading(title)
        shown = rows[:MOST_ROWS] if len(rows) > MOST_ROWS + 2 else rows
        width = self.terminal.width
        narrower = width if width >= UNLIMITED else width - len(INDENT)
        table = table_lines(shown, columns, self.terminal._replace(width=narrower))
        self.lines += [INDENT + line for line in table.lines]
        if table.hidden:
            self.text(_note(text_of_hidden(table.hidden)))
        if len(shown) < len(rows):
            self.text(_note(f"… and {count(len(rows) - len(shown))} more"))


def _note(text: str) -> Labelled:
    return Labelled(text, Style.DIM, indent=len(INDENT), hang=len(INDENT))


def _capture_lines(captures: Sequence[CaptureStats]) -> list[str]:
    lines = []
    for capture in captures[:MOST_CAPTURES]:
        kind = " ".join(filter(None, (capture.format or "no capture", capture.compression)))
        lines.append(
            f"{one_line(capture.name)}: {kind}, {counted(capture.packets, 'packet')}, "
            f"{size(capture.bytes)}, {_span(capture.first_ts, capture.last_ts)}"
        )
        if capture.skipped:
            skipped = ", ".join(f"{one_line(why)} {count(n)}" for why, n in capture.skipped.items())
            lines.append(f"packets without a TCP segment: {skipped}")
    if len(captures) > MOST_CAPTURES:
        packets = sum(capture.packets for capture in captures)
        total = sum(capture.bytes for capture in captures)
        more = len(captures) - MOST_CAPTURES
        lines.append(
            f"… and {counted(more, 'more capture')}; "
            f"{counted(packets, 'packet')} and {size(total)} in all"
        )
    return lines


def _span(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return "no packet"
    end = clock(last) if day(first) == day(last) else f"{day(last)} {clock(last)}"
    return (
        f"{day(first)} {clock(first)} to {end} {zone_name()} ({duration((last - first) // 1000)})"
    )


def _traffic_lines(summary: Summary, stats: DecodeStats) -> list[str]:
    undecoded = sum(stats.not_decoded.values())
    conversations = (
        f"{counted(stats.conversations, 'conversation')}: "
        f"{count(stats.rocketmq_conversations)} RocketMQ"
    )
    if stats.replication_conversations:
        conversations += f", {count(stats.replication_conversations)} replication"
    if undecoded:
        kinds = text_of_counts(stats.not_decoded)
        conversations += f", {count(undecoded)} not decoded ({kinds})"
    statuses = ", ".join(
        f"{count(summary.statuses[status])} {status}"
        for status in STATUSES
        if status in summary.statuses
    )
    seconds = ((summary.last_time or 0) - (summary.first_time or 0)) / 1e9
    rate = f", {summary.exchanges / seconds:,.0f} a second" if seconds >= 1 else ""
    exchanges = counted(summary.exchanges, "exchange") + (f": {statuses}{rate}" if statuses else "")
    gaps = "no gaps"
    if stats.gaps:
        gaps = f"{counted(stats.gaps, 'gap')}, {counted(stats.gap_bytes, 'byte')} not captured"
    commands = f"{counted(stats.commands, 'command')} in {counted(stats.frames, 'frame')}; {gaps}"
    return [conversations, commands, exchanges]
