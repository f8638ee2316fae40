"""`diagnose -i`: problems as they start, change, and end; all again at the end.

Rules: JSON lines are written as events, each as soon as it is known; lines for people go to
standard error while it runs, and the whole diagnosis to the output in the end.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from analytics.diagnosis.engine import Diagnosis, Engine
from dissectors.decode.pipeline import Decode, DecodeOptions

from ..api.judged import RequestedTime, engine_of, fed
from ..live.keeping import Keeping, opened_capture
from ..live.options import LiveRequest
from ..summary.watch import ProblemChange, ProblemEvent, Watch, event_lines
from ..ui.interrupt import first_ends
from ..ui.output import Output, refuse_existing, refuse_same_file
from ..ui.status import ExitStatus
from .request import DiagnoseRequest
from .write import problems_output, status_of, write_diagnosis, write_objects


def run_live_diagnosis(request: DiagnoseRequest) -> ExitStatus:
    """Watch the interface until the time is over or Ctrl-C; then write the whole diagnosis."""
    assert request.interface is not None
    refuse_same_file(request.keep, request.output, "problems")
    for target in (request.keep, request.output):
        refuse_existing(target, request.force)
    live = LiveRequest(
        interface=request.interface,
        filter=request.filter,
        keep=request.keep,
        duration=request.duration,
    )
    capture = opened_capture(live, request.quiet)
    engine = engine_of(request.rules)
    with Keeping(live, capture, request.force) as keeping:
        # Only now: opening the interface may have needed root.
        output = problems_output(request, direct=True) if request.format.is_json else None
        try:
            _watch(request, keeping, engine, output)
        except BaseException:
            if output is not None:
                output.discard()
            raise
    keeping.say_end(request.quiet)
    diagnosis = engine.diagnosis()
    if output is None:
        return write_diagnosis(request, diagnosis, request.interface)
    _write(output, _final(diagnosis))
    output.finish()
    return status_of(request, diagnosis)


def _watch(
    request: DiagnoseRequest, keeping: Keeping, engine: Engine, output: Output | None
) -> None:
    """Read to the end; write problems as they start, change and end."""
    options = DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        follow=True,
        conversations=True,
    )
    decode = Decode([keeping.source], options)
    watch = Watch(engine, decode.pending)
    with first_ends(decode.stop):
        asked = RequestedTime(request.since, request.until, lambda: decode.stats.first_time)
        for _ in fed(decode, engine, asked):
            _report(watch.look(), output, request.quiet)
    watch.finish()


def _report(events: Sequence[ProblemEvent], output: Output | None, quiet: bool) -> None:
    if not events:
        return
    if output is not None:
        _write(output, events)
    if not quiet:
        print("\n".join(event_lines(events)), file=sys.stderr, flush=True)


def _write(output: Output, events: Sequence[ProblemEvent]) -> None:
    write_objects(output, (event.as_json() for event in events))
    output.flush()


def _final(diagnosis: Diagnosis) -> list[ProblemEvent]:
    """Return the final state of all problems."""
    end = diagnosis.context.last_time or 0
    return [
        ProblemEvent(ProblemChange.FINAL, end, problem, problem.state)
        for problem in diagnosis.problems
    ]
