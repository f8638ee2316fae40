"""Tables of a report as rows, from captures or from rows made up for a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput

Tables = Mapping[str, list[dict[str, object]]]


def tables_of(spark: SparkSession, report: str, files: Sequence[str], **options: object) -> Tables:
    """Return the tables of a report on captures."""
    from analytics.reports import report_of

    given = _read(spark, tuple(files), report_of(report).messages)
    return tables_from(report, given, **options)


@lru_cache(maxsize=3)
def _read(spark: SparkSession, files: tuple[str, ...], messages: bool) -> ReportInput:
    """Return an input as `rmqtool report` reads them on one machine; reports share them."""
    from analytics.inputs.captures import TemporaryLog
    from analytics.inputs.filters import chosen
    from analytics.inputs.inputs import InputKind, inputs_of
    from analytics.inputs.source import read_inputs

    inputs = inputs_of(files)
    log = TemporaryLog()
    try:
        for place, one in enumerate(inputs):
            if one.kind is InputKind.captures:
                inputs[place] = log.write(one, (), "test", lambda *_: None, messages)
        given = chosen(read_inputs(spark, inputs, messages=messages).given)
    finally:
        log.close()
    assert given.small, "what is not small would be read again"
    return given


def tables_from(report: str, given: ReportInput, **options: object) -> Tables:
    """Return the tables of a report on an input, each row with the columns as described."""
    from analytics.report import ReportOptions, conforming
    from analytics.reports import report_of

    described = report_of(report)
    frames = described.build(given, ReportOptions(**options))  # type: ignore[arg-type]
    return {
        table.name: [row.asDict() for row in conforming(frames[table.name], table).collect()]
        for table in described.tables
        if table.name in frames
    }
