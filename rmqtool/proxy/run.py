"""One run of `proxy`: addresses, events, and totals at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from dissectors.endpoint import endpoint_text
from dissectors.printable import printable
from dissectors.processes.children import start_module
from dissectors.quantities import counted
from dissectors.temporary import PRIVATE, create_new
from replay.consent import Consent
from replay.proxy.options import ProxyOptions
from replay.proxy.proxy import Proxy, run_proxy
from replay.proxy.recording import Recording, Tap

from ..broker.event_output import EventOutput
from ..broker.run import aligned, counted_line, fault_rows
from ..send.targets import Question, can_ask
from ..ui.errors import print_note
from ..ui.figures import duration, size
from ..ui.interrupt import first_ends
from ..ui.option_values import about, usage_error
from ..ui.output import refuse_existing
from ..ui.screen.panels import Labelled
from ..ui.status import ExitStatus
from .options import ProxyRequest, options_of


def run_proxy_command(request: ProxyRequest) -> ExitStatus:
    """Run until Ctrl-C or the time is over; raise CommandError if it cannot start."""
    options, guard = options_of(request)
    for target in (request.write, request.output):
        refuse_existing(target, request.force)
    taps = _taps_of(request)
    readers = readers_of(request, sys.stderr)
    taps += [reader.tap() for reader in readers]
    recording = Recording(taps) if taps else None
    shown = EventOutput(request.format, request.colour, request.log, "the proxy keeps running")
    begin = time.monotonic()
    if not request.quiet:
        options = replace(options, on_event=shown.event)
    if recording is not None:
        options = replace(options, wire=recording)
    if can_ask():
        options = replace(options, consent=Consent(guard, Question(lambda: None)).agree)

    def started(proxy: Proxy) -> None:
        shown.start(_listening_value(proxy.options, proxy), _listening(proxy))

    try:
        try:
            proxy = run_proxy(options, started, shown.tick, first_ends, request.seconds)
        finally:
            is_recorded = _end_recording(recording, readers)
        seconds = time.monotonic() - begin
        value = _summary_value(proxy, recording, seconds)
        shown.finish(value, list(_summary(proxy, recording, seconds)))
    except BaseException:
        shown.discard()
        raise
    return ExitStatus.OK if is_recorded and shown.is_written else ExitStatus.FAILURE


def _end_recording(recording: Recording | None, readers: Sequence[RecordingReader]) -> bool:
    """Write the rest of the recording and wait for its readers; return whether all succeeded."""
    if recording is not None:
        recording.finish()
    succeeded = True
    for reader in readers:
        status = reader.finish()
        if status:
            succeeded = False
            print_note(f"{reader.name}: ended with status {status}")
    taps = recording.taps if recording is not None else ()
    for tap in taps:
        if tap.error is None and tap.unwritten:
            succeeded = False
            rest = size(tap.unwritten)
            print_note(f"{printable(tap.name)}: the last {rest} were not read in time")
    # A reader that has seen enough closes its pipe, as `head` does.
    return succeeded and all(
        tap.error is None or isinstance(tap.error, BrokenPipeError) for tap in taps
    )


def _taps_of(request: ProxyRequest) -> list[Tap]:
    """Return the packet outputs."""
    taps = []
    if request.write == "-":
        # Standard output has packets, so everything else goes to standard error.
        if sys.stdout.isatty():
            raise usage_error("--write", "standard output is a terminal; name a file or add a pipe")
        sys.stdout.flush()
        packets = os.dup(1)
        os.dup2(2, 1)
        taps.append(Tap("standard output", packets))
    elif request.write is not None:
        with about("--write"):
            taps.append(Tap(request.write, _file_of(request.write, request.force)))
    return taps


def _file_of(path: str, force: bool) -> int:
    """Return an open file; devices and pipes are written in place, never replaced."""
    if os.path.exists(path) and not os.path.isfile(path):
        return os.open(path, os.O_WRONLY)
    if force:
        Path(path).unlink(missing_ok=True)
    with create_new(Path(path), PRIVATE) as file:  # which is closed here
        return os.dup(file.fileno())


# -- the beginning ------------------------------------------------------------------------------


def _listening_value(options: ProxyOptions, proxy: Proxy) -> dict[str, object]:
    return {
        "event": "started",
        "namesrv": proxy.namesrv,
        "for": list(options.namesrv),
        **({"grpc": proxy.grpc} if options.grpc else {}),
        "faults": [str(fault) for fault in options.injections],
        "seed": options.seed,
    }


def _listening(proxy: Proxy) -> list[Labelled]:
    options = proxy.options
    rows = [
        ("namesrv", f"{proxy.namesrv} for {', '.join(map(printable, options.namesrv))}"),
        *([("grpc", f"{proxy.grpc} for {printable(options.grpc)}")] if options.grpc else []),
        *fault_rows(options.injections),
        ("clients", f"use the NameServer {proxy.namesrv}"),
        ("end", "Ctrl-C"),
    ]
    return aligned(rows)


# -- the end ------------------------------------------------------------------------------------


def _summary_value(proxy: Proxy, recording: Recording | None, seconds: float) -> dict[str, object]:
    return {
        "event": "summary",
        "seconds": round(seconds, 3),
        "faults_hit": proxy.injector.hits,
        **{name.replace(" ", "_"): number for name, number in sorted(proxy.counts.items())},
        "brokers": {
            front.targets[0]: endpoint_text(front.host, front.port)
            for front in proxy.fronts.known()
        },
        "recordings": [
            {"name": tap.name, "bytes": tap.written, "lost_packets": tap.lost}
            for tap in (recording.taps if recording is not None else ())
        ],
    }


def _summary(proxy: Proxy, recording: Recording | None, seconds: float) -> Iterator[Labelled]:
    yield Labelled(f"ended after {duration(round(seconds * 1_000_000))}")
    if proxy.injector.hits:
        yield Labelled(f"faults hit {counted(proxy.injector.hits, 'request')}")
    for name, number in sorted(proxy.counts.items()):
        yield counted_line(number, name)
    for front in proxy.fronts.known():
        own = endpoint_text(front.host, front.port)
        name = printable(front.name)
        text = f"{own} for {printable(front.targets[0])}"
        yield Labelled(text, label=name, indent=len(name) + 2)
    for tap in recording.taps if recording is not None else ():
        lost = f", {counted(tap.lost, 'packet')} lost: it could not follow" if tap.lost else ""
        why = f", then: {tap.error.strerror}" if tap.error is not None else ""
        yield Labelled(f"{size(tap.written)} → {printable(tap.name)}{lost}{why}")


# -- the readers of the recording ---------------------------------------------------------------

_END_SECONDS: Final = 60.0
"""seconds for a reader to finish"""


class RecordingReader:
    """Another run of rmqtool that reads the recording: a decoded log, or a replay elsewhere.

    It is a separate process, so traffic never waits for it; packets that it cannot read in time are
    dropped and counted. Ctrl-C ends the proxy; the reader then finishes its input.
    """

    def __init__(self, name: str, arguments: Sequence[str], out: IO[str] | None = None) -> None:
        """`name`: name in messages; its output goes to `out`, or is discarded."""
        self.name = name
        """name in messages"""
        self._process = start_module(
            "rmqtool",
            *arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if out is None else out,
            start_new_session=True,  # terminal signals go to the proxy
        )

    def tap(self) -> Tap:
        """Return the function that writes packets to it."""
        assert self._process.stdin is not None
        # The tap closes its own descriptor; another one would keep the pipe open.
        with self._process.stdin as pipe:
            return Tap(self.name, os.dup(pipe.fileno()))

    def finish(self) -> int:
        """Wait for the process and return its exit status."""
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def readers_of(request: ProxyRequest, out: IO[str]) -> list[RecordingReader]:
    """Start the requested readers; the mirror reports to `out`."""
    started: list[RecordingReader] = []
    log, mirror = request.output, request.mirror
    if log is not None:
        decode = ["decode", "pcap", "-", "-o", log, "--quiet"]
        decode += ["--force"] if request.force else []
        started.append(RecordingReader(log, decode))
    if mirror is not None:
        replay = ["replay", "-", "--live", "-n", mirror, "--quiet"]
        replay += ["--yes"] if request.yes else []
        for network in request.allow or ():
            replay += ["--allow", network]
        replay += ["-Y", request.mirror_where] if request.mirror_where else []
        replay += ["-o", request.mirror_output] if request.mirror_output else []
        started.append(RecordingReader(f"mirror to {mirror}", replay, out))
    return started
