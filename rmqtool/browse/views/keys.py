"""The keys of the screen, each with its action; the source of the help.

Rules: a key acts on the screen as the previous key left it. Textual delivers keys to the widget
that has the focus when they arrive; without a queue, the second of two keys typed ahead would miss
the line that the first one opens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES
from .details import MODES
from .tables import PROBLEMS, SUMMARY


class Key(NamedTuple):
    """The keys of one action."""

    keys: str
    """Textual names, separated by commas"""
    action: str
    says: str
    """description of the action"""
    shown_as: str = ""
    """name in the help; empty: that of Textual"""

    @property
    def shown(self) -> str:
        """Name in the help."""
        return self.shown_as or self.keys


GROUPS: Final[dict[str, tuple[Key, ...]]] = {
    "Views": (
        Key("1", "view('exchanges')", "exchanges"),
        Key("2", "view('messages')", "messages"),
        Key("3", "view('connections')", "connections"),
        Key("4", "view('problems')", "problems: what is wrong, and its evidence"),
        Key("5", "view('summary')", "summary"),
        Key("tab", "other_pane", "switch between list and details", "Tab"),
        Key("d", "toggle_details", "show or hide details"),
        Key("F", "follow", "follow: stay on the last row"),
    ),
    "Filter and search": (
        Key("f", "filter", "edit the filter (--where syntax); Tab completes"),
        Key("x", "clear_filter", "clear the filter"),
        Key("backspace", "filter_before", "previous filter", "Backspace"),
        Key("equals_sign", "only(True)", "show only rows with this cell's value", "="),
        Key("minus", "only(False)", "hide rows with this cell's value", "-"),
        Key("t", "timeline", "timeline: select a time range with arrows, Space, Enter"),
        Key("full_stop", "conversation", "show only this conversation", "."),
        Key("slash", "search", "search in all columns", "/"),
        Key("n", "again(1)", "next match"),
        Key("N", "again(-1)", "previous match"),
    ),
    "Order and marks": (
        Key("s", "sort", "sort by time, latency, size, or completion"),
        Key("S", "reverse", "reverse the sort order"),
        Key("m", "mark", "mark or unmark the row"),
        Key("M", "only_marked", "show only marked rows, or all rows"),
        Key("u", "unmark", "clear all marks"),
    ),
    "Details": (
        *(Key(key, f"mode('{mode}')", name) for mode, (key, name) in MODES.items()),
        Key("r", "jump_side", "switch between request and response"),
        Key("e", "evidence", "go to a problem's evidence, a message's exchange, or a connection"),
        Key("a", "attempts", "show all attempts of the message"),
    ),
    "Actions": (
        Key("w", "export", "export marked or all rows: .pcapng, .json, .jsonl, .parquet"),
        Key("C", "copy", "copy the rows as a command, and show a display filter"),
        Key("R", "replay", "replay the rows: show the plan, then ask for a target"),
        Key("c", "columns", "choose columns; they are remembered"),
        Key("V", "save", "save the view under a name"),
        Key("v", "load", "load a saved view"),
        Key("p", "pause", "pause or resume updates"),
    ),
    "Everything": (
        Key("question_mark", "help", "show these keys", "?"),
        Key("T", "theme", "switch between dark and light"),
        Key("escape", "to_list", "back to the list", "Esc"),
        Key("q", "quit", "quit"),
    ),
}

KEYS_OF: Final = {
    EXCHANGES: "Enter:details f:filter s:sort e:connection a:attempts L:trace",
    MESSAGES: "Enter:details f:filter s:sort e:exchange L:trace",
    CONNECTIONS: "Enter:details f:filter s:sort .:its exchanges",
    PROBLEMS: "Enter:details e:evidence",
    SUMMARY: "j k:scroll",
}
"""view → most useful keys, for the last line"""
KEYS: Final[list[BindingType]] = [
    Binding(key.keys, key.action, key.says, show=False)
    for group in GROUPS.values()
    for key in group
]

IN_LISTS: Final = (
    ("j k ↓ ↑", "down, up"),
    ("g G Home End", "first, last row"),
    ("Ctrl-D Ctrl-U", "half a page down, up"),
    ("Ctrl-F Ctrl-B PgDn PgUp", "a page down, up"),
    ("h l ← →", "select the column that =, -, and s use"),
    ("Enter, double click", "show details"),
    ("Ctrl-P", "search all commands by name"),
)

_HOPS: Final = 3
"""messages that follow each other until a key has done all: its own, and two that it sends"""
_LOOK: Final = 0.05
"""seconds between checks for a widget"""
_WAIT: Final = 0.01
"""seconds between checks for rows"""


def named_commands() -> Iterator[tuple[str, str, str]]:
    """Yield key actions for a command list: name, section and key, action."""
    for group, keys in GROUPS.items():
        for key in keys:
            yield key.says, f"{group}: {key.shown}", key.action


class KeyPassed(Message):
    """A marker behind a key, which arrives when the key is handled."""

    def __init__(self, by: Widget, turn: int, left: int) -> None:
        super().__init__()
        self.by = by
        """target of the key"""
        self.turn = turn
        """sequence number of the key"""
        self.left = left
        """remaining round trips"""


class KeysInOrder(App[None]):
    """Processes a key only after the previous one is fully handled."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._typed: deque[events.Key | events.Paste] = deque()
        self._is_passing = False
        self._turn = 0
        """keys that were passed on; the end of each is heard of once, whoever sees it first"""

    async def on_event(self, event: events.Event) -> None:
        """Keep keys in order; pass all else on."""
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self._typed.append(event)
            if not self._is_passing:
                await self._pass_on(self._turn)
        else:
            await super().on_event(event)

    async def _pass_on(self, turn: int) -> None:
        """Pass the next key on, after that of a turn."""
        if turn != self._turn:
            return
        self._is_passing = False
        while self._typed and not self._is_passing:
            if self.must_wait():
                self._is_passing = True
                self.set_timer(_WAIT, partial(self._pass_on, self._turn))
                return
            self._turn += 1
            by = self.focused
            stands_before = len(self.screen_stack) > 1
            await super().on_event(self._typed.popleft())
            if by is not None:
                self._is_passing = by.post_message(KeyPassed(by, self._turn, _HOPS))
                if self._is_passing and stands_before:
                    self._look_for(by, self._turn)

    def _look_for(self, by: Widget, turn: int) -> None:
        """Continue without a widget that was removed with its screen and its message."""

        def look() -> None:
            if turn == self._turn and self._is_passing:
                if by.is_attached:
                    self._look_for(by, turn)
                else:
                    self.call_later(self._pass_on, turn)

        self.set_timer(_LOOK, look)

    def must_wait(self) -> bool:
        """Return whether the next key must wait for results of the previous one."""
        return False

    @property
    def is_typing(self) -> bool:
        """Whether keys are queued."""
        return self._is_passing or bool(self._typed)

    def on_key_passed(self, message: KeyPassed) -> None:
        """Process the next key once the messages of this one have arrived."""
        by, turn, left = message.by, message.turn, message.left
        if left == 0 or not by.post_message(KeyPassed(by, turn, left - 1)):
            self.call_later(self._pass_on, turn)
