"""The reports as a Spark job: ``spark-submit analytics/job.py latency log/ -o hdfs:///reports/``.

Rules: Spark is what `spark-submit` made it; inputs are read by its tasks, tables are written by its
tasks, one folder per table. What is wrong is one line and an exit status, as in `rmqtool report`.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .spark.engine import SparkEngine

FORMS = ("parquet", "csv", "json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, report, write; return the exit status."""
    from .errors import ReportError, reason_of

    chosen = _parser().parse_args(arguments)
    try:
        _run(chosen)
    except ReportError as error:
        return _said(error.message, error.hint)
    except Exception as error:
        reason = reason_of(error)
        return _said(reason.message, reason.hint)
    return 0


def _said(message: str, hint: str) -> int:
    sys.stderr.write(f"rmqtool: {message}{f' ({hint})' if hint else ''}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    from dissectors.tcp.decompression import MOST_TIMES

    from .reports import REPORT_MODULES

    parser = argparse.ArgumentParser(description="RocketMQ reports as a Spark job")
    parser.add_argument("report", choices=[*REPORT_MODULES, "all"])
    parser.add_argument("input", nargs="+", help="captures, decoded logs, files of their rows")
    parser.add_argument("-o", "--output", required=True, help="folder, of any file system")
    parser.add_argument("-T", "--format", choices=FORMS, default=FORMS[0])
    parser.add_argument("-Y", "--where", default="", help="filter, as in rmqtool decode")
    parser.add_argument("--since", default=None)
    parser.add_argument("--until", default=None)
    parser.add_argument("--window-us", type=int, default=None, help="length of a window, µs")
    parser.add_argument("--slowest", type=int, default=20)
    parser.add_argument("--max-ratio", type=int, default=MOST_TIMES)
    parser.add_argument("--mode", choices=("overwrite", "error"), default="error")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    from dissectors.times import moment_of

    from .inputs.filters import chosen as filtered
    from .inputs.inputs import inputs_of
    from .inputs.source import read_inputs, refuse_nothing
    from .report import ReportOptions, conforming
    from .reports import REPORT_MODULES, report_of
    from .result import built
    from .spark.launch import spark_home
    from .spark.workers import SAFE_PATH

    inputs = inputs_of(chosen.input)
    if not os.environ.get("SPARK_HOME"):  # spark-submit sets it
        os.environ["SPARK_HOME"] = spark_home()
    builder = SparkSession.builder.appName("rmqtool report")
    for name, value in SAFE_PATH.items():
        builder.config(f"spark.executorEnv.{name}", value)
    spark = builder.getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        names = REPORT_MODULES if chosen.report == "all" else (chosen.report,)
        reports = [report_of(name) for name in names]
        wanted = any(report.messages for report in reports)
        tables = read_inputs(spark, inputs, messages=wanted, max_ratio=chosen.max_ratio)
        since, until = (
            None if text is None else moment_of(text) for text in (chosen.since, chosen.until)
        )
        given = filtered(tables.given, chosen.where, since, until)
        refuse_nothing(tables)
        engine = cast("SparkEngine", given.kept.engine)
        options = ReportOptions(window_us=chosen.window_us, slowest=chosen.slowest)
        for report, frames in built(reports, given, options):
            for table in report.tables:
                if table.name in frames:
                    frame = engine.frame(conforming(frames[table.name], table))
                    _write(frame, f"{chosen.output}/{table.name}", chosen)
        for remark in tables.remarks:
            sys.stderr.write(f"rmqtool: {remark}\n")
    finally:
        spark.stop()


def _write(frame: DataFrame, path: str, chosen: argparse.Namespace) -> None:
    if chosen.format == "csv":
        from .csv_tables import write_csv

        write_csv(frame, path, chosen.mode)
    else:
        frame.coalesce(1).write.mode(chosen.mode).format(chosen.format).save(path)


if __name__ == "__main__":
    if not __package__:  # run as a file: the package is in the folder above
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        runpy.run_module("analytics.job", run_name="__main__", alter_sys=True)
    sys.exit(main())
