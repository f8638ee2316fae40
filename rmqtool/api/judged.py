"""Feed decoded rows within a time window to the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self

from analytics.diagnosis.engine import Diagnosis, Engine, not_judged_in_short
from analytics.diagnosis.incidents import impact_of
from analytics.diagnosis.problem import Problem, Subject
from analytics.diagnosis.registry import rule_of, rules, with_finders
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode
from dissectors.findings import Finding
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Moment, bounds
from dissectors.where.fields import suggestion

from ..errors import ArgumentError
from .choice import Choice
from .notebook import html_table
from .tables.exchanges import time_of_exchange

if TYPE_CHECKING:
    import pandas

    from analytics.inputs.inputs import Input


class Problems(list[Problem]):
    """Problems by incident, the cause first; a notebook shows them as a table."""

    limits: Sequence[str] = ()
    """limits of the diagnosis: skipped rules, unreadable packets and stores"""

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> Self:
        """Return the problems of a diagnosis, with its limits."""
        problems, store = cls(diagnosis.problems), diagnosis.context.store
        problems.limits = [
            *not_judged_in_short(diagnosis),
            *diagnosis.limits,
            *(() if store is None else store.notes),
        ]
        return problems

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per problem, with the parts of its subject as columns."""
        from .frames import FRAME_NAMES, load_pandas

        load_pandas()
        import pandas

        rows = [_row_of(problem) for problem in self]
        frame = pandas.DataFrame(rows, columns=[*_COLUMNS, *Subject.__struct_fields__, *_LAST])
        return frame.rename(columns=FRAME_NAMES)

    def _repr_html_(self) -> str:
        cells = [
            (
                problem.severity,
                problem.title,
                problem.confidence,
                first_packets(problem),
                problem.advice,
            )
            for problem in self
        ]
        return html_table(("Severity", "Problem", "Confidence", "Packets", "What to do"), cells)


_COLUMNS: Final = (
    *("incident", "severity", "rule", "title", "confidence", "reason", "consequence_of", "count"),
    *("first_time", "last_time", "state", "impact"),
)
_LAST: Final = ("packets", "filter", "explanation", "advice")


def _row_of(problem: Problem) -> dict[str, object]:
    import pandas

    row: dict[str, object] = {name: getattr(problem, name) for name in _COLUMNS}
    row |= {name: str(row[name]) for name in ("severity", "confidence")}
    row["state"] = None if problem.state is None else str(problem.state)
    row["first_time"] = pandas.Timestamp(problem.first_time, unit="ns", tz="UTC")
    row["last_time"] = pandas.Timestamp(problem.last_time, unit="ns", tz="UTC")
    row["impact"] = impact_of([problem]) or None
    row |= {name: getattr(problem.subject, name) for name in Subject.__struct_fields__}
    row["packets"] = [
        evidence.packet for evidence in problem.evidence if evidence.packet is not None
    ]
    return row | {name: getattr(problem, name) for name in _LAST[1:]}


def first_packets(problem: Problem) -> str:
    """Return the first packet numbers of the evidence of a problem."""
    return ", ".join(
        str(evidence.packet) for evidence in problem.evidence[:4] if evidence.packet is not None
    )


def rules_named(names: Iterable[str]) -> Sequence[DiagnosisRule]:
    """Return the rules of these ids, all without ids; raise ArgumentError for an unknown one."""
    result = []
    for name in dict.fromkeys(names):
        rule = rule_of(name)
        if rule is None:
            near = suggestion(name, [known_rule.id for known_rule in rules()], "rules")
            raise ArgumentError(f"unknown rule: {name!r}{near}")
        result.append(rule)
    return result or rules()


def engine_of(rules: Sequence[DiagnosisRule]) -> Engine:
    """Return an engine with only these rules."""
    return Engine(with_finders(rules), {rule.id for rule in rules})


class RequestedTime:
    """Rows of a time window, or all rows without one.

    Exchanges belong to it by their start, or else their end; connections by overlap. Times of day
    are on the day of `first_time`, the first packet's (ns, known once there are rows); None: that
    of the first exchange.
    """

    def __init__(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        first_time: Callable[[], int] | None = None,
    ) -> None:
        self._all = since is None and until is None
        self._since, self._until = since, until
        self._first_time = first_time
        self._bounds: tuple[int | None, int | None] | None = None

    @classmethod
    def of(cls, choice: Choice) -> RequestedTime:
        """Return the time window of a choice."""
        since, until = (
            None if ns is None else Moment(ns, has_date=True) for ns in (choice.since, choice.until)
        )
        return cls(since, until)

    def exchanges(self, rows: Sequence[ExchangeRecord]) -> Sequence[ExchangeRecord]:
        """Return the rows within the window."""
        if self._all:
            return rows
        timed = [(row, time) for row in rows if (time := time_of_exchange(row)) is not None]
        return [row for row, time in timed if self._overlaps(time, time)]

    def messages(self, rows: Sequence[MessageRecord]) -> Sequence[MessageRecord]:
        """Return the rows within the window."""
        if self._all:
            return rows
        timed = [(row, row.time) for row in rows if row.time is not None]
        return [row for row, time in timed if self._overlaps(time, time)]

    def connections(self, rows: Iterable[ConversationRecord]) -> Iterable[ConversationRecord]:
        """Return the connections that overlap the window."""
        if self._all:
            return rows
        return [row for row in rows if self._overlaps(row.start_time, row.end_time)]

    def findings(self, found: Iterable[Finding]) -> Iterable[Finding]:
        """Return the findings within the window, and those without packet (of a whole capture)."""
        if self._all:
            return found
        return [
            finding for finding in found if not finding.ts or self._overlaps(finding.ts, finding.ts)
        ]

    def limit(self, engine: Engine) -> None:
        """Restrict the engine to problems within the window: connections last longer."""
        if self._bounds is not None:
            engine.want(self._bounds)

    def _overlaps(self, first: int, last: int) -> bool:
        if self._bounds is None:
            # Times of day are on this day: nothing of the capture is known before its first row.
            begin = first if self._first_time is None else self._first_time()
            self._bounds = bounds(self._since, self._until, begin)
        since, until = self._bounds
        return (since is None or last >= since) and (until is None or first < until)


def fed_rows(given: Input, engine: Engine, asked: RequestedTime) -> Iterator[int]:
    """Feed the rows of an input to the engine, batch by batch; yield the number of exchanges.

    Raise InputError for a damaged file.
    """
    from analytics.inputs.rows import conversation_rows, exchange_rows, finding_rows

    engine.begin_input(given.name)
    for rows in exchange_rows(given):
        engine.add_exchanges(asked.exchanges(rows))
        yield len(rows)
    for connections in conversation_rows(given):
        engine.add_connections(asked.connections(connections))
    for findings in finding_rows(given):
        engine.add_findings(asked.findings(findings))


def fed(decode: Decode, engine: Engine, asked: RequestedTime | None = None) -> Iterator[int]:
    """Feed decoded rows to the engine, batch by batch; yield the number of exchanges."""
    asked = asked or RequestedTime()
    for batch in decode.records():
        engine.add_exchanges(asked.exchanges(batch))
        engine.add_connections(asked.connections(decode.take_conversations()))
        engine.add_findings(asked.findings(decode.take_findings()))
        yield len(batch)
    engine.add_connections(asked.connections(decode.take_conversations()))
    engine.add_findings(asked.findings(decode.take_findings()))
