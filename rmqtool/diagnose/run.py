"""One run of `diagnose`: rows from any input through the rules, then the problems.

Readers of rows are imported only for inputs with rows: they take a tenth of the startup time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.diagnosis.engine import Engine
from analytics.inputs.window import TimeWindow, time_of
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.tcp.formats import is_capture

from ..api.judged import RequestedTime, engine_of, fed, fed_rows
from ..decode.undecoded import nothing_decoded, refuse_terminal
from ..ui.common_options import refuse_capture_options
from ..ui.errors import print_note
from ..ui.output import JOURNAL_MARK, refuse_existing, refuse_inputs
from ..ui.screen.progress import Progress
from ..ui.status import CommandError, ExitStatus
from .request import DiagnoseRequest
from .write import write_diagnosis

if TYPE_CHECKING:
    from analytics.inputs.inputs import Input

ATTEMPTS: Final = "attempts.jsonl"


def run_diagnose(request: DiagnoseRequest) -> ExitStatus:
    """Read, judge, write; return the status."""
    if request.interface is not None:
        from .live import run_live_diagnosis

        return run_live_diagnosis(request)
    refuse_inputs(request.output, [*request.inputs, request.tls_keylog])
    refuse_existing(request.output, request.force)
    engine = engine_of(request.rules)
    engine.context.store = request.store
    window = time_of(request.since, request.until)
    captures, others = _split(request.inputs, window)
    if not captures:
        refuse_capture_options(request.named_options)
    if others:
        from analytics.inputs.inputs import inputs_of

        for item in inputs_of(others, window):
            _read_rows(request, item, engine)
    if captures:
        _read_captures(request, captures, engine)
    status = write_diagnosis(request, engine.diagnosis(), ", ".join(map(_short, request.inputs)))
    if request.store is not None and not request.quiet:
        for line in request.store.notes:
            print_note(line)
    return status


def _split(names: Sequence[str], window: TimeWindow) -> tuple[list[str], list[str]]:
    """Return captures, and the inputs that already have rows."""
    captures: list[str] = []
    rows: list[str] = []
    for name in names:
        # The journal of a replay has its attempts as rows.
        journal = Path(name) / ATTEMPTS
        if name != "-" and (Path(name) / JOURNAL_MARK).is_file() and journal.is_file():
            rows.append(str(journal))
        elif name == "-" or not _has_rows(name, window):
            captures.append(name)
        else:
            rows.append(name)
    return captures, rows


def _has_rows(name: str, window: TimeWindow) -> bool:
    if not os.path.exists(name) or is_capture(name):
        return False
    from analytics.inputs.inputs import InputKind, inputs_of

    inputs = inputs_of([name], window)
    if any(item.kind is InputKind.remote for item in inputs):
        raise CommandError(f"{name}: remote inputs are for `rmqtool report`")
    if any(item.kind is InputKind.cells for item in inputs):
        raise CommandError(f"{name} has cells, not exchanges", f"show them: rmqtool report {name}")
    return all(item.kind is not InputKind.captures for item in inputs)


def _read_rows(request: DiagnoseRequest, source: Input, engine: Engine) -> None:
    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    asked = RequestedTime(request.since, request.until)
    for rows in fed_rows(source, engine, asked):
        seen += rows
        progress.update(seen, source.rows, seen)
    progress.clear()
    asked.limit(engine)


def _read_captures(request: DiagnoseRequest, captures: list[str], engine: Engine) -> None:
    refuse_terminal(captures, "diagnose -")
    options = DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        conversations=True,
    )
    # One input for all captures, because their connections are numbered together.
    engine.begin_input("")
    # Default 1: the rows are used here, and transferring them takes as long as decoding.
    decode = Decode(captures, options)
    refuse_inputs(request.output, decode.sources)
    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    try:
        asked = RequestedTime(request.since, request.until, lambda: decode.stats.first_time)
        for rows in fed(decode, engine, asked):
            seen += rows
            progress.update(decode.bytes_read, decode.bytes_total, seen)
        asked.limit(engine)
    finally:
        progress.clear()
    nothing = nothing_decoded(decode.stats)
    # Connects that were refused are a problem without a single byte of RocketMQ.
    if nothing is not None and not seen and not engine.diagnosis().problems:
        raise nothing


def _short(name: str) -> str:
    return "standard input" if name == "-" else os.path.basename(name.rstrip("/")) or name
