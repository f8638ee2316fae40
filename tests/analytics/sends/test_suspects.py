"""Which messages are looked at, by both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.report import TableColumn
from analytics.sends.sends import sends_and_calls_of
from analytics.sends.suspects import flagged_keys
from tests.analytics.reported import on_spark
from tests.analytics.rows import report_input, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BUSY = {"response_code": 2, "response_name": "SYSTEM_BUSY"}
_NAMES = tuple(TableColumn(name, "string", "", "") for name in ("server_address", "broker"))


def _told(spark: SparkSession | None = None) -> int:
    rows = [
        row(number * 1000, unique_key=f"0A00000100002A9F{number:016X}", opaque=number)
        for number in range(200)
    ]
    rows += [row(300_000, unique_key="0A00000100002A9F" + f"{7:016X}", opaque=300)]
    rows += [
        row(400_000, unique_key="slow", latency_us=2_900_000, opaque=301),
        row(400_000, unique_key="refused", **BUSY, opaque=302),
        row(400_000, unique_key=None, **BUSY, opaque=303),
        row(400_000, unique_key="cut", latency_us=None, end="reset", opaque=304),
        row(400_000, unique_key="open", latency_us=None, end="open", opaque=305),
    ]
    given = report_input(rows)
    if spark is not None:
        given = on_spark(given, spark)
    kept = given.kept
    names = kept.empty(_NAMES)
    flagged = flagged_keys(sends_and_calls_of(given.exchanges), names, None, 3_000_000)
    keys = kept.rows(kept.noted(kept.engine.repeated(flagged))).column("key").to_pylist()
    assert len(set(keys)) == len(keys)
    return len(keys)


def test_messages_that_repeat_or_went_wrong_are_looked_at() -> None:
    assert _told() == 5


def test_spark_finds_as_many(spark: SparkSession) -> None:
    assert _told(spark) == 5
