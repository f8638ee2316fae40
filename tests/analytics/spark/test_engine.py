"""DuckDB and Spark execute the same text with the same rows, whatever the size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from analytics.derived import with_outcome
from analytics.report import ReportOptions
from analytics.reports import REPORT_MODULES, report_of
from analytics.result import computed
from analytics.spark.engine import MOST_HERE, SparkEngine
from analytics.sql.relation import RelationText
from tests.analytics.reported import decoded, on_spark
from tests.analytics.rows import HOSTILE_KEYS as HOSTILE
from tests.analytics.rows import report_input, row
from tests.analytics.sql.test_percentiles import EDGES, assert_buckets
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.report import ReportInput

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CAPTURES = sorted(
    str(file) for form in ("*.pcap", "*.pcapng", "*.pcap.gz") for file in SAMPLES.glob(form)
)


def results_of(given: ReportInput, names: Sequence[str] = REPORT_MODULES) -> dict[str, object]:
    """Return the rows of all tables, and the remarks, by name."""
    found: dict[str, object] = {}
    for result in computed([report_of(name) for name in names], given, ReportOptions()):
        found[f"remarks of {result.report.name}"] = result.notes
        found |= {name: table.data.to_pylist() for name, table in result.tables.items()}
    return found


def differing(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Return what two engines do not have in common, by table."""
    assert one.keys() == other.keys()
    return {name: (rows, other[name]) for name, rows in one.items() if rows != other[name]}


def kept_in(spark: SparkSession) -> int:
    """Return how many frames Spark keeps, filled or not."""
    manager = spark._jsparkSession.sharedState().cacheManager()  # type: ignore[attr-defined]
    return int(manager.numCachedEntries())


@contextmanager
def settings_of(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the shared session for a while."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


OF_SAMPLES = tuple(name for name in REPORT_MODULES if name != "diagnosis")
"""reports of all samples as one input; `test_diagnosis` compares the diagnosis of them as logs"""


@pytest.fixture(scope="module")
def every_sample() -> ReportInput:
    """All samples as one input: Spark takes about as long for a query of few rows as of more."""
    from analytics.inputs.source import read_here

    with decoded(CAPTURES, messages=True) as inputs:
        return read_here(inputs, messages=True).given


@pytest.fixture(scope="module")
def expected(every_sample: ReportInput) -> dict[str, object]:
    """What DuckDB makes of all samples."""
    found = results_of(every_sample, OF_SAMPLES)
    assert sum(len(rows) for rows in found.values() if isinstance(rows, list)) > 6000
    return found


def test_buckets_are_those_of_the_histogram(spark: SparkSession) -> None:
    chosen = Random(7)
    values = [None, *EDGES, *(chosen.getrandbits(63) for _ in range(5000))]
    engine = SparkEngine(spark)
    frame = spark.createDataFrame([(value,) for value in values], "value long")
    assert_buckets(engine, engine.given(frame))


@pytest.mark.parametrize("most", [-1, MOST_HERE], ids=["all by Spark", "kept rows by DuckDB"])
def test_every_sample_gives_the_same_tables(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    every_sample: ReportInput,
    expected: dict[str, object],
    most: int,
) -> None:
    before = kept_in(spark)
    monkeypatch.setattr("analytics.spark.engine.MOST_HERE", most)
    assert differing(results_of(on_spark(every_sample, spark), OF_SAMPLES), expected) == {}
    assert kept_in(spark) == before, "what was kept is let go"


def test_many_connections_are_not_sent_to_all_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are not broadcast give the same outcomes, and are not all sorted by one task."""
    ends = ("reset", "closed", "open", None)
    rows = [
        row(
            n * 1000,
            opaque=n - 20,
            conversation=n % 9,
            latency_us=None if n % 3 else 5,
            end=ends[n % 4],
        )
        for n in range(40)
    ]
    connections = [
        {
            "source": "test.pcap",
            "conversation": n,
            "directions": "both",
            "gaps": n % 2,
            "end": "rst",
        }
        for n in range(7)
    ]
    given = on_spark(report_input(rows, connections), spark)
    engine = given.kept.engine
    assert isinstance(engine, SparkEngine)
    assert given.conversations is not None
    few = engine.given(engine.frame(given.conversations), len(connections))
    monkeypatch.setattr("analytics.spark.engine.MOST_SENT", 1)
    monkeypatch.setattr("analytics.spark.engine.MOST_HERE", -1)
    many = engine.keep(given.conversations)
    assert many.is_large
    found = {}
    for name, facts in (("sent", few), ("many", many)):
        told = with_outcome(given.exchanges, facts).select("opaque", "outcome")
        assert ("broadcast" in RelationText(told).text) == (name == "sent")
        found[name] = engine.rows(told).sort_by("opaque").to_pylist()
    assert found["sent"] == found["many"]
    assert len({one["outcome"] for one in found["many"]}) > 2


MANY = 100_000
"""rows of the log that is made: more than this process keeps"""
SOME = 6_000
"""rows of one whose groups are divided"""
FEW = 200
"""most rows that this process keeps of that: one in a hundred that it usually does"""
IN_PARTS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
}
"""settings by which keys and groups of a log of few rows go to several tasks, in several batches"""
OF_ROWS = ("latency", "retries", "isolation", "overview", "quality")


def made_rows(count: int) -> Iterator[dict[str, object]]:
    """Rows with a topic and a key of many, topics and clients of few, and values of no sense."""
    dice = Random(1)
    topics, clients = count // 20, count // 33
    for number in range(count):
        key = f"{number - number % 3:032X}" if number % 7 else f"{number:032X}"
        values: dict[str, object] = {
            "request_packet": number,
            "unique_key": "0" * 32 if number % 200 == 0 else key,
            "topic": "hot" if number % 2 else f"topic-{number % topics}",
            "client_address": f"10.1.{number % clients // 200}.{number % 200}:{1024 + number % 7}",
            "server_address": f"10.0.0.{number % 4}:10911",
            "broker_name": f"broker-{number % 4}",
            "latency_us": int(dice.lognormvariate(7, 1)) if number % 11 else None,
            **({"response_code": 2, "response_name": "SYSTEM_BUSY"} if number % 13 == 0 else {}),
        }
        if number % 97 == 0:
            strange = STRANGE[number // 97 % len(STRANGE)]
            values |= dict.fromkeys(("topic", "group", "broker_name", "remark"), strange)
            values |= {"unique_key": strange, "client_address": strange, "queue_id": 2**63 - 1}
        one = row(number * 1000, **values)
        if number % 501 == 0:
            one |= {"latency_us": (2**63 - 1, -(2**63), -1)[number % 3], "request_time": None}
        yield one


STRANGE: Final = (
    *HOSTILE,
    "'",
    "`{x}`",
    "\\\\'",
    "a\x00b",
    "\u2028",
    "[::1]:1",
    "::1",
    ":",
    "--",
    "/**/",
)
"""Texts where names and addresses should be."""


def test_a_log_of_many_rows_gives_the_same_tables(spark: SparkSession) -> None:
    given = report_input(made_rows(MANY))
    expected = results_of(given, OF_ROWS)
    assert differing(results_of(on_spark(given, spark), OF_ROWS), expected) == {}
    assert exchanges_of(expected) == MANY


def test_a_log_in_parts_gives_the_same_tables(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark keeps most of what is computed, in several parts, and its tasks fold the groups."""
    given = report_input(made_rows(SOME))
    expected = results_of(given, OF_ROWS)
    monkeypatch.setattr("analytics.spark.engine.MOST_HERE", FEW)
    with settings_of(spark, IN_PARTS):
        large = on_spark(given, spark, parts=4)
        assert differing(results_of(large, OF_ROWS), expected) == {}
    assert exchanges_of(expected) == SOME
    assert sum(isinstance(rows, list) and len(rows) > FEW for rows in expected.values()) > 10


def exchanges_of(results: Mapping[str, object]) -> int:
    operations = results["operations"]
    assert isinstance(operations, list)
    return sum(one["exchanges"] for one in operations)
