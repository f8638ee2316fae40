"""The summary as text: a paragraph on the capture, then one table per question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from dissectors.quantities import counted
from dissectors.rows.record import STATUSES

from ..ui.columns import LineColumn, text_of_hidden
from ..ui.console import UNLIMITED, Style, Terminal, one_line
from ..ui.figures import clock, count, day, duration, size, text_of_counts, zone_name
from ..ui.screen.panels import FactLines, Labelled, panel_lines
from ..ui.screen.tables import table_lines
from .summary import Summary
from .summary_tables import (
    CLIENT_COLUMNS,
    CONVERSATION_COLUMNS,
    FINDING_COLUMNS,
    PROXIED_COLUMNS,
    REPLICATION_COLUMNS,
    RESPONSE_COLUMNS,
    SLOW_COLUMNS,
    clients,
    conversations,
    findings,
    operation_columns,
    operations,
    proxied,
    responses,
    slowest,
)
from .verdict import style_of_verdict, verdict_facts

if TYPE_CHECKING:
    from analytics.diagnosis.engine import Diagnosis
    from dissectors.decode.pipeline import CaptureStats, DecodeStats

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
