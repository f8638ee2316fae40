"""The summary of a capture: counted while it is read, then text, data, or a part of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..summary.summary import Summary
from .notebook import html_cell, html_table

if TYPE_CHECKING:
    from analytics.diagnosis.engine import Diagnosis, Engine
    from analytics.diagnosis.problem import Problem
    from dissectors.decode.pipeline import Decode
    from dissectors.decode.totals import DecodeStats
    from dissectors.findings import Finding
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.record import ExchangeRecord

_OPERATION: Final = ("count", "failed", "unanswered", "p50_us", "p99_us")
_CLIENT: Final = ("address", "language", "version", "connections", "exchanges", "failed")
_TABLES: Final = (
    ("Operations", "operations", ("request_name", *_OPERATION)),
    ("Servers", "servers", ("server_address", *_OPERATION)),
    ("Clients", "clients", _CLIENT),
    ("Findings", "findings", ("kind", "severity", "count", "meaning")),
)
"""title, summary table, and columns for a notebook"""


class SummaryFold:
    """Builds the summary of a run."""

    def __init__(self, diagnosed: bool) -> None:
        """`diagnosed`: also diagnose problems, which needs all rows."""
        self.summary = Summary()
        self._engine: Engine | None = None
        if diagnosed:
            from analytics.diagnosis.engine import Engine
            from analytics.diagnosis.registry import rules

            self._engine = Engine(rules())

    def add(self, rows: Sequence[ExchangeRecord]) -> None:
        """Count exchanges."""
        self.summary.add(rows)
        if self._engine is not None:
            self._engine.add_exchanges(rows)

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Count findings."""
        self.summary.add_findings(findings)
        if self._engine is not None:
            self._engine.add_findings(findings)

    def add_connections(self, rows: Sequence[ConversationRecord]) -> None:
        """Add TCP connections, for the diagnosis."""
        if self._engine is not None:
            self._engine.add_connections(rows)

    def diagnosis(self) -> Diagnosis | None:
        """Return the diagnosis, or None if it was not requested."""
        return self._engine.diagnosis() if self._engine is not None else None


class CaptureSummary:
    """The summary of a capture; shown as tables in a notebook, as text by `print`."""

    def __init__(
        self,
        summary: Summary,
        stats: DecodeStats,
        names: Sequence[str],
        diagnosis: Diagnosis | None,
    ) -> None:
        self._summary = summary
        self._stats = stats
        self._names = names
        self._diagnosis = diagnosis

    @property
    def problems(self) -> list[Problem]:
        """The problems, most severe first; empty if only a part of the capture was read."""
        return self._diagnosis.problems if self._diagnosis is not None else []

    @property
    def limits(self) -> list[str]:
        """The limits of the capture: missing data and skipped rules."""
        from analytics.diagnosis.engine import not_judged

        return not_judged(self._diagnosis) if self._diagnosis is not None else []

    def to_dict(self) -> dict[str, Any]:
        """Return all of its tables in types that JSON has, as of ``--summary -T jsonl``."""
        from msgspec.json import Decoder

        from dissectors.foreign import json_of

        from ..summary.summary_json import summary_json

        return json_of(
            Decoder(dict[str, Any]), summary_json(self._summary, self._stats, self._diagnosis)
        )

    def __str__(self) -> str:
        from ..summary.summary_text import summary_lines
        from ..ui.console import Terminal

        terminal = Terminal(False, 100, False)
        return "\n".join(
            summary_lines(self._summary, self._stats, self._names, terminal, self._diagnosis)
        )

    def __repr__(self) -> str:
        return f"CaptureSummary({self._summary.exchanges} exchanges, {len(self.problems)} problems)"

    def _repr_html_(self) -> str:
        data = self.to_dict()
        parts = ["<div>"]
        if self._diagnosis is not None:
            from ..summary.verdict import verdict

            parts.append(f"<h4>{html_cell(verdict(self._diagnosis))}</h4>")
            rows = [{**problem, **problem["subject"]} for problem in data["problems"]]
            parts.append(_table(rows, ("severity", "title", "rule", "count", "first_time")))
        times = f"{data['first_time'] or '-'} to {data['last_time'] or '-'}"
        parts.append(f"<p>{html_cell(data['exchanges'])} exchanges, {html_cell(times)}</p>")
        for title, name, columns in _TABLES:
            if data[name]:
                parts.append(f"<h4>{title}</h4>")
                parts.append(_table(data[name], columns))
        return "\n".join([*parts, "</div>"])


def summarised(decode: Decode) -> CaptureSummary:
    """Return the summary of a whole run."""
    fold = SummaryFold(diagnosed=True)
    for batch in decode.records():
        fold.add(batch)
        fold.add_connections(decode.take_conversations())
        fold.add_findings(decode.take_findings())
    fold.add_connections(decode.take_conversations())
    fold.add_findings(decode.take_findings())
    return CaptureSummary(fold.summary, decode.stats, decode.sources, fold.diagnosis())


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    return html_table(columns, [[row.get(name) for name in columns] for row in rows])
