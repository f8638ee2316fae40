"""`diagnose -i`: problems as they appear and when they are over; all of them again in the end."""

from __future__ import annotations

import sys

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.live.interface import LiveSource

from ..api.judged import engine_of, fed
from ..live.opened import opened_capture
from ..live.request import LiveRequest
from ..live.run import seconds_of
from ..summary.watch import Watch
from ..ui.figures import count
from ..ui.interrupt import first_ends
from ..ui.status import ExitStatus
from .request import DiagnoseRequest
from .window import window_of
from .write import write_diagnosis


def run_live_diagnosis(request: DiagnoseRequest) -> ExitStatus:
    """Watch the interface until the time is over or Ctrl-C; then write the whole diagnosis."""
    assert request.interface is not None
    duration = seconds_of("--duration", request.duration)
    capture = opened_capture(LiveRequest(request.interface, request.filter_text), request.quiet)
    source = LiveSource(capture, duration=duration, keep=lambda _packets: None)
    engine = engine_of(request.rules)
    watch = Watch(engine)
    try:
        options = DecodeOptions(
            decode_as=request.decode_as,
            tls_keylog=request.tls_keylog,
            follow=True,
            conversations=True,
        )
        decode = Decode([source], options)
        with first_ends(decode.stop):
            window = window_of(request, lambda: decode.stats.first_time)
            for _ in fed(decode, engine, window):
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
