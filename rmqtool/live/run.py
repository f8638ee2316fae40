"""`decode live`: a capture is opened, its packets decoded as they come, losses reported.

Rules: rows to the output, everything else to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from dissectors.decode.pipeline import Decode
from dissectors.live.interface import Interface

from ..api.opened import interfaces
from ..decode.options import View
from ..decode.run import decode_options, run_decode
from ..ui.common_options import plugins_of
from ..ui.console import When, terminal_of
from ..ui.output import refuse_existing, refuse_same_file
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import ExitStatus
from .keeping import Keeping, opened_capture
from .options import LiveDecodeRequest


def run_live(request: LiveDecodeRequest) -> ExitStatus:
    """Capture and decode until the time is over, the limit reached or Ctrl-C."""
    refuse_same_file(request.keep, request.output, "rows")
    for target in (request.keep, request.output):
        refuse_existing(target, request.force)
    capture = opened_capture(request, request.quiet)
    with Keeping(request, capture, request.force) as keeping:
        somebody_watches = sys.stderr.isatty() and not request.quiet
        request = replace(
            request,
            follow=True,
            # Plug-ins are code, so they are loaded only now, without the rights that opening takes.
            plugins=plugins_of(request.plugin or ()),
            watched=request.view is View.exchanges and somebody_watches,
        )
        status = run_decode(request, Decode([keeping.source], decode_options(request)))
    keeping.say_end(request.quiet)
    return status


def show_interfaces(colour: When) -> ExitStatus:
    """Print the interfaces of this machine, one line per interface."""
    known = interfaces()
    indent = max((len(interface.name) for interface in known), default=0) + 2
    facts = [
        Labelled(_state_of(interface), label=interface.name, indent=indent) for interface in known
    ]
    for line in fact_lines(facts, terminal_of(sys.stdout, colour)):
        print(line)
    return ExitStatus.OK


def _state_of(interface: Interface) -> str:
    words = ["up" if interface.is_up else "down"]
    words += ["loopback"] if interface.is_loopback else []
    return " ".join([*words, *interface.addresses])
