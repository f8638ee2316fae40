"""The tables of the summary: which rows in which order, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dissectors.expert import ExpertKind, Severity
from dissectors.outcome import is_failure
from dissectors.record import ExchangeRecord
from dissectors.tcp.capture import capture_index, packet_number

from .columns import Column
from .console import Style, one_line
from .figures import clock, count, duration, share, size
from .summary import Answer, Bounded, ClientKey, Operation, Peer, Summary

if TYPE_CHECKING:
    from dissectors.pipeline import DecodeStats
    from dissectors.replication import Replication

Row = TypeVar("Row")


def _counter(title: str, get: Callable[[Row], int], rank: int) -> Column[Row]:
    return Column(title, lambda row: count(get(row)), rank, max(5, len(title)), 12, True)


def _alarm(title: str, get: Callable[[Row], int], rank: int) -> Column[Row]:
    """A counter that should be 0."""

    def style(row: Row) -> str:
        return Style.RED if get(row) else ""

    return _counter(title, get, rank)._replace(style=style)


def _size(get: Callable[[Row], int], rank: int) -> Column[Row]:
    return Column("BYTES", lambda row: size(get(row)), rank, 7, 8, True)


# -- operations and responders ----------------------------------------------------------------

NamedOperation = tuple[str, Operation]


def operations(table: Bounded[str, Operation]) -> list[NamedOperation]:
    """Return the most frequent first."""
    return sorted(table.rows.items(), key=lambda item: -item[1].count)


def operation_columns(title: str) -> list[Column[NamedOperation]]:
    """Return the columns; `title` says what the names are."""

    def latency(percent: float) -> Column[NamedOperation]:
        def cell(row: NamedOperation) -> str:
            return duration(row[1].latency.percentile(percent))

        return Column(f"P{percent:g}", cell, 2, 7, 7, True)

    return [
        Column(title, lambda r: one_line(r[0]), 1, 20, 47),
        _counter("COUNT", lambda r: r[1].count, 1),
        _alarm("FAILED", lambda r: r[1].failed, 1),
        _alarm("UNANSWERED", lambda r: r[1].unanswered, 4),
        _counter("ONEWAY", lambda r: r[1].oneway, 8),
        latency(50),
        latency(99),
        Column("MAX", lambda r: duration(_largest(r[1])), 3, 7, 7, True),
        _size(lambda r: r[1].bytes, 9),
    ]


def _largest(operation: Operation) -> int | None:
    return operation.latency.largest if operation.latency.count else None


# -- answers ----------------------------------------------------------------------------------


class NamedAnswer(NamedTuple):
    """A row of answers."""

    code: int
    """response code"""
    name: str
    """its name"""
    answer: Answer
    """how often, to what"""
    total: int
    """answers in all"""


def answers(summary: Summary) -> list[NamedAnswer]:
    """Return what is normal first, then the failures, each by frequency."""
    rows = summary.answers.rows
    total = sum(answer.count for answer in rows.values())
    ranked = sorted(rows.items(), key=lambda item: (item[1].failure, -item[1].count))
    return [NamedAnswer(code, name, answer, total) for (code, name), answer in ranked]


def _requests(row: NamedAnswer) -> str:
    ranked = sorted(row.answer.requests.items(), key=lambda item: -item[1])
    names = [f"{one_line(name)} {count(n)}" for name, n in ranked[:3]]
    return ", ".join(names) + (", …" if len(ranked) > 3 else "")


def _answer_example(row: NamedAnswer) -> str:
    example = row.answer.example
    if not row.answer.failure or example is None:
        return ""
    return f"packet {example.response_packet}: {one_line(example.remark) or '-'}"


def _answer_style(row: NamedAnswer) -> str:
    return Style.RED if row.answer.failure else ""


ANSWER_COLUMNS: list[Column[NamedAnswer]] = [
    Column("CODE", lambda r: str(r.code), 1, 4, 6, True),
    Column("RESPONSE", lambda r: one_line(r.name), 1, 16, 40, style=_answer_style),
    _counter("COUNT", lambda r: r.answer.count, 1),
    Column("SHARE", lambda r: share(r.answer.count, r.total), 3, 5, 6, True),
    Column("TO", _requests, 4, 20, 44),
    Column("EXAMPLE", _answer_example, 8, 20, 200),
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
    """Return who asks most and who answers: a broker may have asked first."""
    if peer.first is None:
        return "-", "-"
    ends = peer.first.requester, peer.first.responder
    return ends if peer.reversed * 2 <= peer.count else ends[::-1]


CLIENT_COLUMNS: list[Column[NamedClient]] = [
    Column("ADDRESS", lambda r: r[0].address, 1, 15, 39),
    Column("LANGUAGE", lambda r: one_line(r[0].language) or "-", 1, 8, 10),
    Column("VERSION", lambda r: one_line(r[0].version) or "-", 1, 7, 20),
    _counter("CONNECTIONS", lambda r: len(r[1].conversations), 5),
    _counter("EXCHANGES", lambda r: r[1].count, 2),
    _alarm("FAILED", lambda r: r[1].failed, 3),
    _alarm("UNANSWERED", lambda r: r[1].unanswered, 4),
    _size(lambda r: r[1].bytes, 8),
]
CONVERSATION_COLUMNS: list[Column[NamedConversation]] = [
    Column("NUMBER", lambda r: str(r[0]) if r[0] >= 0 else "others", 3, 6, 8, True),
    Column("REQUESTER", lambda r: ends_of(r[1])[0], 1, 15, 47, keep_end=True),
    Column("RESPONDER", lambda r: ends_of(r[1])[1], 1, 15, 47, keep_end=True),
    _counter("EXCHANGES", lambda r: r[1].count, 2),
    _alarm("FAILED", lambda r: r[1].failed, 4),
    _alarm("UNANSWERED", lambda r: r[1].unanswered, 5),
    _size(lambda r: r[1].bytes, 6),
    Column("FIRST SEEN", lambda r: _first_seen(r[1]), 9, 12, 12),
]


# -- replication ------------------------------------------------------------------------------


def _span_of(one: Replication) -> str:
    return "-" if one.first_offset is None else f"{one.first_offset}..{one.last_offset}"


def _offset(number: int | None) -> str:
    return "-" if number is None else str(number)


def _confirmed(one: Replication) -> str:
    return "" if one.confirm_offset is None else str(one.confirm_offset)


def _epochs(one: Replication) -> str:
    return ", ".join(f"{epoch} from {start}" for epoch, start in one.epochs)


REPLICATION_COLUMNS: list[Column[Replication]] = [
    Column("NUMBER", lambda r: str(r.conversation), 6, 6, 8, True),
    Column("KIND", lambda r: r.kind, 6, 7, 10),
    Column("SLAVE", lambda r: r.slave, 1, 15, 47, keep_end=True),
    Column("MASTER", lambda r: r.master, 1, 15, 47, keep_end=True),
    _counter("TRANSFERS", lambda r: r.transfers, 4),
    _size(lambda r: r.bytes, 3),
    Column("OFFSETS", _span_of, 5, 7, 32, True),
    Column("REPORTED", lambda r: _offset(r.acknowledged), 5, 8, 16, True),
    Column("BEHIND", lambda r: size(r.lag_bytes), 1, 7, 8, True),
    Column("MOST", lambda r: size(r.largest_lag_bytes), 2, 7, 8, True),
    Column("LAG P50", lambda r: duration(r.lag_p50_us), 2, 7, 7, True),
    Column("LAG MAX", lambda r: duration(r.largest_lag_us), 1, 7, 7, True),
    _counter("HEARTBEATS", lambda r: r.heartbeats, 9),
    _counter("REPORTS", lambda r: r.reports, 9),
    _alarm("GAPS", lambda r: r.gaps, 7),
    Column("CONFIRMED", _confirmed, 8, 9, 16, True),
    Column("EPOCHS", _epochs, 8, 6, 24),
]


# -- slowest exchanges ------------------------------------------------------------------------


def slowest(summary: Summary) -> list[ExchangeRecord]:
    """Return the slowest first."""
    return [record for _, _, record in sorted(summary.slowest, reverse=True)]


def _slow_outcome(record: ExchangeRecord) -> str:
    return one_line(record.response_name) or record.status


def _slow_style(record: ExchangeRecord) -> str:
    return Style.RED if is_failure(record.response_name) else ""


SLOW_COLUMNS: list[Column[ExchangeRecord]] = [
    Column("LATENCY", lambda r: duration(r.latency_us), 1, 7, 7, True),
    Column("TIME", lambda r: clock(r.request_time), 2, 12, 12),
    Column("PACKET", lambda r: str(r.request_packet), 3, 6, 9, True),
    Column("REQUEST", lambda r: one_line(r.request_name), 1, 15, 32),
    Column("OUTCOME", _slow_outcome, 2, 10, 28, style=_slow_style),
    Column("TOPIC", lambda r: one_line(r.topic) or "-", 4, 10, 40),
    Column("RESPONDER", lambda r: r.responder, 5, 15, 47, keep_end=True),
    Column("REQUESTER", lambda r: r.requester, 8, 15, 47, keep_end=True),
]


# -- findings ---------------------------------------------------------------------------------


class FindingRow(NamedTuple):
    """A row of findings."""

    kind: ExpertKind
    """what was found"""
    number: int
    """how often"""
    example: str
    """where first, and what exactly"""


def findings(summary: Summary, stats: DecodeStats, names: Sequence[str]) -> list[FindingRow]:
    """Return the most severe first; `names` are the captures, by index."""
    ranked = sorted(stats.expert_counts.items(), key=lambda item: (-item[0].severity, -item[1]))
    return [FindingRow(kind, n, _example(summary, kind, names)) for kind, n in ranked]


def _example(summary: Summary, kind: ExpertKind, names: Sequence[str]) -> str:
    info = summary.findings.get(kind)
    if info is None:
        return ""
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


FINDING_COLUMNS: list[Column[FindingRow]] = [
    Column("SEVERITY", lambda r: r.kind.severity.name.lower(), 1, 7, 8, style=_severity_style),
    Column("KIND", lambda r: r.kind.name, 1, 12, 24, style=_severity_style),
    _counter("COUNT", lambda r: r.number, 1),
    Column("MEANING", lambda r: r.kind.meaning, 3, 20, 80),
    Column("FIRST", lambda r: r.example, 8, 20, 200),
]
