"""One run of `proxy`: addresses, events, and totals at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dissectors.endpoint import endpoint_text
from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.temporary import PRIVATE, create_new
from replay.consent import Consent
from replay.proxy.options import ProxyOptions
from replay.proxy.proxy import Proxy, run_proxy
from replay.proxy.recording import Recording, Tap
from replay.safety import Guard

from ..broker.event_output import EventOutput
from ..broker.run import fault_rows
from ..send.targets import Question, can_ask
from ..ui.console import Style
from ..ui.errors import print_note
from ..ui.figures import count, duration, size
from ..ui.interrupt import first_ends
from ..ui.option_values import about, usage_error
from ..ui.output import refuse_existing
from ..ui.screen.panels import Labelled
from ..ui.status import ExitStatus
from .options import ProxyRequest, options_of
from .readers import RecordingReader, readers_of


def run_proxy_command(request: ProxyRequest) -> ExitStatus:
    """Run until Ctrl-C or the time is over; raise CommandError if it cannot start."""
    options, guard = options_of(request)
    for target in (request.write, request.output):
        refuse_existing(target, request.force)
    taps = _taps_of(request)
    readers = _readers_of(request)
    taps += [reader.tap() for reader in readers]
    recording = Recording(taps) if taps else None
    run = _Run(request, recording, readers)
    question = Question(lambda: None)
    if not request.quiet:
        options = replace(options, on_event=run.event)
    if recording is not None:
        options = replace(options, wire=recording)
    if can_ask():
        options = replace(options, consent=_consent_of(guard, question))
    try:
        proxy = run_proxy(options, run.started, run.tick, first_ends, request.seconds)
        run.finish(proxy)
    except BaseException:
        run.discard()
        raise
    return run.status()


class _Run:
    """A run of the command."""

    def __init__(
        self, request: ProxyRequest, recording: Recording | None, readers: Sequence[RecordingReader]
    ) -> None:
        self._shown = EventOutput(
            request.format, request.colour, request.log, "the proxy keeps running"
        )
        self._recording = recording
        self._readers = readers
        self._failed: list[str] = []
        self._begin = time.monotonic()
        self.event = self._shown.event
        self.tick = self._shown.tick

    def started(self, proxy: Proxy) -> None:
        """Print the addresses."""
        self._shown.start(_listening_value(proxy.options, proxy), _listening(proxy))

    def finish(self, proxy: Proxy) -> None:
        """Print the totals at the end."""
        self._end_recording()
        seconds = time.monotonic() - self._begin
        value = _summary_value(proxy, self._recording, seconds)
        self._shown.finish(value, list(_summary(proxy, self._recording, seconds)))

    def discard(self) -> None:
        """Flush the recording."""
        self._end_recording()
        self._shown.discard()

    def _end_recording(self) -> None:
        if self._recording is not None:
            self._recording.finish()
        for reader in self._readers:
            status = reader.finish()
            if status:
                self._failed.append(reader.name)
                print_note(f"{reader.name}: ended with status {status}")

    def status(self) -> ExitStatus:
        """Return the exit status."""
        failed = self._recording is not None and any(_is_failure(t) for t in self._recording.taps)
        failed = failed or bool(self._failed) or not self._shown.is_written
        return ExitStatus.FAILURE if failed else ExitStatus.OK


def _is_failure(tap: Tap) -> bool:
    return tap.error is not None and not isinstance(tap.error, BrokenPipeError)


def _consent_of(guard: Guard, question: Question) -> Callable[[Sequence[str]], Awaitable[None]]:
    return Consent(guard, question).agree


def _readers_of(request: ProxyRequest) -> list[RecordingReader]:
    agreed = ["--yes"] if request.yes else []
    for network in request.allow or ():
        agreed += ["--allow", network]
    mirror, where, journal = request.mirror, request.mirror_where, request.mirror_output
    return readers_of(request.output, request.force, mirror, where, journal, agreed, sys.stderr)


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
    with create_new(Path(path), PRIVATE) as file:
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
    indent = max(len(name) for name, _ in rows) + 2
    return [
        Labelled(text, label=name, label_style=Style.BOLD, indent=indent) for name, text in rows
    ]


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
        yield Labelled(name, label=f"{count(number):>12}", indent=14)
    for front in proxy.fronts.known():
        own = endpoint_text(front.host, front.port)
        name = printable(front.name)
        text = f"{own} for {printable(front.targets[0])}"
        yield Labelled(text, label=name, indent=len(name) + 2)
    for tap in recording.taps if recording is not None else ():
        lost = f", {counted(tap.lost, 'packet')} lost: it could not follow" if tap.lost else ""
        why = f", then: {tap.error.strerror}" if tap.error is not None else ""
        yield Labelled(f"{size(tap.written)} → {printable(tap.name)}{lost}{why}")
