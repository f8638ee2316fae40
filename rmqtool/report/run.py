"""One run of `report`: inputs to tables by an engine, then where they were asked for.

Rules: what is wrong with the command line or an input is said before Java is started. The local
engine needs no Java. Captures are decoded here, while Spark starts if it is to compute, unless a
cluster decodes them. Whatever happens, Java is ended and temporary files are removed.
"""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from dissectors.where.fields import suggestion
from dissectors.where.filter import WhereError

from ..ui.errors import say_remark
from ..ui.extras import CONNECT_LIBRARIES, REPORT_LIBRARIES, SPARK_LIBRARIES, are_installed, require
from ..ui.figures import counted, duration, size
from ..ui.option_values import usage_error
from ..ui.screen.progress import Far, StageLine
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION
from .options import EngineChoice, ReportFormat, ReportRequest
from .starting import Starting

if TYPE_CHECKING:
    from analytics.inputs.captures import TemporaryLog
    from analytics.inputs.inputs import Input
    from analytics.inputs.source import Tables
    from analytics.report import Report, ReportTable
    from analytics.result import ReportResult
    from analytics.spark.session import Session


def run_report(request: ReportRequest) -> ExitStatus:
    """Do what was asked; raise CommandError where it cannot be done."""
    if request.is_connect:
        require("a Spark Connect server", "connect", *CONNECT_LIBRARIES)
    elif request.engine is EngineChoice.spark:
        require("a report by Spark", "spark", *SPARK_LIBRARIES)
    else:
        require("a report", "report", *REPORT_LIBRARIES)
    from analytics.errors import ReportError

    from .output import check_output, write_report

    _check_master(request)
    _check_where(request)
    check_output(request)
    try:
        if not request.verbose:  # py4j logs what it is interrupted in, with its traceback
            logging.disable(logging.CRITICAL)
        results, remarks = _computed(request)
    except ReportError as error:
        raise CommandError(error.message, error.hint) from error
    finally:
        logging.disable(logging.NOTSET)
    written = write_report(request, results, remarks)
    if not request.quiet:
        for remark in [*written, *remarks]:
            say_remark(remark)
    return ExitStatus.OK


def _check_master(request: ReportRequest) -> None:
    from analytics.spark.master import why_no_master

    if wrong := why_no_master(request.master):
        raise usage_error("--master", wrong)


def _check_where(request: ReportRequest) -> None:
    if not request.where.strip():
        return
    from dissectors.where.fields import exchange_fields
    from dissectors.where.filter import compile_where

    try:
        compile_where(request.where, exchange_fields(), request.zone)
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None


def _computed(request: ReportRequest) -> tuple[list[ReportResult], list[str]]:
    """Return the reports, and what there is to say about the input."""
    from analytics.errors import ReportError, reason_of
    from analytics.inputs.inputs import inputs_of, rows_in

    inputs = inputs_of(request.inputs)
    others = inputs_of(request.compare) if request.compare else []
    with ExitStack() as stack:
        steps = stack.enter_context(StageLine(sys.stderr, not (request.quiet or request.verbose)))
        if not _is_by_spark(request, [*inputs, *others]):
            inputs = _decoded_here(request, inputs, steps, stack)
            others = _decoded_here(request, others, steps, stack)
            steps.at("loading DuckDB")
            return _reports(request, _read_here(stack), inputs, others, steps)
        rows = rows_in([*inputs, *others])
        starting = stack.enter_context(Starting(request, rows, steps))
        inputs = _prepared(request, inputs, steps, stack)
        others = _prepared(request, others, steps, stack)
        steps.at("starting Spark")
        session = starting.session()
        try:
            read, tasks = _read_by_spark(request, session, stack), _tasks_of(session)
            return starting.computed(lambda: _reports(request, read, inputs, others, steps, tasks))
        except (ReportError, CommandError):
            raise
        except Exception as error:
            raise reason_of(error) from error


def _prepared(
    request: ReportRequest, inputs: Sequence[Input], steps: StageLine, stack: ExitStack
) -> list[Input]:
    """Return the inputs with captures as a decoded log, unless a cluster is to decode them."""
    from analytics.inputs.inputs import at_whole_paths, is_small

    if request.is_connect and not is_small(inputs):
        return list(map(at_whole_paths, inputs))
    if not (request.is_connect or request.master.startswith("local")):
        return list(inputs)
    return _decoded_here(request, inputs, steps, stack)


def _decoded_here(
    request: ReportRequest, inputs: Sequence[Input], steps: StageLine, stack: ExitStack
) -> list[Input]:
    """Return the inputs with captures as a decoded log."""
    from analytics.inputs.inputs import InputKind

    done = []
    for one in inputs:
        if one.kind is InputKind.captures:
            from analytics.inputs.captures import TemporaryLog  # loads the decoder

            log = TemporaryLog()
            stack.callback(log.close)
            one = _decode(request, one, steps, log)
        done.append(one)
    return done


def _decode(request: ReportRequest, captures: Input, steps: StageLine, log: TemporaryLog) -> Input:
    from analytics.report import WITH_MESSAGES

    done = CapturesDone(captures.bytes)
    steps.at("decoding", done.far)
    # Without loading the reports: Spark's modules are being loaded by the thread that starts it.
    messages = not WITH_MESSAGES.isdisjoint(request.reports)
    return log.write(
        *(captures, sorted(request.decode_as), VERSION, done.note, messages),
        *(request.tls_keylog, request.max_ratio),
    )


Read = Callable[["Sequence[Input]", bool], "Tables"]
"""Inputs, whether messages are wanted -> their tables."""


def _read_by_spark(request: ReportRequest, session: Session, stack: ExitStack) -> Read:
    def read(inputs: Sequence[Input], messages: bool) -> Tables:
        from analytics.inputs.source import read_inputs

        ports = sorted(request.decode_as)
        tables = read_inputs(
            *(session.spark, inputs, ports, messages),
            *(request.tls_keylog, request.max_ratio),
        )
        stack.callback(tables.given.kept.engine.close)
        return tables

    return read


def _read_here(stack: ExitStack) -> Read:
    def read(inputs: Sequence[Input], messages: bool) -> Tables:
        from analytics.inputs.source import read_here

        tables = read_here(inputs, messages)
        stack.callback(tables.given.kept.engine.close)
        return tables

    return read


def _is_by_spark(request: ReportRequest, inputs: Sequence[Input]) -> bool:
    """Return whether Spark computes the report; raise CommandError where it must and cannot."""
    from analytics.inputs.inputs import InputKind, is_for_spark

    if request.engine is not EngineChoice.auto:
        remote = [one.name for one in inputs if one.kind is InputKind.remote]
        if remote and request.engine is EngineChoice.local:
            raise CommandError(f"{remote[0]} needs Spark", "omit --engine local")
        return request.engine is EngineChoice.spark
    if not is_for_spark(inputs):
        return False
    if any(one.kind is InputKind.remote for one in inputs):
        require("a report of a remote input", "spark", *SPARK_LIBRARIES)
    return are_installed(*SPARK_LIBRARIES) and shutil.which("java") is not None


def _reports(
    request: ReportRequest,
    read: Read,
    inputs: Sequence[Input],
    others: Sequence[Input],
    steps: StageLine,
    tasks: Callable[[], Far] = lambda: Far(""),
) -> tuple[list[ReportResult], list[str]]:
    from analytics.result import computed

    reports = _chosen_reports(request)
    wanted = frozenset(table.name for report in reports for table in report.tables)
    options = replace(request.options(), tables=wanted)

    def tables_of(some: Sequence[Input]) -> Tables:
        from analytics.inputs.filters import chosen
        from analytics.inputs.source import refuse_nothing

        tables = read(some, any(report.messages for report in reports))
        tables.given = chosen(
            tables.given, request.where, request.since, request.until, request.zone.name
        )
        refuse_nothing(tables)
        return tables

    done = TablesDone(len(wanted) * (2 if others else 1))

    def now(report: str, table: str) -> None:
        if table:
            done.begin()
        stage = f"{report} {table.removeprefix(f'{report}_')}".strip()
        steps.at(stage, lambda: done.far(tasks()))

    steps.at("reading the input", tasks)
    tables = tables_of(inputs)
    results = computed(reports, tables.given, options, now)
    if others:
        from analytics.compare import compared

        other = tables_of(others)
        results = compared(results, computed(reports, other.given, options, now))
        tables.remarks += other.remarks
    return results, tables.remarks


def _chosen_reports(request: ReportRequest) -> list[Report]:
    from analytics.reports import report_of

    reports = [report_of(name) for name in request.reports]
    known = {table.name for report in reports for table in report.tables}
    for name in request.tables:
        if name not in known:
            raise usage_error(
                "--table", f"unknown table: {name!r}{suggestion(name, known, 'tables')}"
            )
    chosen = []
    for report in reports:
        tables = tuple(table for table in report.tables if _is_wanted(table, request))
        if tables:
            chosen.append(replace(report, tables=tables))
    return chosen


def _is_wanted(table: ReportTable, request: ReportRequest) -> bool:
    if request.tables:
        return table.name in request.tables
    return bool(table.shown) or request.format is not ReportFormat.table


class CapturesDone:
    """How much of captures is decoded, and how long the rest may take by what this took."""

    def __init__(self, total: int, now: Callable[[], float] = monotonic) -> None:
        """`total` is their bytes; 0: unknown."""
        self._total = total
        self._read, self._packets, self._found = 0, 0, 0
        self._now = now
        self._start = now()

    def note(self, read: int, packets: int, found: int) -> None:
        """Say how many bytes and packets are read, and how many exchanges were found."""
        self._read, self._packets, self._found = read, packets, found

    def far(self) -> Far:
        """Return how far it is."""
        of_all = f" of {size(self._total)}" if self._total else ""
        texts = [f"{size(self._read)}{of_all}"]
        if self._packets:
            texts.append(counted(self._packets, "packet"))
        texts.append(counted(self._found, "exchange"))
        if not self._total:
            return Far(", ".join(texts))
        share = min(1.0, self._read / self._total)
        if 0 < share < 1:
            left = (self._now() - self._start) / share * (1 - share)
            texts.append(f"about {duration(round(left) * 1_000_000)} left")
        return Far(", ".join(texts), share)


_TELLING_SHARE = 5
"""The first fifth of the tables says how long the others may take; less of them has the work that
all share."""


class TablesDone:
    """How many tables are computed, and how long the others may take by what these took."""

    def __init__(self, total: int, now: Callable[[], float] = monotonic) -> None:
        self._total = total
        self._begun = 0
        self._now = now
        self._start = now()

    def begin(self) -> None:
        """Say that the next table is computed now."""
        self._begun += 1

    def far(self, tasks: Far) -> Far:
        """Return how far the reports are; `tasks` is how far the table is."""
        if not self._begun:
            return tasks
        done = self._begun - 1
        texts = [f"table {self._begun} of {self._total}", tasks.text]
        if done * _TELLING_SHARE >= self._total:
            left = (self._now() - self._start) / done * (self._total - done)
            texts.append(f"about {duration(round(left) * 1_000_000)} left")
        return Far(", ".join(filter(None, texts)), min(1.0, done / self._total))


def _tasks_of(session: Session) -> Callable[[], Far]:
    """Return what says how far Spark is with its current work."""

    def far() -> Far:
        done, total = session.tasks()
        return Far(f"{done} of {total} tasks", done / total) if total > 1 else Far("")

    return far
