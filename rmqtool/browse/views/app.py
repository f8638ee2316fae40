"""The screen: lists above or beside the details, a filter line, a status bar."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult, SystemCommand
from textual.containers import Container, Vertical
from textual.events import Resize
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from analytics.diagnosis.problem import Problem
from dissectors.remoting.bodies.custom import NamedDecoder
from dissectors.temporary import remove_all

from ...summary.summary_text import finding_text
from ...ui.console import UNLIMITED, one_line
from ...ui.figures import count, share
from ...ui.status import ExitStatus
from ..model.session import BrowseSession
from ..model.settings import Settings
from .details import Details
from .filter_line import FilterLine
from .keys import KEYS, KEYS_OF, KeysInOrder, named_commands
from .lines_view import LinesView
from .paint import text_of
from .row_list import RowList
from .tables import (
    NOT_SEEN,
    PROBLEM_COLUMNS,
    PROBLEMS,
    SUMMARY,
    TABLES,
    VIEWS,
    ProblemRows,
    TableView,
)
from .timeline_strip import TimelineStrip

if TYPE_CHECKING:
    from textual.app import App

WIDE: int = 150
"""smallest width that shows the details beside the list"""
LOW: int = 22
"""smallest height that shows the timeline"""
TICK: float = 0.1
"""seconds between checks for new rows"""
PATIENCE: float = 1.0
"""seconds that a key waits for a new filter or order"""


class Screens(KeysInOrder):
    """The screen and its state; key actions are in `browser`."""

    TITLE = "rmqtool browse"
    ENABLE_COMMAND_PALETTE = True
    CSS: ClassVar[str] = """
    #bar { height: 1; background: $panel; }
    #status { height: 1; background: $panel; }
    #body { height: 1fr; }
    #left { height: 1fr; }
    #views { height: 1fr; }
    #body.wide { layout: horizontal; }
    #body.wide #left { width: 3fr; }
    #body.wide Details { width: 2fr; border-top: none; border-left: solid $panel; }
    #body.wide Details:focus-within { border-left: solid $primary; }
    #body.alone Details { display: none; }
    OptionList:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    Input:nocolor > .input--cursor { text-style: reverse; }
    Toast:nocolor { border: round $foreground; }
    """
    BINDINGS = KEYS

    def __init__(
        self,
        session: BrowseSession,
        settings: Settings,
        settings_path: Path,
        plugins: tuple[NamedDecoder, ...] = (),
    ) -> None:
        # ANSI colours, so that disabling colours leaves no greys
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.session = session
        self.settings = settings
        self.settings_path = settings_path
        self.plugins = plugins
        self.tables = {
            name: TableView(session, name, settings.columns.get(name, ())) for name in TABLES
        }
        self.problem_rows = ProblemRows()
        self.view = VIEWS[0]
        """what is listed"""
        self.said = ""
        """note of the last action"""
        self.on_terminal = False
        """runs on a terminal, and ends with it"""
        self.paused = False
        self._version = -1
        self._is_problem_shown = False
        self._is_cut_shown = False
        self._bars = ("", "", "")
        self._waiting: Timer | None = None
        self._waits_until = 0.0

    # -- parts ------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Compose the widgets."""
        yield Static("", id="bar", markup=False)
        with Container(id="body"):
            with Vertical(id="left"):
                with ContentSwitcher(id="views", initial=VIEWS[0]):
                    for name, table in self.tables.items():
                        marks = table.marks
                        columns = table.line_columns()
                        yield RowList(table.listing, columns, marks.__contains__, id=name)
                    yield RowList(self.problem_rows, PROBLEM_COLUMNS, id=PROBLEMS)
                    yield LinesView(id=SUMMARY)
                yield TimelineStrip(id="timeline")
            yield Details(id="details")
        yield FilterLine(id="filter")
        yield Static("", id="status", markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """Yield the commands of the Ctrl-P palette: the key actions, without Textual's own."""
        if screen is self.screen_stack[0]:  # not over a dialog, which has its own keys
            for name, place, action in named_commands():
                yield SystemCommand(name, place, partial(self.run_action, action))

    def on_mount(self) -> None:
        """Start to poll for new rows."""
        self.set_interval(TICK, self.look)
        if self.on_terminal:
            end_with_terminal(self)
        self.list_of(self.view).focus()
        self.look()

    @property
    def main(self) -> Screen[object]:
        """The main screen, even behind dialogs."""
        return self.screen_stack[0]

    def list_of(self, view: str) -> RowList:
        """Return the widget of a view; the summary is not a list."""
        return self.main.query_one(f"#{view}", RowList)

    @property
    def details(self) -> Details:
        """The pane of details."""
        return self.main.query_one(Details)

    @property
    def line(self) -> FilterLine:
        """The filter line."""
        return self.main.query_one("#filter", FilterLine)

    @property
    def table(self) -> TableView | None:
        """The listed table; None for problems and summary."""
        return self.tables.get(self.view)

    @property
    def rows(self) -> RowList | None:
        """The shown list; None for the summary."""
        return None if self.view == SUMMARY else self.list_of(self.view)

    def close(self) -> None:
        """Stop all threads and close the session."""
        for table in self.tables.values():
            table.listing.close()
        self.session.close()

    # -- what is shown ----------------------------------------------------------------------------

    def look(self) -> None:
        """Show new rows and problems."""
        if not self.is_mounted_fully:
            return
        table, rows = self.table, self.rows
        if table is not None and rows is not None:
            chosen = table.listing.chosen
            in_order = len(chosen.sorted or ())
            seen = (table.store.first, len(table.listing), chosen.looked_at, in_order)
            if self.paused:  # rows may be dropped, and others would take their place
                seen = (table.store.first, *table.seen[1:])
            if seen != table.seen:
                table.seen = seen
                rows.update_rows()
        if self.session.version != self._version:
            self._version = self.session.version
            self.look_at_verdicts()
        problem = self.session.problem
        if problem is not None and not self._is_problem_shown:
            self._is_problem_shown = True
            if self.on_terminal and self.session.is_empty:
                self.exit(return_code=ExitStatus.FAILURE)
            self.notify(one_line(problem, UNLIMITED), severity="error", markup=False)
        cut = self.session.cut()
        if cut is not None and not self._is_cut_shown:
            self._is_cut_shown = True
            text = f"{cut.kind.meaning}: {finding_text(cut, self.session.captures)}"
            self.notify(text, severity="warning", markup=False)
        self.show_bar()

    @property
    def is_mounted_fully(self) -> bool:
        """Whether all widgets are mounted."""
        stack = self.screen_stack
        return bool(stack) and bool(stack[0].query("#status"))

    def from_thread(self, do: Callable[..., object], *given: object) -> None:
        """Run a function on the screen's thread, unless the screen is closed."""

        def if_there() -> None:
            if self.is_mounted_fully:
                do(*given)

        self.call_from_thread(if_there)

    def look_at_verdicts(self) -> None:
        """Update problems and summary if they are shown."""

    def must_wait(self) -> bool:
        """Return whether keys wait for a new filter or order."""
        if monotonic() >= self._waits_until or not self.is_mounted_fully:
            return False
        table = self.table
        if table is not None and not table.listing.is_done:
            return True
        self._waits_until = 0.0
        self.look()  # the next key needs the cursor position
        return False

    def show_bar(self) -> None:
        """Update the bar: views, reading progress, and listed rows."""
        tabs = [self._tab(number, name) for number, name in enumerate(VIEWS, 1)]
        shown = VIEWS.index(self.view)
        if sum(map(len, tabs)) + 2 * len(tabs) > self.size.width:  # only the shown one
            tabs, shown = [tabs[shown], "1-5"], 0
        texts = "  ".join([*tabs, self.progress()]), self.status()
        if (self.view, *texts) != self._bars:  # each goes over a possibly slow connection
            self._bars = (self.view, *texts)
            bar, status = map(text_of, texts)
            start = sum(len(tab) + 2 for tab in tabs[:shown])
            bar.stylize("bold reverse", start, start + len(tabs[shown]))
            self.main.query_one("#bar", Static).update(bar)
            self.main.query_one("#status", Static).update(status)

    def _tab(self, number: int, name: str) -> str:
        """Return the tab of a view: key, name, and count."""
        table = self.tables.get(name)
        held = len(self.problem_rows) if table is None else table.store.count - table.store.first
        suffix = f" {count(held)}" if table is not None or name == PROBLEMS else ""
        return f"[{number}] {name.capitalize()}{suffix}"

    def progress(self) -> str:
        """Return the reading progress."""
        session = self.session
        # before the name, which may be longer than the bar
        parts = [part for part in (session.cut_short(), one_line(session.name)) if part]
        if session.problem is not None:
            parts.append(f"ended early: {one_line(session.problem)}")
        elif session.is_reading:
            read, total = session.progress()
            parts.append(f"reading {share(read, total)}" if total else "reading")
        return "  ".join(parts)

    def status(self) -> str:
        """Return the state of the list and the note of the last action."""
        table = self.table
        keys = self.said or f"?:help q:quit {KEYS_OF[self.view]}"
        if table is None:
            return f" {keys}"
        listed, all_rows = len(table.listing), table.store.count - table.store.first
        text = f" {count(listed)}"
        if table.filter or table.only_marked:
            text += f" of {count(all_rows)}"
        if not table.listing.is_done:
            text += " …"
        if table.marks:
            text += f", {count(len(table.marks))} marked"
        if table.sort != table.usual_sort or table.descending:
            arrow = "↓" if table.descending else "↑"
            text += f", by {table.sort} {arrow}" if table.sort else ", as completed"
        if table.only_marked:
            text += ", marked only"
        rows = self.rows
        if rows is not None and rows.follow:
            text += ", following"
        if table.filter:
            text += f"  filter: {one_line(table.filter)}"
        return f"{text}  {keys}"

    def say(self, text: str) -> None:
        """Show a note until the next key."""
        self.said = text
        if self.is_mounted_fully:
            self.show_bar()

    def show_view(self, view: str) -> None:
        """Switch to another view."""
        self.view = view
        self.said = ""
        self.main.query_one("#views", ContentSwitcher).current = view
        self.main.query_one("#body").set_class(view == SUMMARY, "alone")
        self.main.query_one("#timeline").display = self.size.height >= LOW and view in self.tables
        self.look_at_verdicts()
        self.main.query_one(f"#{view}").focus()
        self.look()
        self.detail_soon()

    def on_resize(self, event: Resize) -> None:
        """Place the details according to the screen size."""
        self.main.query_one("#body").set_class(event.size.width >= WIDE, "wide")
        self.main.query_one("#timeline").display = (
            event.size.height >= LOW and self.table is not None
        )

    def refresh_list(self) -> None:
        """Draw the list after a change of filter or order."""
        table, rows = self.table, self.rows
        if table is not None and rows is not None:
            table.seen = NOT_SEEN
            rows.show(table.listing, table.line_columns())
            self._waits_until = monotonic() + PATIENCE
            self.look()
            self.detail_soon()

    # -- details ----------------------------------------------------------------------------------

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        """Show the details of another row once the cursor rests."""
        if event.rows is self.rows:
            self.said = ""
            self.detail_soon()

    def on_row_list_opened(self) -> None:
        """Focus the details."""
        self.detail_now()
        if not self.details.display or self.main.query_one("#body").has_class("alone"):
            self.main.query_one("#body").remove_class("alone")
        self.details.focus_content()

    def detail_soon(self) -> None:
        """Show details after a delay, so that a held key does not draw each row."""
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(0.03, self._show_detail_now)

    def detail_now(self) -> None:
        """Show delayed details now, because the next key needs them."""
        if self._waiting is not None:
            self._waiting.stop()
            self._show_detail_now()

    def _show_detail_now(self) -> None:
        self._waiting = None
        if self.is_mounted_fully:  # it may have just ended
            self.show_detail()

    @property
    def is_busy(self) -> bool:
        """Whether the screen is behind the keys or the reader."""
        return (
            self.is_typing
            or self.session.is_reading
            or self._waiting is not None
            or any(not table.listing.is_done for table in self.tables.values())
            or any(not worker.is_finished for worker in self.workers)
        )

    def show_detail(self) -> None:
        """Show the details of the selected row."""

    def problem(self) -> Problem | None:
        """Return the selected problem."""
        rows = self.rows
        if self.view != PROBLEMS or rows is None or rows.number is None:
            return None
        return self.problem_rows.row(rows.number)


_LOOK_SECONDS: Final = 1.0
"""seconds between checks for the terminal"""
_END_SECONDS: Final = 3.0
"""seconds for an orderly exit after the terminal is gone"""


def end_with_terminal(browser: App[None]) -> None:
    """End the browser in order on a signal or when its terminal is gone."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        browser.exit(return_code=ExitStatus.TERMINATED)

    def watch() -> None:
        # If SIGHUP is ignored (`nohup`), nothing else signals that the terminal is gone.
        while os.isatty(0):
            time.sleep(_LOOK_SECONDS)
        if not loop.is_closed():
            loop.call_soon_threadsafe(end)
        # Textual's threads can deadlock now, so an orderly exit may never come.
        time.sleep(_END_SECONDS)
        remove_all()
        os._exit(ExitStatus.TERMINATED)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end)
    threading.Thread(target=watch, name="rmqtool-terminal", daemon=True).start()
