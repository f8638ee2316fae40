"""One run of `broker`: what listens, what happens, and at the end what it came to."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from dissectors.printable import printable
from dissectors.remoting.code_names import request_name, response_name
from replay.sandbox import Sandbox, SandboxEvent, run_sandbox

from ..ui.console import UNLIMITED, Style, terminal_of
from ..ui.errors import said, silence_stdout
from ..ui.figures import count, counted, duration, size
from ..ui.interrupt import first_ends
from ..ui.json_array import rows_output
from ..ui.json_text import json_line
from ..ui.output import naming
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import CommandError, ExitStatus
from .event_lines import EventDigest, ShownEvent, json_of, line_of
from .options import BrokerFormat, BrokerRequest, sandbox_of

_MOST_ROWS: Final = 12


def run_broker(request: BrokerRequest) -> ExitStatus:
    """Run until Ctrl-C or the time is over; SandboxError where it cannot start."""
    options = sandbox_of(request)
    run = _Run(request)
    if not request.quiet:
        options = replace(options, on_event=run.event)
    try:
        box = run_sandbox(options, run.started, run.tick, first_ends, request.seconds)
        run.finish(box)
    except BaseException:
        run.discard()
        raise
    return ExitStatus.OK if run.is_told else ExitStatus.FAILURE


class _Run:
    """One run."""

    def __init__(self, request: BrokerRequest) -> None:
        self._json = request.format is not BrokerFormat.table
        self._output = rows_output("-", request.format is BrokerFormat.json)
        self._encoding = "utf-8" if self._json else sys.stdout.encoding or "utf-8"
        self._terminal = terminal_of(sys.stdout, request.colour)
        self._digest = EventDigest(request.log)
        self._begin = time.monotonic()
        self._listening = False
        self._deaf = False
        self.is_told = True
        """whether all that happened could be written; a reader who has gone is not a failure"""

    # -- while it runs --------------------------------------------------------------------------

    def started(self, box: Sandbox) -> None:
        """Say where it listens."""
        self._listening = True
        if self._json:
            self._write(_encode(_listening_value(box)))
        else:
            # addresses, paths and commands are copied from here: they are not wrapped
            unwrapped = self._terminal._replace(width=UNLIMITED)
            self._write("\n".join(fact_lines(_listening(box), unwrapped)))

    def event(self, event: SandboxEvent) -> None:
        """Show an event, where it is of interest."""
        if self._listening:
            self._show(self._digest.receive(event))

    def tick(self) -> None:
        """Do what is due each second."""
        self._show(self._digest.tick(_now_ms()))

    def _show(self, found: Iterable[ShownEvent]) -> None:
        for shown in found:
            if self._json:
                self._write(_encode(json_of(shown)))
            else:
                self._write(line_of(shown, self._terminal))

    def finish(self, box: Sandbox) -> None:
        """Say at the end what it came to."""
        seconds = time.monotonic() - self._begin
        self._show(self._digest.finish(_now_ms()))
        if self._json:
            self._write(_encode(_summary_value(box, seconds)))
        else:
            lines = ["", *fact_lines(list(_summary(box, seconds)), self._terminal)]
            self._write("\n".join(lines))
        self._telling(self._output.finish)

    def discard(self) -> None:
        """Close what was written so far."""
        self._output.discard()

    def _write(self, text: str) -> None:
        """Write a line at once; neither a reader who has gone nor a full disk ends the brokers."""
        self._telling(lambda: self._output.write(f"{text}\n".encode(self._encoding, "replace")))
        self._telling(self._output.flush)

    def _telling(self, write: Callable[[], None]) -> None:
        if self._deaf:
            return
        try:
            with naming(self._output.name):
                write()
        except (BrokenPipeError, CommandError) as error:
            self._deaf = True
            silence_stdout()
            if isinstance(error, CommandError):
                self.is_told = False
                said(error.message, "the brokers go on; what happens is no longer shown")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _encode(value: dict[str, object]) -> str:
    return json_line(value).decode().rstrip("\n")


# -- the beginning ------------------------------------------------------------------------------


def _listening_value(box: Sandbox) -> dict[str, object]:
    return {
        "event": "started",
        "namesrv": box.namesrv,
        "brokers": dict(box.addresses),
        "topics": [topic.name for topic in box.options.topics],
        "faults": [str(fault) for fault in box.options.injections],
        "seed": box.options.seed,
        "store": str(box.options.store) if box.options.store else None,
    }


def _listening(box: Sandbox) -> list[Labelled]:
    options = box.options
    rows = [("namesrv", box.namesrv), *box.addresses.items()]
    if options.topics:
        texts = [f"{topic.name} ({counted(topic.queues, 'queue')})" for topic in options.topics]
        rows.append(("topics", ", ".join(texts)))
    if options.store is not None:
        held = sum(len(broker.state.store) for broker in box.brokers.values())
        rows.append(("store", f"{printable(str(options.store))} ({counted(held, 'message')})"))
    rows += [
        ("fault", f"{fault}{_window(fault.from_ms, fault.until_ms)}")
        for fault in options.injections
    ]
    topic = options.topics[0].name if options.topics else "Test"
    rows.append(("send", f"rmqtool send -n {box.namesrv} -t {topic} --body hello"))
    rows.append(("end", "Ctrl-C"))
    indent = max(len(name) for name, _ in rows) + 2
    return [
        Labelled(text, label=name, label_style=Style.BOLD, indent=indent) for name, text in rows
    ]


def _window(from_ms: int, until_ms: int | None) -> str:
    begin = f" from {duration(from_ms * 1000)}" if from_ms else ""
    return begin + (f" until {duration(until_ms * 1000)}" if until_ms is not None else "")


# -- the end ------------------------------------------------------------------------------------


def _summary_value(box: Sandbox, seconds: float) -> dict[str, object]:
    return {
        "event": "summary",
        "seconds": round(seconds, 3),
        "faults_hit": box.injector.hits,
        "brokers": {
            name: {
                "messages_in": broker.state.messages_in,
                "messages_out": broker.state.messages_out,
                "messages_held": len(broker.state.store),
                "bytes_held": broker.state.store.held_bytes,
                "requests": {str(code): n for code, n in sorted(broker.state.requests.items())},
                "errors": {
                    f"{request}:{response}": n
                    for (request, response), n in sorted(broker.state.answers.items())
                },
            }
            for name, broker in box.brokers.items()
        },
    }


def _summary(box: Sandbox, seconds: float) -> Iterator[Labelled]:
    yield Labelled(f"ended after {duration(round(seconds * 1_000_000))}")
    errors: Counter[tuple[int, int]] = Counter()
    requests: Counter[int] = Counter()
    for name, broker in box.brokers.items():
        state = broker.state
        errors += state.answers
        requests += state.requests
        yield Labelled(
            f"{counted(state.messages_in, 'message')} in, {count(state.messages_out)} out, "
            f"{count(len(state.store))} held ({size(state.store.held_bytes)})",
            label=name,
            indent=len(name) + 2,
        )
    if box.injector.hits:
        yield Labelled(f"faults hit {counted(box.injector.hits, 'request')}")
    for code, number in requests.most_common(_MOST_ROWS):
        yield _counted_line(number, request_name(code))
    for (code, response), number in errors.most_common(_MOST_ROWS):
        answer = f"answered {response} {response_name(response, code)}"
        yield _counted_line(number, f"{request_name(code)} {answer}")


def _counted_line(number: int, text: str) -> Labelled:
    return Labelled(text, label=f"{count(number):>12}", indent=14)
