"""`decode live`: a capture is opened, its packets decoded as they come, losses said.

Rules: rows to the output, everything else to standard error. What the kernel had to drop is said
when it begins and in the end, because then exchanges are missing that were there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from dissectors.decode.pipeline import Decode
from dissectors.live.interface import Interface, LiveCapture, LiveSource
from dissectors.live.packet_ring import RingPacket
from dissectors.tcp.pcapng_writer import PcapngWriter

from ..api.opened import interfaces
from ..decode.options import DecodeRequest, plugins_option
from ..decode.run import decode_options, run_decode
from ..ui.console import When, terminal_of
from ..ui.figures import count, counted, size
from ..ui.option_values import duration_option, usage_error
from ..ui.output import Output, naming
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import CommandError, ExitStatus
from .opened import opened_capture
from .request import LiveRequest

LOOK = 2.0
"""Seconds between two looks at what was dropped."""


def run_live(request: DecodeRequest, live: LiveRequest) -> ExitStatus:
    """Capture and decode until the time is over, the limit reached or Ctrl-C."""
    if live.keep is not None and os.path.realpath(live.keep) == os.path.realpath(request.output):
        raise usage_error("-o and -w", f"{live.keep} cannot have rows and packets")
    capture = opened_capture(live, request.quiet)
    kept = _Kept(live, capture.linktype) if live.keep is not None else None
    watch = _Watch(capture)

    def keep(packets: Sequence[RingPacket]) -> None:
        watch.look()
        if kept is not None:
            kept.write(packets)

    source = LiveSource(capture, duration=live.duration, keep=keep)
    try:
        request = replace(request, plugins=plugins_option(live.plugins))
        status = run_decode(request, Decode([source], decode_options(request)))
        if kept is not None:
            kept.write(())  # a capture without packets is one, as tcpdump's
    finally:
        capture.close()
        if kept is not None:
            kept.finish(capture)
    _say_end(request, source, kept)
    watch.say_dropped()
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


class _Watch:
    """Looks now and then whether packets were lost."""

    def __init__(self, capture: LiveCapture, now: Callable[[], float] = time.monotonic) -> None:
        self._capture = capture
        self._now = now
        self._next = now() + LOOK
        self._said = False

    def look(self) -> None:
        """Say once while it runs that packets were lost."""
        now = self._now()
        if now < self._next:
            return
        self._next = now + LOOK
        self._capture.count()
        if self._capture.dropped and not self._said:
            self._said = True
            self.say_dropped(" so far")

    def say_dropped(self, since: str = "") -> None:
        """Say how many packets were lost, if any; also where no remarks are wanted."""
        dropped, received = self._capture.dropped, self._capture.received
        if not dropped:
            return
        print(
            f"rmqtool: {count(dropped)} of {counted(received, 'packet')} dropped{since}: "
            "exchanges are missing; capture less (-f), show less, or use a larger --buffer",
            file=sys.stderr,
        )


class _Kept:
    """The file that packets are written to; it is opened when reading begins."""

    def __init__(self, live: LiveRequest, linktype: int) -> None:
        assert live.keep is not None
        self.name = live.keep
        self.packets = 0
        """packets written"""
        self.size = 0
        """bytes of the file, once it is finished"""
        self._secrets_read = 0
        self._secrets_begun = False
        self._live = live
        self._linktype = linktype
        self._output: Output | None = None
        self._writer: PcapngWriter | None = None

    def write(self, packets: Sequence[RingPacket]) -> None:
        """Write packets; none: whoever reads the file meanwhile can see all so far."""
        output, writer = self._opened()
        with naming(self.name):
            self._write_secrets(writer)
            for ts, data, length in packets:
                writer.write(ts, data, length)
            if not packets:
                output.flush()
        self.packets = writer.packets

    def _write_secrets(self, writer: PcapngWriter) -> None:
        """Write what was added to the key log; at first also nothing: readers wait for more."""
        if not self._live.secrets:
            return
        text = b""
        with suppress(OSError), open(self._live.secrets, "rb") as file:
            file.seek(self._secrets_read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        if text or not self._secrets_begun:
            writer.write_secrets(text)
        self._secrets_begun = True
        self._secrets_read += len(text)

    def finish(self, capture: LiveCapture) -> None:
        """Write how many packets there were and were lost."""
        if self._output is None or self._writer is None:
            return
        with naming(self.name):
            self._write_secrets(self._writer)
            ts = self._writer.last_ts or time.time_ns()
            self._writer.write_statistics(ts, capture.received, capture.dropped)
        self._output.finish()
        assert self._output.path is not None
        self.size = self._output.path.stat().st_size

    def _opened(self) -> tuple[Output, PcapngWriter]:
        if self._output is None or self._writer is None:
            self._output = Output(self.name, direct=True, private=True)
            with naming(self.name):
                self._writer = PcapngWriter(
                    self._output.stream,
                    self._linktype,
                    interface=self._live.interface,
                    filter_text=self._live.filter_text,
                )
        return self._output, self._writer


def refuse_stdout(keep: str | None) -> None:
    """Raise CommandError where packets should go where rows go."""
    if keep == "-":
        raise CommandError(
            "-w -: standard output is for rows",
            "name a file; packets alone: tcpdump -i INTERFACE -U -w -",
            ExitStatus.USAGE,
        )


def _say_end(request: DecodeRequest, source: LiveSource, kept: _Kept | None) -> None:
    if source.problem is not None:
        print(f"rmqtool: {source.name}: {source.problem}; it ends here", file=sys.stderr)
    if kept is not None and not request.quiet:
        packets = counted(kept.packets, "packet")
        print(f"rmqtool: {packets} → {kept.name} ({size(kept.size)})", file=sys.stderr)


def _state_of(one: Interface) -> str:
    words = ["up" if one.is_up else "down"]
    words += ["loopback"] if one.is_loopback else []
    return " ".join([*words, *one.addresses])
