"""`decode live`: a capture is opened, its packets decoded as they come, losses reported.

Rules: rows to the output, everything else to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from dissectors.decode.pipeline import Decode
from dissectors.live.interface import Interface

from ..api.opened import interfaces
from ..decode.options import DecodeRequest, plugins_option
from ..decode.run import decode_options, run_decode
from ..ui.console import When, terminal_of
from ..ui.option_values import duration_option, usage_error
from ..ui.output import refuse_existing
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import ExitStatus
from .keeping import Keeping, refuse_same_file
from .opened import opened_capture
from .request import LiveRequest


def run_live(request: DecodeRequest, live: LiveRequest) -> ExitStatus:
    """Capture and decode until the time is over, the limit reached or Ctrl-C."""
    refuse_same_file(live.keep, request.output, "rows")
    for target in (live.keep, request.output):
        refuse_existing(target, request.force)
    capture = opened_capture(live, request.quiet)
    with Keeping(live, capture) as keeping:
        request = replace(request, plugins=plugins_option(live.plugins))
        status = run_decode(request, Decode([keeping.source], decode_options(request)))
    keeping.say_end(request.quiet)
    return status


def show_interfaces(colour: When) -> ExitStatus:
    """Print the interfaces of this machine, one line per interface."""
    found = interfaces()
    indent = max((len(one.name) for one in found), default=0) + 2
    facts = [Labelled(_state_of(one), label=one.name, indent=indent) for one in found]
    for line in fact_lines(facts, terminal_of(sys.stdout, colour)):
        print(line)
    return ExitStatus.OK


def seconds_of(option: str, text: str | None) -> float | None:
    """Return the seconds that an option names: ``30``, ``500ms``, ``10m``; 0 is none."""
    length = duration_option(option, text)
    if length is not None and not length:
        raise usage_error(option, f"not a valid duration: {text!r}; give 30s, 10m or 2h")
    return None if length is None else float(length) / 1e9


def _state_of(one: Interface) -> str:
    words = ["up" if one.is_up else "down"]
    words += ["loopback"] if one.is_loopback else []
    return " ".join([*words, *one.addresses])
