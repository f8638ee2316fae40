"""`rmqtool report` as a Spark job: ``spark-submit rmqtool/report/job.py latency log/ -o hdfs:///x``.

Rules: the options are those of `rmqtool report`, but for those of the session, which spark-submit
has started, and of the terminal. Inputs are read and tables are written by tasks, one folder per
table, on any file system.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.inputs.source import Tables
    from analytics.report import ReportTable
    from analytics.sql.relation import Relation

    from ..ui.status import ExitStatus
    from .options import ReportRequest
    from .run import Read

_OF_SESSION = ("master_url", "memory", "settings", "verbose", "engine")
_OF_TERMINAL = ("colour", "pager", "show_list")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job with the arguments of the command line; return the exit status."""
    import typer

    from ..ui.declared import command_with
    from .options import ReportRequest

    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    without = (*_OF_SESSION, *_OF_TERMINAL, "follow", "split")
    app.command()(command_with(ReportRequest, _run, without=without))
    try:
        app(arguments, prog_name="job.py")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _run(request: ReportRequest) -> ExitStatus:
    """Build reports in a Spark job. Tables are written by tasks, one folder per table."""
    from analytics.errors import ReportError, reason_of
    from analytics.spark.session import SubmittedSession

    from ..ui.option_values import usage_error
    from ..ui.status import CommandError, ExitStatus
    from .options import ReportFormat
    from .run import check_where, read_by_spark

    request.refuse_unused()
    check_where(request)
    if request.output == "-":
        raise usage_error("--output", "name a folder, on any file system")
    if request.format in (ReportFormat.table, ReportFormat.html):
        raise usage_error("--format", "a job writes parquet, csv, or json")
    session = SubmittedSession()
    try:
        with ExitStack() as stack:
            _write(request, read_by_spark(request, session, stack))
    except (CommandError, ReportError):
        raise
    except Exception as error:
        raise reason_of(error) from error
    finally:
        session.stop()
    return ExitStatus.OK


def _write(request: ReportRequest, read: Read) -> None:
    from analytics.cells import Counted
    from analytics.compare import compared
    from analytics.inputs.inputs import inputs_of
    from analytics.inputs.window import time_of
    from analytics.result import built, computed
    from analytics.spark.writing import write_table

    from ..ui.errors import print_note
    from .options import ReportFormat
    from .run import chosen_reports, tables_of, write_cells

    window = time_of(request.since, request.until)
    reports, options = chosen_reports(request), request.options()
    form = (request.format or ReportFormat.parquet).value

    def given(names: Sequence[str]) -> Tables:
        return tables_of(request, reports, read, inputs_of(names, window))

    def write(table: ReportTable, relation: Relation) -> None:
        path = f"{request.output.rstrip('/')}/{table.name}"
        write_table(tables.given.kept.engine, relation, table, path, form, request.force)

    tables = given(request.inputs)
    if request.cells is not None:
        tables.given.kept.counted = Counted()
    if request.compare:
        earlier = given(request.compare)
        before = computed(reports, earlier.given, options)
        for result in compared(computed(reports, tables.given, options), before):
            for item in result.tables.values():
                write(item.table, tables.given.kept.engine.hold(item.data))
        tables.notes += earlier.notes
    else:
        for report, relations in built(reports, tables.given, options):
            for table in report.tables:
                if table.name in relations:
                    write(table, relations[table.name])
    if request.cells is not None:
        write_cells(request, reports, inputs_of(request.inputs, window), tables)
    if not request.quiet:
        for note in tables.notes:
            print_note(note)


if __name__ == "__main__":
    if not __package__:  # run as a file: the package is two folders above
        sys.path[0] = str(Path(__file__).resolve().parents[2])
        runpy.run_module("rmqtool.report.job", run_name="__main__", alter_sys=True)
    sys.exit(main())
