"""The reports as a Spark job: ``spark-submit analytics/job.py latency log/ -o hdfs:///reports/``.

Rules: Spark is what `spark-submit` made it; inputs are read by its tasks, tables are written by its
tasks, one folder a table. What is wrong is one line and an exit status, as in `rmqtool report`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a file: its own folder is on the path, not the one above
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.errors import ReportError, reason_of
from analytics.inputs import inputs_of
from analytics.reports import REPORT_MODULES, ReportOptions, conforming, report_of
from dissectors.times import moment_of

FORMS = ("parquet", "csv", "json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, report, write; return the exit status."""
    chosen = _parser().parse_args(arguments)
    try:
        _run(chosen)
    except ReportError as error:
        return _said(error)
    except Exception as error:
        return _said(reason_of(error))
    return 0


def _said(error: ReportError) -> int:
    hint = f" ({error.hint})" if error.hint else ""
    sys.stderr.write(f"rmqtool: {error.message}{hint}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="RocketMQ reports as a Spark job")
    parser.add_argument("report", choices=[*REPORT_MODULES, "all"])
    parser.add_argument("input", nargs="+", help="captures, decoded logs, files of their rows")
    parser.add_argument("-o", "--output", required=True, help="folder, of any file system")
    parser.add_argument("-f", "--format", choices=FORMS, default=FORMS[0])
    parser.add_argument("-w", "--where", default="", help="filter, as in rmqtool decode")
    parser.add_argument("--since", default=None)
    parser.add_argument("--until", default=None)
    parser.add_argument("--window-us", type=int, default=None, help="length of a window, µs")
    parser.add_argument("--slowest", type=int, default=20)
    parser.add_argument("--mode", choices=("overwrite", "error"), default="error")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    from analytics.filters import chosen as filtered
    from analytics.source import read_inputs, refuse_nothing

    inputs = inputs_of(chosen.input)
    spark = SparkSession.builder.appName("rmqtool report").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        tables = read_inputs(spark, inputs)
        since, until = (
            None if text is None else moment_of(text) for text in (chosen.since, chosen.until)
        )
        given = filtered(tables.given, chosen.where, since, until)
        refuse_nothing(tables)
        options = ReportOptions(window_us=chosen.window_us, slowest=chosen.slowest)
        names = REPORT_MODULES if chosen.report == "all" else (chosen.report,)
        for name in names:
            report = report_of(name)
            frames = report.build(given, options)
            for table in report.tables:
                if table.name in frames:
                    frame = conforming(frames[table.name], table)
                    writer = frame.coalesce(1).write.mode(chosen.mode).format(chosen.format)
                    writer.option("header", "true").save(f"{chosen.output}/{table.name}")
        for remark in tables.remarks:
            sys.stderr.write(f"rmqtool: {remark}\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
