"""Write a diagnosis: lines for people, JSON lines for scripts; the status by --fail-on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

import msgspec

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import as_json
from dissectors.rows.tables import encodable_value

from ..ui.common_options import ObjectFormat
from ..ui.console import terminal_of_output
from ..ui.errors import print_note, said
from ..ui.json_array import rows_output
from ..ui.json_text import visible_json
from ..ui.output import Output
from ..ui.status import ExitStatus
from .request import DiagnoseRequest, held
from .text import diagnosis_lines

_ENCODER: Final = msgspec.json.Encoder()


def write_diagnosis(request: DiagnoseRequest, diagnosis: Diagnosis, name: str) -> ExitStatus:
    """Write the diagnosis; return the status by --fail-on."""
    with problems_output(request) as output:
        if request.format.is_json:
            write_objects(output, map(as_json, diagnosis.problems))
        else:
            terminal = terminal_of_output(request.output, request.colour)
            lines = diagnosis_lines(diagnosis, name, terminal, request.verbose)
            output.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    return status_of(request, diagnosis)


def problems_output(request: DiagnoseRequest, direct: bool = False) -> Output:
    """Return the output of problems; `direct`: without buffering."""
    as_array = request.format is ObjectFormat.json
    return rows_output(request.output, as_array, direct, force=request.force)


def write_objects(output: Output, objects: Iterable[dict[str, object]]) -> None:
    """Write objects; escape control characters on a terminal."""
    data = _ENCODER.encode_lines([encodable_value(value) for value in objects])
    screen = output.path is None and sys.stdout.isatty()
    output.write(visible_json(data) if screen else data)


def status_of(request: DiagnoseRequest, diagnosis: Diagnosis) -> ExitStatus:
    """Report the limits that were reached; return the status by --fail-on."""
    if not request.quiet:
        for line in diagnosis.limits:
            print_note(f"a limit was reached: {line}")
    status = ExitStatus.OK
    for line in held(request.fail_on, diagnosis.problems):
        status = said(line, status=ExitStatus.DIFFERENCES)
    return status
