"""`diagnose -i`: problems as they appear and when they are over; all of them again in the end."""

from __future__ import annotations

import sys
import time
from typing import Final

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import Problem, Subject
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.live.interface import LiveCapture, LiveSource
from dissectors.live.packet_ring import RING_BYTES

from ..live.run import seconds_of
from ..summary.verdict import problem_line
from ..ui.figures import clock, count
from ..ui.interrupt import first_ends
from ..ui.status import ExitStatus
from .feed import fed
from .request import DiagnoseRequest
from .write import write_diagnosis

LOOK: Final = 1.0
"""seconds between two looks at what is wrong"""
SHARE: Final = 20
"""a look may take a twentieth of the time"""
OVER: Final = 30_000_000_000
"""ns without a new sign after which a problem is over"""


def run_live_diagnosis(request: DiagnoseRequest) -> ExitStatus:
    """Watch the interface until the time is over or Ctrl-C; then write the whole diagnosis."""
    assert request.interface is not None
    duration = seconds_of("--duration", request.duration)
    capture = LiveCapture(
        request.interface, request.filter_text, promiscuous=True, buffer_bytes=RING_BYTES
    )
    source = LiveSource(capture, duration=duration, keep=lambda _packets: None)
    engine = Engine(request.rules)
    watch = _Watch(engine)
    try:
        options = DecodeOptions(decode_as=request.decode_as, follow=True, conversations=True)
        decode = Decode([source], options)
        with first_ends(decode.stop):
            for _ in fed(decode, engine, request):
                if not request.quiet:
                    watch.look()
    finally:
        capture.close()
    capture.count()
    if capture.dropped:
        print(
            f"rmqtool: {count(capture.dropped)} of {count(capture.received)} packets dropped:"
            " problems may be missing; capture less (-f)",
            file=sys.stderr,
        )
    return write_diagnosis(request, engine.diagnosis(), request.interface)


class _Watch:
    """Says on standard error what is new and what is over."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next = 0.0
        self._open: dict[tuple[str, Subject], Problem] = {}

    def look(self) -> None:
        """Look again where it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        found = self._engine.diagnosis()
        took = time.monotonic() - now
        self._next = now + max(LOOK, SHARE * took)
        last = max(found.context.last_time or 0, time.time_ns())
        for problem in found.problems:
            key = (problem.rule, problem.subject)
            if last - problem.last_time > OVER:
                if self._open.pop(key, None) is not None:
                    print(f"{clock(last)} over: {problem_line(problem)}", file=sys.stderr)
            else:
                if key not in self._open:
                    print(f"{clock(problem.first_time)} {problem_line(problem)}", file=sys.stderr)
                self._open[key] = problem
