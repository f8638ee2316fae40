"""`rmqtool report --follow`: captures and decoded logs as they arrive in a folder, each once.

Rules: the state is the cells of processed inputs with the names of these inputs, in one file that
is replaced atomically: after a crash nothing is missing and nothing counts twice. After each batch
a report is built from all cells. Unreadable inputs are skipped with a note.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

from analytics.cells import CellFolder
from analytics.errors import ReportError, reason_of
from dissectors.decode.decoded_log import MANIFEST, is_decoded_log
from dissectors.quantities import counted
from dissectors.tcp.formats import is_capture
from dissectors.tcp.source import COMPRESSED_SUFFIXES, CaptureError, is_capture_name

from ..ui.errors import print_note
from ..ui.extras import REPORT_LIBRARIES, require
from ..ui.interrupt import first_ends
from ..ui.screen.progress import StageLine
from ..ui.status import CommandError, ExitStatus
from .options import EngineChoice, ReportRequest
from .output import check_output, write_report
from .run import Starting, add_cells, logs_if_wanted, results_of

if TYPE_CHECKING:
    from analytics.inputs.inputs import Input
    from analytics.inputs.source import Tables
    from analytics.report import Report
    from analytics.spark.session import Session

_POLL: Final = 1.0
"""Seconds between checks of the folder."""
SETTLED: Final = 2.0
"""Seconds without a change after which a file counts as complete."""
_ERRORS: Final = (ReportError, CommandError, CaptureError, OSError)
"""Errors of inputs."""
_LEFT_BEHIND: Final = (".tmp", ".part", ".partial")
"""Suffixes of files that are still being copied."""


def follow_report(request: ReportRequest) -> ExitStatus:
    """Process arriving files until Ctrl-C; raise CommandError if the state is unusable."""
    from analytics.reports import report_of

    require("a report", "report", *REPORT_LIBRARIES)
    check_output(request)
    request = replace(
        request,
        reports=tuple(name for name in request.reports if report_of(name).cells),
        named_options={},  # captures may arrive, whatever the folder has now
    )
    folder, kept = Path(request.inputs[0]), Path(request.cells or "")
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder", "--follow needs one folder")
    if (folder / MANIFEST).exists():
        raise CommandError(
            f"{folder} is a decoded log", "name the folder in which captures or logs arrive"
        )
    stopped = threading.Event()
    with logs_if_wanted(request), closing(CellFolder.followed(kept)) as state:
        batches = _Batches(request, folder, state)
        with first_ends(stopped.set):
            if request.engine is EngineChoice.spark:
                _by_spark(request, batches, stopped)
            else:
                _here(batches, stopped)
    return ExitStatus.OK


def _here(batches: _Batches, stopped: threading.Event) -> None:
    batches.show()
    while not stopped.is_set():
        batches.take_all()
        stopped.wait(_POLL)


def _by_spark(request: ReportRequest, batches: _Batches, stopped: threading.Event) -> None:
    """Detect arriving files and compute reports with Spark."""
    from analytics.spark.arrivals import arrivals

    if request.is_connect:
        raise CommandError(
            "--follow does not work with a Spark Connect server", "name a master, or omit it"
        )
    steps = StageLine(sys.stderr, not (request.quiet or request.verbose))
    with steps, Starting(request, steps) as starting:
        steps.at("starting Spark")
        batches.session = session = starting.session()
        steps.at("waiting for files")
        checkpoint = batches.state.folder / "spark"
        folder, kept = (path.resolve().as_uri() for path in (batches.folder, checkpoint))
        try:
            query = arrivals(session.spark, folder, kept, lambda _: batches.take_all(), _POLL)
            while query.isActive and not stopped.wait(_POLL):
                pass
            query.stop()
            error = query.exception()
        except Exception as wrong:
            error = wrong
        if error is not None:  # Java reports the cause while it runs
            raise reason_of(error)


class _Batches:
    """Inputs that arrived and are not yet in the state, batch by batch."""

    def __init__(self, request: ReportRequest, folder: Path, state: CellFolder) -> None:
        self.folder = folder
        self.state = state
        """cells, and the inputs that they cover"""
        self.session: Session | None = None
        """Spark; None: this process computes"""
        self._request = request
        self._one_at_a_time = threading.Lock()

    def take_all(self) -> None:
        """Process all complete inputs and write the report."""
        with self._one_at_a_time:
            names = self._arrived()
            for name in [item for item in names if not _has_rows(self.folder / item)]:
                self._skip(name, "it is neither a capture, a decoded log, nor a file of rows")
                names.remove(name)
            if not names:
                return
            try:
                self._take(names)
            except _ERRORS:  # one unreadable input fails the whole batch
                for name in names:
                    self._take_alone(name)
            self._join()
            self.show()

    def _arrived(self) -> list[str]:
        """Return the names of complete new inputs, in order."""
        paths = list(self.folder.iterdir())
        manifest = self.state.manifest
        counted = {*manifest.done}.difference(manifest.skipped)
        known = {*counted, *(_stored(path.name) for path in paths)}
        done = {
            *manifest.done,
            # rotating tools compress captures later: their exchanges count once
            *(name + suffix for name in known for suffix in COMPRESSED_SUFFIXES),
        }
        return sorted(
            path.name for path in paths if _stored(path.name) not in done and _is_complete(path)
        )

    def _take_alone(self, name: str) -> None:
        try:
            self._take([name])
        except _ERRORS as error:
            path = self.folder / name
            if isinstance(error, OSError) and error.filename != str(path):
                raise  # not about the input: the disk of the state may be full
            if os.path.lexists(path):  # otherwise it was removed or renamed meanwhile
                self._skip(name, str(error))

    def _skip(self, name: str, why: str) -> None:
        self.state.skip(_stored(name), _stored(why))
        print_note(f"{name} is skipped: {why}")

    def _take(self, names: Sequence[str]) -> None:
        batch = replace(
            self._request, inputs=[str(self.folder / name) for name in names], follow=False
        )

        def save(reports: Sequence[Report], inputs: Sequence[Input], tables: Tables) -> None:
            add_cells(self.state, batch, reports, inputs, tables, list(map(_stored, names)))

        results_of(batch, self.session, save)
        if not self._request.quiet:
            print_note(f"{counted(len(names), 'input')} added: {', '.join(names)}")

    def _join(self) -> None:
        from analytics.reports import report_of

        self.state.joined(
            [table for name in self._request.reports for table in report_of(name).cells]
        )

    def show(self) -> None:
        """Write the report of all cells."""
        if not self.state.manifest.parts:
            return
        whole = replace(
            self._request,
            inputs=[str(self.state.folder)],
            cells=None,
            follow=False,
            force=True,
            # The cells were counted with these filters, and cannot be filtered again.
            where="",
            since=None,
            until=None,
            # Cells are few rows, which are only merged.
            engine=EngineChoice.local,
        )
        results, notes = results_of(whole)
        write_report(whole, results, notes)
        sys.stdout.flush()


def _stored(name: str) -> str:
    """Return a file name as UTF-8, for the state: names that differ stay different."""
    return name.encode("utf-8", "backslashreplace").decode()


def _has_rows(path: Path) -> bool:
    """Return whether a path is an input; captures are recognized by their first bytes."""
    from analytics.inputs.inputs import InputError, InputKind, inputs_of

    # what is compressed shows only by its name that it is a capture; errors are reported later
    if path.is_dir() or is_capture(str(path)) or is_capture_name(path):
        return True
    try:
        (item,) = inputs_of([str(path)])
    except (InputError, OSError):
        return True  # errors are reported when it is read
    return item.kind is not InputKind.captures


def _is_complete(path: Path) -> bool:
    """Return whether an input looks complete."""
    if path.name.startswith(".") or path.name.endswith(_LEFT_BEHIND):
        return False
    try:
        if path.is_dir():
            return is_decoded_log(path)
        return time() - path.stat().st_mtime >= SETTLED
    except OSError:  # it is gone
        return False
