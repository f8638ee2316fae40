"""One run of `report`: inputs to tables by an engine, then to the output.

Rules: errors of the command line or an input are reported before Java starts. The local engine
needs no Java. Captures are decoded here, while Spark (if used) starts, unless a cluster decodes
them. Java is always ended and temporary files are always removed.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.reports import REPORT_MODULES
from dissectors.owned_folder import OwnedFolder
from dissectors.quantities import counted
from dissectors.where.fields import exchange_fields, similar, suggestion

from ..ui.common_options import refuse_capture_options
from ..ui.errors import print_note
from ..ui.extras import CONNECT_LIBRARIES, REPORT_LIBRARIES, SPARK_LIBRARIES, are_installed, require
from ..ui.figures import duration, size
from ..ui.interrupt import Apart
from ..ui.option_values import refuse_named, text_of_moment, usage_error, where_option
from ..ui.screen.progress import Far, StageLine
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION
from .options import EngineChoice, ReportFormat, ReportRequest

if TYPE_CHECKING:
    from analytics.cells import CellFolder
    from analytics.inputs.captures import TemporaryLog
    from analytics.inputs.inputs import Input
    from analytics.inputs.source import Tables
    from analytics.report import Report, ReportTable
    from analytics.result import ReportResult
    from analytics.spark.session import Session

    from ..ui.screen.progress import StageLine

_NAME: Final = re.compile(r"[a-z]+(?:[-_][a-z]+)*")
"""what may be meant as the name of a report"""
_WITH_CAPTURES: Final = ("captures", "remote")
"""kinds of inputs that are, or may be, captures"""


def run_report(request: ReportRequest) -> ExitStatus:
    """Run the command; raise CommandError on failure."""
    if request.is_connect:
        require("a Spark Connect server", "connect", *CONNECT_LIBRARIES)
    elif request.engine is EngineChoice.spark:
        require("a report with Spark", "spark", *SPARK_LIBRARIES)
    else:
        require("a report", "report", *REPORT_LIBRARIES)
    from .output import check_output, write_report

    _check_master(request)
    check_output(request)
    with logs_if_wanted(request):
        results, notes = results_of(request)
    written = write_report(request, results, notes)
    if not request.quiet:
        for line in [*written, *notes]:
            print_note(line)
    return ExitStatus.OK


@contextmanager
def logs_if_wanted(request: ReportRequest) -> Iterator[None]:
    """Show the logs of libraries only if they are requested."""
    if not request.verbose:  # py4j logs interrupted calls with a traceback
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _check_master(request: ReportRequest) -> None:
    from analytics.spark.master import why_no_master

    if wrong := why_no_master(request.master):
        raise usage_error("--master", wrong)


def check_where(request: ReportRequest) -> None:
    """Raise CommandError for an invalid filter."""
    where_option("--where", request.where, exchange_fields, request.zone)


def _check_name(request: ReportRequest) -> None:
    """Raise CommandError if the first input may be meant as the name of a report."""
    word = request.inputs[0] if request.inputs else ""
    if _NAME.fullmatch(word) is None or Path(word).exists():
        return
    near = similar(word, REPORT_MODULES)
    raise CommandError(
        f"{word}: no such file, folder, or report{near}",
        "rmqtool report --list lists the reports",
    )


Save = Callable[["Sequence[Report]", "Sequence[Input]", "Tables"], None]
"""Writes reports: reports, their input, its tables with counted cells."""


def results_of(
    request: ReportRequest, session: Session | None = None, save: Save | None = None
) -> tuple[list[ReportResult], list[str]]:
    """Return the reports, and notes on the input.

    `session`: a running Spark session; `save` writes cells instead of the request's way.
    """
    from analytics.errors import ReportError, reason_of
    from analytics.inputs.inputs import inputs_of
    from analytics.inputs.window import time_of

    check_where(request)
    _check_name(request)
    if request.tables:
        chosen_reports(request)  # an unknown name is reported before Spark is started
    window = time_of(request.since, request.until)
    inputs = inputs_of(request.inputs, window)
    others = inputs_of(request.compare, window) if request.compare else []
    if {item.kind for item in (*inputs, *others)}.isdisjoint(_WITH_CAPTURES):
        refuse_capture_options(request.named_options)
    with ExitStack() as stack:
        steps = stack.enter_context(StageLine(sys.stderr, not (request.quiet or request.verbose)))
        if not _is_by_spark(request, [*inputs, *others]):
            inputs = _decoded_here(request, inputs, steps, stack)
            others = _decoded_here(request, others, steps, stack)
            steps.at("loading DuckDB")
            return _reported_here(request, inputs, others, steps, stack, save)
        if session is not None:
            read, tasks = read_by_spark(request, session, stack), _tasks_of(session)
            inputs = _prepared(request, inputs, steps, stack)
            return _reports(request, read, inputs, others, steps, tasks, save)
        starting = stack.enter_context(Starting(request, steps))
        inputs = _prepared(request, inputs, steps, stack)
        others = _prepared(request, others, steps, stack)
        steps.at("starting Spark")
        session = starting.session()
        try:
            read = read_by_spark(request, session, stack)
            tasks = _tasks_of(session)
            return starting.computed(lambda: _reports(request, read, inputs, others, steps, tasks))
        except (ReportError, CommandError):
            raise
        except Exception as error:
            raise reason_of(error) from error


def _prepared(
    request: ReportRequest, inputs: Sequence[Input], steps: StageLine, stack: ExitStack
) -> list[Input]:
    """Return the inputs with captures decoded to a log, unless a cluster decodes them."""
    from analytics.inputs.inputs import at_whole_paths, is_small

    if request.is_connect and not is_small(inputs):
        return list(map(at_whole_paths, inputs))
    if not (request.is_connect or request.master.startswith("local")):
        return list(inputs)
    return _decoded_here(request, inputs, steps, stack)


def _decoded_here(
    request: ReportRequest, inputs: Sequence[Input], steps: StageLine, stack: ExitStack
) -> list[Input]:
    """Return the inputs with captures decoded to a log."""
    from analytics.inputs.inputs import InputKind

    done = []
    for item in inputs:
        if item.kind is InputKind.captures:
            from analytics.inputs.captures import TemporaryLog  # loads the decoder

            log = TemporaryLog()
            stack.callback(log.close)
            item = _decode(request, item, steps, log)
        done.append(item)
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


def read_by_spark(request: ReportRequest, session: Session, stack: ExitStack) -> Read:
    """Return the function that reads inputs into the local session."""

    def read(inputs: Sequence[Input], messages: bool) -> Tables:
        from analytics.inputs.inputs import rows_in
        from analytics.inputs.remote import opened
        from analytics.inputs.source import count_of, read_inputs
        from analytics.inputs.window import time_of

        inputs = opened(session.spark, inputs, time_of(request.since, request.until))
        rows = rows_in(inputs)
        if rows is not None:
            session.size_shuffles(rows)
        ports = sorted(request.decode_as)
        tables = read_inputs(
            *(session.spark, inputs, ports, messages),
            *(request.tls_keylog, request.max_ratio),
        )
        stack.callback(tables.given.kept.engine.close)
        # Remote files do not tell their number of rows before they are read.
        if rows is None:
            session.size_shuffles(count_of(tables))
        return tables

    return read


def _reported_here(
    request: ReportRequest,
    inputs: Sequence[Input],
    others: Sequence[Input],
    steps: StageLine,
    stack: ExitStack,
    save: Save | None,
) -> tuple[list[ReportResult], list[str]]:
    from analytics.sql.local import is_interrupted

    try:
        return _reports(request, _read_here(stack), inputs, others, steps, save=save)
    except Exception as error:
        if is_interrupted(error):
            raise KeyboardInterrupt from error
        raise


def _read_here(stack: ExitStack) -> Read:
    def read(inputs: Sequence[Input], messages: bool) -> Tables:
        from analytics.inputs.source import read_here

        tables = read_here(inputs, messages)
        stack.callback(tables.given.kept.engine.close)
        return tables

    return read


def _is_by_spark(request: ReportRequest, inputs: Sequence[Input]) -> bool:
    """Return whether Spark computes the report; raise CommandError if it must but cannot."""
    from analytics.inputs.inputs import InputKind, is_elsewhere, is_for_spark

    if any(item.kind is InputKind.cells for item in inputs):  # few rows, which are only merged
        return False
    if request.engine is not EngineChoice.auto:
        remote = [item.name for item in inputs if is_elsewhere(item.name)]
        if remote and request.engine is EngineChoice.local:
            raise CommandError(f"{remote[0]} needs Spark", "omit --engine local")
        return request.engine is EngineChoice.spark
    if not is_for_spark(inputs):
        return False
    if any(is_elsewhere(item.name) for item in inputs):
        require("a report of a remote input", "spark", *SPARK_LIBRARIES)
    return are_installed(*SPARK_LIBRARIES) and shutil.which("java") is not None


def _reports(
    request: ReportRequest,
    read: Read,
    inputs: Sequence[Input],
    others: Sequence[Input],
    steps: StageLine,
    tasks: Callable[[], Far] = lambda: Far(""),
    save: Save | None = None,
) -> tuple[list[ReportResult], list[str]]:
    from analytics.result import computed

    reports = chosen_reports(request)
    wanted = frozenset(table.name for report in reports for table in report.tables)
    options = replace(request.options(), tables=wanted)

    done = TablesDone(len(wanted) * (2 if others or request.split else 1))

    def now(report: str, table: str) -> None:
        if table:
            done.begin()
        stage = f"{report} {table.removeprefix(f'{report}_')}".strip()
        steps.at(stage, lambda: done.far(tasks()))

    steps.at("reading the input", tasks)
    # With --split, the traffic from that time on is compared with the traffic before it.
    later = replace(request, since=request.split or request.since)
    tables = tables_of(later, reports, read, inputs)
    if request.cells is not None:
        from analytics.cells import Counted

        tables.given.kept.counted = Counted()
    results = computed(reports, tables.given, options, now)
    if save is not None:
        save(reports, inputs, tables)
    elif request.cells is not None:
        write_cells(request, reports, inputs, tables)
    if others or request.split:
        from analytics.compare import compared

        earlier = replace(request, until=request.split or request.until)
        compared_tables = tables_of(earlier, reports, read, others or inputs)
        results = compared(results, computed(reports, compared_tables.given, options, now))
        tables.notes += compared_tables.notes
    return results, tables.notes


def _of_cells(request: ReportRequest, reports: list[Report], inputs: Sequence[Input]) -> Tables:
    """Return the input made of cells; remove reports that need rows, or raise for them."""
    from analytics.inputs.source import read_cells

    if request.slo is not None:
        raise usage_error(
            "--slo", f"needs rows, and {inputs[0].name} has cells; name logs or captures"
        )
    if request.where or request.since or request.until or request.split:
        raise CommandError(
            f"{inputs[0].name} contains cells, which --where, --since, --until, and --split cannot"
            " filter",
            "use these options when you write the cells",
        )
    tables = read_cells(inputs, [table for report in reports for table in report.cells])
    counted = tables.given.kept.counted
    assert counted is not None
    if request.slowest > counted.slowest:
        known = f"the cells have the {counted.slowest} slowest; write them again with this option"
        refuse_named(request.named_options, ("slowest",), known)
    lack = [item.name for item in reports if not (item.additive and counted.has(item.name))]
    if request.words[0] in lack or len(lack) == len(reports):
        raise CommandError(
            f"{lack[0]} needs rows, and {inputs[0].name} has cells", "name logs or captures"
        )
    if lack:
        tables.notes.append(f"not shown, because cells lack the rows: {', '.join(lack)}")
        reports[:] = [item for item in reports if item.name not in lack]
    return tables


def write_cells(
    request: ReportRequest, reports: Sequence[Report], inputs: Sequence[Input], tables: Tables
) -> None:
    """Write the counts as a folder of cells."""
    from analytics.cells import KIND, CellFolder

    assert request.cells is not None
    owned = OwnedFolder(Path(request.cells), KIND, request.force, request.inputs, private=True)
    try:
        add_cells(CellFolder.made(owned.path), request, reports, inputs, tables)
        owned.finish()
    except BaseException:
        owned.discard()
        raise


def add_cells(
    folder: CellFolder,
    request: ReportRequest,
    reports: Sequence[Report],
    inputs: Sequence[Input],
    tables: Tables,
    done: Sequence[str] = (),
) -> None:
    """Add counts to a folder of cells; `done`: identities of their inputs."""
    from analytics.cells import CellPart, written_cells
    from analytics.inputs.inputs import identity_of
    from dissectors.rows.tables import encodable

    counted = tables.given.kept.counted
    assert counted is not None
    notes = list(tables.notes)
    if request.where:
        notes.append(f"{', '.join(request.inputs)}: only rows with {request.where}")
    part = CellPart(
        folder="",
        reports=[item.name for item in reports if item.cells],
        tables=[],
        inputs=list(map(encodable, request.inputs)),
        notes=list(map(encodable, notes)),
        slowest=request.slowest,
    )
    identities = {item.name: identity_of(item) for item in inputs}
    written_cells(folder, counted, part, identities, done)


def tables_of(
    request: ReportRequest, reports: list[Report], read: Read, inputs: Sequence[Input]
) -> Tables:
    """Return the tables of inputs, with the selected exchanges."""
    from analytics.inputs.filters import chosen
    from analytics.inputs.inputs import InputKind
    from analytics.inputs.source import refuse_nothing

    if inputs[0].kind is InputKind.cells:
        return _of_cells(request, reports, inputs)
    tables = read(inputs, any(report.messages for report in reports))
    tables.given = chosen(
        tables.given, request.where, request.since, request.until, request.zone.name
    )
    bounds = [("since", request.since), ("before", request.until)]
    texts = [f"{word} {text_of_moment(moment)}" for word, moment in bounds if moment]
    texts += ["matching --where"] if request.where.strip() else []
    refuse_nothing(tables, " ".join(texts))
    return tables


def chosen_reports(request: ReportRequest) -> list[Report]:
    """Return the requested reports with the requested tables."""
    from analytics.reports import report_of

    reports = [report_of(name) for name in request.reports]
    known = list(dict.fromkeys(table.name for report in reports for table in report.tables))
    for name in request.tables:
        if name not in known:
            raise usage_error(
                "--table", f"unknown table: {name!r}{suggestion(name, known, 'tables')}"
            )
    chosen = []
    for report in reports:
        tables = tuple(
            table for table in report.tables if _is_wanted(table, request, report.additive)
        )
        if tables:
            chosen.append(replace(report, tables=tables))
    return chosen


def _is_wanted(table: ReportTable, request: ReportRequest, additive: Collection[str]) -> bool:
    if request.tables:
        return table.name in request.tables
    if request.cells is not None and table.name in additive:
        return True
    return bool(table.shown) or request.format is not ReportFormat.table


class CapturesDone:
    """Progress of decoding captures, with an estimate of the remaining time."""

    def __init__(self, total: int, now: Callable[[], float] = monotonic) -> None:
        """`total` is their bytes; 0: unknown."""
        self._total = total
        self._read, self._packets, self._found = 0, 0, 0
        self._now = now
        self._start = now()

    def note(self, read: int, packets: int, found: int) -> None:
        """Update the number of bytes, packets, and exchanges."""
        self._read, self._packets, self._found = read, packets, found

    def far(self) -> Far:
        """Return the current progress."""
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
"""Share of the tables after which the remaining time is estimated; earlier ones include shared
work."""


class TablesDone:
    """Progress of computing tables, with an estimate of the remaining time."""

    def __init__(self, total: int, now: Callable[[], float] = monotonic) -> None:
        self._total = total
        self._begun = 0
        self._now = now
        self._start = now()

    def begin(self) -> None:
        """Advance to the next table."""
        self._begun += 1

    def far(self, tasks: Far) -> Far:
        """Return the progress of the reports; `tasks` is that of the current table."""
        if not self._begun:
            return tasks
        done = self._begun - 1
        texts = [f"table {self._begun} of {self._total}", tasks.text]
        if done * _TELLING_SHARE >= self._total:
            left = (self._now() - self._start) / done * (self._total - done)
            texts.append(f"about {duration(round(left) * 1_000_000)} left")
        return Far(", ".join(filter(None, texts)), min(1.0, done / self._total))


def _tasks_of(session: Session) -> Callable[[], Far]:
    """Return the function that reports the progress of Spark's current job."""

    def far() -> Far:
        done, total = session.tasks()
        return Far(f"{done} of {total} tasks", done / total) if total > 1 else Far("")

    return far


Value = TypeVar("Value")
_MOST_FAIL: Final = 3.0
"""Seconds to wait at the end until threads notice that their calls were ended. An import that
Ctrl-C interrupts in the main thread can block them for ever."""


class Starting:
    """Spark, from its start to its end; a context manager.

    It starts and computes in separate threads, because PySpark and gRPC have waits that signals do
    not interrupt. After an error or Ctrl-C everything is ended at once, even a start in progress;
    pending calls then fail.
    """

    def __init__(self, request: ReportRequest, steps: StageLine) -> None:
        """Start Spark; raise ReportError if that fails. `steps` shows the shutdown."""
        from analytics.spark.connect import load_libraries
        from analytics.spark.java import java_of
        from analytics.spark.launch import Launch
        from analytics.spark.session import SessionOptions, start_session

        options = SessionOptions(
            master=request.master,
            memory=request.memory,
            verbose=request.verbose,
            settings=request.settings,
        )
        if request.is_connect:
            load_libraries()
        else:
            java_of()  # without Java, this error is enough
        self._steps = steps
        self._launch = launch = Launch()
        self._start = Apart(lambda: start_session(options, launch))
        self._wait_for_failure: Callable[[float], bool] | None = None

    def __enter__(self) -> Starting:
        return self

    def __exit__(self, _: object, error: BaseException | None, *rest: object) -> None:
        if error is None:
            self._end(self.session())
        else:
            self._abort()

    def session(self) -> Session:
        """Wait for Spark; raise the error of a failed start."""
        return self._start.result()

    def computed(self, work: Callable[[], Value]) -> Value:
        """Run `work` with the session; return its result or raise its error."""
        computing = Apart(work)
        self._wait_for_failure = computing.wait
        return computing.result()

    def _end(self, session: Session) -> None:
        try:
            session.stop()
        except KeyboardInterrupt:
            self._abort()
            raise

    def _abort(self) -> None:
        self._steps.at("ending")
        if not self._start.is_done:  # the thread then sees an error and ends
            self._launch.kill()
        if not self._start.wait(_MOST_FAIL):
            return
        with suppress(Exception):  # the failed start was already reported to the caller
            self.session().abort()
        if self._wait_for_failure is not None:
            self._wait_for_failure(_MOST_FAIL)
