"""One run of `diagnose`: rows from any input through the rules, then what they say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.problem import as_json
from analytics.inputs.inputs import Input, InputError, InputKind, inputs_of
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_rows
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.shards import decode_of
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import Moment

from ..decode.undecoded import nothing_decoded
from ..ui.console import UNLIMITED, Terminal, terminal_of
from ..ui.errors import said
from ..ui.json_text import visible_json
from ..ui.output import Output, refuse_inputs
from ..ui.progress import Progress
from ..ui.status import CommandError, ExitStatus
from .request import DiagnoseRequest, held
from .text import diagnosis_lines

ATTEMPTS: Final = "attempts.jsonl"
RUN: Final = "run.json"
_ENCODER: Final = msgspec.json.Encoder()


def run_diagnose(request: DiagnoseRequest) -> ExitStatus:
    """Read, judge, write; return the status."""
    if request.interface is not None:
        from .live import run_live_diagnosis

        return run_live_diagnosis(request)
    refuse_inputs(request.output, request.inputs)
    engine = Engine(request.rules)
    captures, others = _split(request.inputs)
    try:
        for one in others:
            _read_rows(request, one, engine)
    except InputError as error:
        raise CommandError(str(error), getattr(error, "hint", "")) from None
    if captures:
        _read_captures(request, captures, engine)
    return write_diagnosis(request, engine.diagnosis(), ", ".join(map(_short, request.inputs)))


def write_diagnosis(request: DiagnoseRequest, diagnosis: Diagnosis, name: str) -> ExitStatus:
    """Write what was found; return the status by --fail-on."""
    output = Output(request.output)
    try:
        if request.json:
            data = b"".join(
                _ENCODER.encode(encodable_value(as_json(one))) + b"\n" for one in diagnosis.problems
            )
            screen = output.path is None and sys.stdout.isatty()
            output.write(visible_json(data) if screen else data)
        else:
            terminal = terminal_of(sys.stdout, request.colour)
            if output.path is not None:
                terminal = Terminal(False, UNLIMITED, False)
            lines = diagnosis_lines(diagnosis, name, terminal, request.verbose)
            output.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
        output.finish()
    except BaseException:
        output.discard()
        raise
    if not request.quiet:
        for line in diagnosis.limits:
            print(f"rmqtool: a bound was reached: {line}", file=sys.stderr)
    status = ExitStatus.OK
    for line in held(request.fail_on, diagnosis.problems):
        status = said(line, status=ExitStatus.DIFFERENCES)
    return status


def _split(names: Sequence[str]) -> tuple[list[str], list[Input]]:
    """Return captures, and the inputs that have rows already."""
    captures: list[str] = []
    rows: list[str] = []
    for name in names:
        journal = Path(name) / ATTEMPTS
        if name != "-" and (Path(name) / RUN).is_file() and journal.is_file():
            rows.append(str(journal))
        elif name == "-" or not _has_rows(name):
            captures.append(name)
        else:
            rows.append(name)
    return captures, inputs_of(rows) if rows else []


def _has_rows(name: str) -> bool:
    if not os.path.exists(name):
        return False
    try:
        found = inputs_of([name])
    except InputError as error:
        raise CommandError(str(error), getattr(error, "hint", "")) from None
    if any(one.kind is InputKind.remote for one in found):
        raise CommandError(f"{name}: remote inputs are for `rmqtool report`")
    return all(one.kind is not InputKind.captures for one in found)


def _read_rows(request: DiagnoseRequest, given: Input, engine: Engine) -> None:
    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    for rows in exchange_rows(given):
        engine.add_exchanges([row for row in rows if in_window(request, row)])
        seen += len(rows)
        progress.update(seen, given.rows, seen)
    progress.clear()
    for connections in conversation_rows(given):
        engine.add_connections(connections)
    for findings in finding_rows(given):
        engine.add_findings(findings)


def in_window(request: DiagnoseRequest, row: ExchangeRecord) -> bool:
    """Return whether an exchange began, or else ended, in the time that was asked for."""
    if request.since is None and request.until is None:
        return True
    time = row.request_time if row.request_time is not None else row.response_time
    if time is None:
        return False
    since, until = _on_day(request.since, time), _on_day(request.until, time)
    return (since is None or time >= since) and (until is None or time < until)


def _on_day(moment: Moment | None, time: int) -> int | None:
    if moment is None:
        return None
    return moment.ns if moment.has_date else moment.on_day_of(time)


def _read_captures(request: DiagnoseRequest, captures: list[str], engine: Engine) -> None:
    if "-" in captures and sys.stdin.isatty():
        raise CommandError(
            "standard input is a terminal, not a capture",
            "pipe a capture into it: tcpdump -w - … | rmqtool diagnose -",
            ExitStatus.USAGE,
        )
    options = DecodeOptions(decode_as=request.decode_as, conversations=True)
    decode = decode_of(captures, options, request.jobs)
    refuse_inputs(request.output, decode.sources)
    progress = Progress(sys.stderr, not request.quiet, "exchanges")
    seen = 0
    try:
        for rows in fed(decode, engine, request):
            seen += rows
            progress.update(decode.bytes_read, decode.bytes_total, seen)
    finally:
        progress.clear()
    nothing = nothing_decoded(decode.stats)
    if nothing is not None and not seen and not engine.diagnosis().problems:
        raise nothing


def fed(decode: Decode, engine: Engine, request: DiagnoseRequest) -> Iterator[int]:
    """Feed what is decoded to the engine, batch by batch; yield how many exchanges were read."""
    limited = request.since is not None or request.until is not None
    for batch in decode.records():
        engine.add_exchanges(
            [row for row in batch if in_window(request, row)] if limited else batch
        )
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_experts())
        yield len(batch)
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_experts())


def _short(name: str) -> str:
    return "standard input" if name == "-" else os.path.basename(name.rstrip("/")) or name
