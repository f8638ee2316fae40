"""Tables of a report as rows, from captures or from rows made up for a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from analytics.report import ReportInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.inputs.inputs import Input
    from analytics.sql.relation import Relation

Tables = Mapping[str, list[dict[str, object]]]


def tables_of(report: str, files: Sequence[str], *names: str, **options: object) -> Tables:
    """Return the tables of a report on captures, or some of them, by the local engine."""
    from analytics.reports import report_of

    given = input_of(tuple(files), report_of(report).messages)
    return tables_from(report, given, *names, **options)


@lru_cache(maxsize=3)
def input_of(files: tuple[str, ...], messages: bool = False) -> ReportInput:
    """Return an input as `rmqtool report` reads it with the local engine; reports share it."""
    from analytics.inputs.source import read_here

    with decoded(files, messages) as inputs:
        return read_here(inputs, messages).given


@contextmanager
def decoded(files: Sequence[str], messages: bool = False) -> Iterator[list[Input]]:
    """Decode captures to logs, for as long as they are read."""
    from analytics.inputs.captures import TemporaryLog
    from analytics.inputs.inputs import InputKind, inputs_of

    inputs = inputs_of(files)
    log = TemporaryLog()
    try:
        for place, one in enumerate(inputs):
            if one.kind is InputKind.captures:
                inputs[place] = log.write(one, (), "test", lambda *_: None, messages)
        yield inputs
    finally:
        log.close()


def on_spark(given: ReportInput, spark: SparkSession, parts: int = 1) -> ReportInput:
    """Return an input that this process holds as one of Spark, whose tasks do the work.

    `parts` is the number of partitions of each of its tables.
    """
    from analytics.kept import Kept
    from analytics.spark.engine import SparkEngine

    engine = SparkEngine(spark)

    def moved(relation: Relation | None) -> Relation | None:
        if relation is None:
            return None
        frame = engine.frame(engine.hold(given.kept.rows(relation)))
        return engine.given(frame if parts == 1 else frame.repartition(parts))

    exchanges = moved(given.exchanges)
    assert exchanges is not None
    others = (moved(one) for one in (given.conversations, given.findings, given.messages))
    return ReportInput(exchanges, Kept(engine), *others)


def tables_from(report: str, given: ReportInput, *names: str, **options: object) -> Tables:
    """Return the tables of a report on an input, or some, as `rmqtool report` computes them."""
    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed

    chosen = report_of(report)
    if names:
        tables = tuple(one for one in chosen.tables if one.name in names)
        assert len(tables) == len(names)
        chosen = replace(chosen, tables=tables)
        options = {**options, "tables": frozenset(names)}
    (result,) = computed([chosen], given, ReportOptions(**options))  # type: ignore[arg-type]
    return {name: [dict(row) for row in table.rows()] for name, table in result.tables.items()}
