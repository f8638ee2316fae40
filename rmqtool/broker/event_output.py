"""Events of a run on standard output: addresses, events, and totals."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence

from replay.sandbox import SandboxEvent

from ..ui.common_options import ObjectFormat
from ..ui.console import UNLIMITED, When, terminal_of
from ..ui.errors import said, silence_stdout
from ..ui.json_array import rows_output
from ..ui.json_text import json_line
from ..ui.output import naming
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import CommandError
from .event_lines import EventDigest, ShownEvent, json_of, line_of


class EventOutput:
    """Writes the events of a run."""

    def __init__(self, form: ObjectFormat, colour: When, everything: bool, goes_on: str) -> None:
        """`everything`: show each event; `goes_on`: what continues without a reader."""
        self._json = form.is_json
        self._output = rows_output("-", form is ObjectFormat.json)
        self._encoding = "utf-8" if self._json else sys.stdout.encoding or "utf-8"
        self._terminal = terminal_of(sys.stdout, colour)
        self._digest = EventDigest(everything)
        self._goes_on = goes_on
        self._listening = False
        self._deaf = False
        self.is_written = True
        """whether all events were written; a closed pipe is not a failure"""

    def start(self, value: dict[str, object], lines: Sequence[Labelled]) -> None:
        """Print the addresses, as JSON or as lines."""
        self._listening = True
        if self._json:
            self._write(_encode(value))
        else:
            # not wrapped, because addresses, paths, and commands are copied from here
            unwrapped = self._terminal._replace(width=UNLIMITED)
            self._write("\n".join(fact_lines(lines, unwrapped)))

    def event(self, event: SandboxEvent) -> None:
        """Print an event if it is of interest."""
        if self._listening:
            self._show(self._digest.receive(event))

    def tick(self) -> None:
        """Do the work of each second."""
        self._show(self._digest.tick(_now_ms()))

    def finish(self, value: dict[str, object], lines: Sequence[Labelled]) -> None:
        """Print the totals at the end."""
        self._show(self._digest.finish(_now_ms()))
        if self._json:
            self._write(_encode(value))
        else:
            self._write("\n".join(["", *fact_lines(lines, self._terminal)]))
        self._guarded(self._output.finish)

    def discard(self) -> None:
        """Close the output."""
        self._output.discard()

    def _show(self, events: Iterable[ShownEvent]) -> None:
        for shown in events:
            if self._json:
                self._write(_encode(json_of(shown)))
            else:
                self._write(line_of(shown, self._terminal))

    def _write(self, text: str) -> None:
        """Write a line at once; neither a closed pipe nor a full disk ends the run."""
        self._guarded(lambda: self._output.write(f"{text}\n".encode(self._encoding, "replace")))
        self._guarded(self._output.flush)

    def _guarded(self, write: Callable[[], None]) -> None:
        if self._deaf:
            return
        try:
            with naming(self._output.name):
                write()
        except (BrokenPipeError, CommandError) as error:
            self._deaf = True
            silence_stdout()
            if isinstance(error, CommandError):
                self.is_written = False
                said(error.message, f"{self._goes_on}; events are no longer shown")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _encode(value: dict[str, object]) -> str:
    return json_line(value).decode().rstrip("\n")
