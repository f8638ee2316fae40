"""Events of a run on standard output: addresses, events, and totals.

Rules: of equal events within a second the first is shown, then the number of further ones; sends
and pulls are counted per second. Text from the network is made printable.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.remoting.code_names import response_name
from dissectors.rows.outcome import NORMAL_RESPONSES, operation_on
from replay.sandbox import EventKind, SandboxEvent

from ..ui.common_options import ObjectFormat
from ..ui.console import UNLIMITED, Style, Terminal, When, cut, padded, styled, terminal_of
from ..ui.errors import said, silence_stdout
from ..ui.figures import clock, count
from ..ui.json_array import rows_output
from ..ui.json_text import json_line
from ..ui.output import naming
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import CommandError

_COUNTED: Final = frozenset({EventKind.SENT, EventKind.PULLED})
_DULL: Final = frozenset({EventKind.CONNECTED, EventKind.DISCONNECTED, EventKind.REQUEST})
_COLOURS: Final = {
    EventKind.INJECTED: Style.YELLOW,
    EventKind.WINDOW: Style.CYAN,
    EventKind.ANSWERED: Style.RED,
    EventKind.BAD_BYTES: Style.RED,
    EventKind.STORE_FULL: Style.RED,
    EventKind.INTERNAL: Style.RED,
    EventKind.STORE_DAMAGED: Style.RED,
    EventKind.DEAD_LETTER: Style.YELLOW,
}
_PERIOD_MS: Final = 1000
"""time in which equal events are one line"""
_KEPT: Final = 10_000
"""different events within that time that are shown"""
_LONGEST: Final = 10_000
"""characters of a text that is kept for grouping"""
_Key = tuple[EventKind, str, int | None, str, int | None, str]


@dataclass(slots=True)
class _Seen:
    """Equal events."""

    first: SandboxEvent
    """time of the last shown event"""
    more: int = 0
    """events since"""
    messages: int = 0
    """their messages"""


def is_interesting(event: SandboxEvent) -> bool:
    """Return whether an event is shown by default."""
    if event.kind is EventKind.ANSWERED:
        return event.response is None or response_name(event.response) not in NORMAL_RESPONSES
    return event.kind not in _DULL


class ShownEvent(NamedTuple):
    """A shown event, with the events that it represents."""

    event: SandboxEvent
    messages: int
    """messages of all these events"""
    more: int = 0
    """number of further equal events"""
    first_ms: int = 0
    """time of the first of them, which was shown"""


class EventDigest:
    """Groups equal events for display."""

    def __init__(self, everything: bool) -> None:
        """`everything`: show each event separately."""
        self._everything = everything
        self._seen: dict[_Key, _Seen] = {}

    def receive(self, event: SandboxEvent) -> Iterator[ShownEvent]:
        """Yield the events to show now."""
        if self._everything:
            yield ShownEvent(event, event.messages)
            return
        if not is_interesting(event):
            return
        event = event._replace(topic=event.topic[:_LONGEST], detail=event.detail[:_LONGEST])
        key = _key_of(event)
        seen = self._seen.get(key)
        # While so many different ones are kept, further ones are not shown: memory is bounded.
        if seen is None and len(self._seen) < _KEPT:
            seen = self._seen[key] = _Seen(event)
            if event.kind not in _COUNTED:
                yield ShownEvent(event, event.messages)
                return
        if seen is not None:
            seen.more += 1
            seen.messages += event.messages

    def tick(self, now_ms: int) -> Iterator[ShownEvent]:
        """Yield the events that were held back for a second; call every second."""
        for key, seen in list(self._seen.items()):
            if now_ms - seen.first.at_ms < _PERIOD_MS:
                continue
            del self._seen[key]
            if seen.more:
                more = 0 if seen.first.kind in _COUNTED else seen.more
                event = seen.first._replace(at_ms=now_ms)
                yield ShownEvent(event, seen.messages, more, seen.first.at_ms)

    def finish(self, now_ms: int) -> Iterator[ShownEvent]:
        """Yield all events that were held back."""
        for shown in self.tick(1 << 62):  # later than any event, so nothing is held back
            yield shown._replace(event=shown.event._replace(at_ms=now_ms))


def line_of(shown: ShownEvent, terminal: Terminal) -> str:
    """Return a line for people."""
    event = shown.event
    colour = _COLOURS.get(event.kind, "") if terminal.colour else ""
    kind = styled(padded(event.kind.value, 12), colour)
    rest = " ".join(part for part in _what(shown) if part)
    at = clock(event.at_ms * 1_000_000)
    # 39 cells: time, server, and kind with 12, 9 and 12, and the two blanks behind each
    return f"{at}  {padded(event.server, 9)}  {kind}  {cut(rest, terminal.width - 39)}"


def _key_of(event: SandboxEvent) -> _Key:
    # Details of these differ from event to event: delays, remarks.
    is_equal = event.kind in (*_COUNTED, EventKind.INJECTED, EventKind.ANSWERED)
    detail = "" if is_equal else event.detail
    return (event.kind, event.server, event.code, event.topic, event.response, detail)


def _what(shown: ShownEvent) -> Iterator[str]:
    event, messages, more = shown.event, shown.messages, shown.more
    if event.kind in _COUNTED:
        yield f"{counted(messages, 'message')} of {printable(event.topic)}"
        return
    if event.code is not None:
        yield operation_on(event.code, printable(event.topic))
        if event.response:
            name = response_name(event.response, event.code)
            yield f"responded {event.response} {name}"
    elif event.topic:
        yield printable(event.topic)
    if event.kind in (EventKind.CONNECTED, EventKind.DISCONNECTED, EventKind.BAD_BYTES):
        yield event.peer
    yield printable(event.detail)
    if more:
        seconds = max(1, math.ceil((event.at_ms - shown.first_ms) / 1000))
        yield f"({count(more)} more in the last {seconds} s)"


def json_of(shown: ShownEvent) -> dict[str, object]:
    """Return an event in JSON types, without absent fields."""
    event = shown.event
    value: dict[str, object] = {
        "ts_ms": event.at_ms,
        "event": event.kind.value,
        "server": event.server,
        "peer": event.peer or None,
        "code": event.code,
        "topic": event.topic or None,
        "messages": shown.messages if event.kind in _COUNTED else None,
        "response": event.response,
        "detail": event.detail or None,
        "more": shown.more or None,
    }
    return {name: item for name, item in value.items() if item is not None}


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
