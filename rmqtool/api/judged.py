"""Feed what is decoded to the rules, as far as it is in the time that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rule_of, rules, with_finders
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from dissectors.where.fields import suggestion

from ..errors import ArgumentError


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
