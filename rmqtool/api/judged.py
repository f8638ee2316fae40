"""Feed what is decoded to the rules, as far as it is in the time that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import Problem, Subject
from analytics.diagnosis.registry import rule_of, rules, with_finders
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from dissectors.where.fields import suggestion

from ..errors import ArgumentError
from .notebook import html_table

if TYPE_CHECKING:
    import pandas


class Problems(list[Problem]):
    """Problems by incident, the cause first; a notebook shows them as a table."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per problem, with the parts of its subject as columns."""
        from .frames import load_pandas

        load_pandas()
        import pandas

        rows = [_row_of(problem) for problem in self]
        return pandas.DataFrame(rows, columns=[*_COLUMNS, *Subject.__struct_fields__, *_LAST])

    def _repr_html_(self) -> str:
        cells = [
            (one.severity, one.title, one.confidence, first_packets(one), one.advice)
            for one in self
        ]
        return html_table(("Severity", "Problem", "Confidence", "Packets", "What to do"), cells)


_COLUMNS: Final = (
    *("incident", "severity", "rule", "title", "confidence", "reason", "consequence_of", "count"),
    *("first_time", "last_time", "state"),
)
_LAST: Final = ("packets", "filter", "explanation", "advice")


def _row_of(problem: Problem) -> dict[str, object]:
    import pandas

    row: dict[str, object] = {name: getattr(problem, name) for name in _COLUMNS}
    row |= {name: str(row[name]) for name in ("severity", "confidence")}
    row["state"] = None if problem.state is None else str(problem.state)
    row["first_time"] = pandas.Timestamp(problem.first_time, unit="ns", tz="UTC")
    row["last_time"] = pandas.Timestamp(problem.last_time, unit="ns", tz="UTC")
    row |= {name: getattr(problem.subject, name) for name in Subject.__struct_fields__}
    row["packets"] = [one.packet for one in problem.evidence if one.packet is not None]
    return row | {name: getattr(problem, name) for name in _LAST[1:]}


def first_packets(problem: Problem) -> str:
    """Return the numbers of the first packets that prove a problem."""
    return ", ".join(str(one.packet) for one in problem.evidence[:4] if one.packet is not None)


def rules_named(names: Iterable[str]) -> Sequence[DiagnosisRule]:
    """Return the rules of these ids, all without ids; raise ArgumentError for an unknown one."""
    found = []
    for name in dict.fromkeys(names):
        rule = rule_of(name)
        if rule is None:
            near = suggestion(name, [one.id for one in rules()], "rules")
            raise ArgumentError(f"unknown rule: {name!r}{near}")
        found.append(rule)
    return found or rules()


def engine_of(rules: Sequence[DiagnosisRule]) -> Engine:
    """Return what judges by these rules, and by nothing else."""
    return Engine(with_finders(rules), {rule.id for rule in rules})


def fed(
    decode: Decode, engine: Engine, window: Callable[[ExchangeRecord], bool] | None = None
) -> Iterator[int]:
    """Feed what is decoded to the engine, batch by batch; yield how many exchanges were read.

    `window`: which exchanges count; None: all.
    """
    for batch in decode.records():
        engine.add_exchanges(batch if window is None else [row for row in batch if window(row)])
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_experts())
        yield len(batch)
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_experts())
