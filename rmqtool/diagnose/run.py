"""One run of `diagnose`: rows from any input through the rules, then what they say.

What reads rows is loaded only where an input has them: for a capture it is a tenth of the start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.diagnosis.engine import Engine
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.tcp.formats import is_capture

from ..api.judged import engine_of, fed
from ..decode.undecoded import nothing_decoded
from ..ui.output import JOURNAL_MARK, refuse_existing, refuse_inputs
from ..ui.screen.progress import Progress
from ..ui.status import CommandError, ExitStatus
from .request import DiagnoseRequest
from .window import window_of
from .write import write_diagnosis

if TYPE_CHECKING:
    from analytics.inputs.inputs import Input

ATTEMPTS: Final = "attempts.jsonl"


def run_diagnose(request: DiagnoseRequest) -> ExitStatus:
    """Read, judge, write; return the status."""
    if request.interface is not None:
        from .live import run_live_diagnosis

        return run_live_diagnosis(request)
    refuse_inputs(request.output, request.inputs)
    refuse_existing(request.output, request.force)
    engine = engine_of(request.rules)
    captures, others = _split(request.inputs)
    if others:
        _read_all_rows(request, others, engine)
    if captures:
        _read_captures(request, captures, engine)
    return write_diagnosis(request, engine.diagnosis(), ", ".join(map(_short, request.inputs)))


def _split(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return captures, and the inputs that have rows already."""
    captures: list[str] = []
    rows: list[str] = []
    for name in names:
        journal = Path(name) / ATTEMPTS
        if name != "-" and (Path(name) / JOURNAL_MARK).is_file() and journal.is_file():
            rows.append(str(journal))
        elif name == "-" or not _has_rows(name):
            captures.append(name)
        else:
            rows.append(name)
    return captures, rows


def _has_rows(name: str) -> bool:
    if not os.path.exists(name) or is_capture(name):
        return False
    from analytics.inputs.inputs import InputError, InputKind, inputs_of

    try:
        found = inputs_of([name])
    except InputError as error:
        raise CommandError(str(error), getattr(error, "hint", "")) from None
    if any(one.kind is InputKind.remote for one in found):
        raise CommandError(f"{name}: remote inputs are for `rmqtool report`")
    return all(one.kind is not InputKind.captures for one in found)


def _read_all_rows(request: DiagnoseRequest, names: Sequence[str], engine: Engine) -> None:
    from analytics.inputs.inputs import InputError, inputs_of

    try:
        for one in inputs_of(names):
            _read_rows(request, one, engine)
    except InputError as error:
        raise CommandError(str(error), getattr(error, "hint", "")) from None


def _read_rows(request: DiagnoseRequest, given: Input, engine: Engine) -> None:
    from analytics.inputs.rows import conversation_rows, exchange_rows, finding_rows

    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    window = window_of(request)
    engine.begin_input(given.name)
    for rows in exchange_rows(given):
        engine.add_exchanges(rows if window is None else [row for row in rows if window(row)])
        seen += len(rows)
        progress.update(seen, given.rows, seen)
    progress.clear()
    for connections in conversation_rows(given):
        engine.add_connections(connections)
    for findings in finding_rows(given):
        engine.add_findings(findings)


def _read_captures(request: DiagnoseRequest, captures: list[str], engine: Engine) -> None:
    if "-" in captures and sys.stdin.isatty():
        raise CommandError(
            "no capture on stdin (it is a terminal)",
            "pipe one in: tcpdump -w - … | rmqtool diagnose -",
            ExitStatus.USAGE,
        )
    options = DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        conversations=True,
    )
    engine.begin_input("")
    # Unasked one: its rows are looked at here, and to hand them over takes as long as to decode.
    decode = Decode(captures, options)
    refuse_inputs(request.output, decode.sources)
    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    try:
        window = window_of(request, lambda: decode.stats.first_time)
        for rows in fed(decode, engine, window):
            seen += rows
            progress.update(decode.bytes_read, decode.bytes_total, seen)
    finally:
        progress.clear()
    nothing = nothing_decoded(decode.stats)
    if nothing is not None and not seen and not engine.diagnosis().problems:
        raise nothing


def _short(name: str) -> str:
    return "standard input" if name == "-" else os.path.basename(name.rstrip("/")) or name
