"""The latency report with Spark as it comes: no setting, no archive; what `--start` compares with.

python -m tests.bench.reports.plain CAPTURE
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from analytics.inputs.captures import TemporaryLog
from analytics.inputs.inputs import inputs_of
from analytics.inputs.source import read_inputs
from analytics.report import ReportOptions
from analytics.reports import report_of
from analytics.result import computed
from rmqtool.report.text import report_lines
from rmqtool.ui.console import UNLIMITED, Terminal


def main() -> None:
    """Decode, start Spark, report, print: the same work as `rmqtool report latency`."""
    log = TemporaryLog()
    try:
        (captures,) = inputs_of(sys.argv[1:])
        decoded = log.write(captures, (), "bench", lambda read, total, found: None)
        spark = SparkSession.builder.getOrCreate()
        tables = read_inputs(spark, [decoded])
        report = report_of("latency")
        shown = frozenset(table.name for table in report.tables if table.shown)
        chosen = report.__class__(
            report.name,
            report.title,
            report.question,
            tuple(table for table in report.tables if table.name in shown),
            report.build,
            report.charts,
            report.remarks,
        )
        results = computed([chosen], tables.given, ReportOptions(tables=shown))
        print("\n".join(report_lines(results, Terminal(False, UNLIMITED, False))))
        _end(spark)
    finally:
        log.close()


def _end(spark: SparkSession) -> None:
    """End Spark and wait for Java, whose time counts."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    process = gateway.proc
    spark.stop()
    gateway.shutdown()
    process.stdin.close()
    process.wait()


if __name__ == "__main__":
    main()
