"""The actions of the keys on the lists, and the jumps between lists, problems, and traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from textual.timer import Timer

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import Evidence, Problem
from dissectors.quantities import counted
from dissectors.where.filter import WhereError

from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES
from ...diagnose.text import problem_facts
from ...summary.verdict import problem_line
from ...summary.watch import LOOK, SHARE
from ...ui.console import one_line, wrapped
from ..model.columns import COLUMNS_OF, field_of
from ..model.detail import Detail, detail_of, detail_of_row, life_lines, talk_lines
from ..model.expressions import (
    Offer,
    fields_of,
    joined,
    of_cell,
    of_range,
    of_row,
    offer,
    test_of_text,
    without_range,
)
from .app import Screens
from .details import BODIES, FIELDS, LIFE, SIDES, TALK
from .dialogs import TextDialog, help_lines
from .filter_line import FilterLine
from .lines_view import LinesView
from .tables import PROBLEMS, SORTS, SUMMARY, TableView
from .timeline_strip import TimelineStrip

EMPTY_MEANS: Final = ("filter", "search", "columns")
"""purposes for which an empty line is valid: no filter, no search, default columns"""
MOST_NOTIFIED: Final = 2
"""most notifications of problems at a time"""


class Browser(Screens):
    """A browser of lists with their details."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.searched = ""
        self._finding: Timer | None = None
        self.purpose = "filter"
        self._is_working = False
        self._when_listed: Timer | None = None
        self._judged = -1
        self._next_look = 0.0
        self._story = 0
        self._evidence = -1
        self._known: set[tuple[str, object]] = set()

    # -- views ------------------------------------------------------------------------------------

    def action_view(self, view: str) -> None:
        """Switch to a view."""
        self.show_view(view)

    def action_other_pane(self) -> None:
        """Move the focus to the details, or back."""
        if self.screen is not self.main:
            return
        if self.focused is not None and self.details in self.focused.ancestors:
            self.action_to_list()
        else:
            self.detail_now()
            self.details.focus_content()

    def action_toggle_details(self) -> None:
        """Toggle the details."""
        self.main.query_one("#body").toggle_class("alone")
        self.action_to_list()

    def action_to_list(self) -> None:
        """Move the focus to the list."""
        self.main.query_one(f"#{self.view}").focus()

    def action_follow(self) -> None:
        """Toggle following the last row."""
        if self.rows is not None:
            self.rows.follow = not self.rows.follow
            self.rows.update_rows()
            self.say("following" if self.rows.follow else "not following")

    def action_pause(self) -> None:
        """Pause or resume the display."""
        self.paused = not self.paused
        self.say("paused" if self.paused else "")

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(TextDialog("Keys", help_lines()))

    def action_theme(self) -> None:
        """Toggle dark and light colours."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    # -- filter -----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the filter line."""
        table = self.table
        if table is None:
            self.say("filters apply only to exchanges, messages, and connections")
            return
        name = table.table
        self.purpose = "filter"
        self.line.check = lambda text: test_of_text(text, name)
        seen = self.session.seen[name]
        self.line.offers = lambda text: offer(text, name, seen.values)
        self.line.open(table.filter, "filter: latency > 50ms and topic == …")

    def ask(
        self, purpose: str, placeholder: str, text: str, words: list[str] | None = None
    ) -> None:
        """Ask for input; `words`: completions."""
        self.purpose = purpose
        self.line.check = lambda _: None

        def offers(typed: str) -> Offer:
            start = typed.rfind(" ") + 1
            last = typed[start:].lower()
            return Offer(start, [word for word in words or () if last and last in word.lower()])

        self.line.offers = offers
        self.line.open(text, placeholder)

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        """Handle the typed text."""
        self.line.shut()
        self.action_to_list()
        does = self.purposes().get(self.purpose)
        if does is not None and (event.text or self.purpose in EMPTY_MEANS):
            does(event.text)

    def purposes(self) -> dict[str, Callable[[str], None]]:
        """Return the handler of typed text, by its purpose."""
        return {"filter": self.filter_by, "search": self._search}

    def on_filter_line_left(self) -> None:
        """Cancel the input."""
        self.line.shut()
        self.action_to_list()

    def filter_by(self, text: str, view: str | None = None) -> None:
        """List the rows that match an expression, in this view or another."""
        if view is not None and view != self.view:
            self.show_view(view)
        table = self.table
        if table is None:
            return
        try:
            table.choose(text)
        except WhereError as error:
            self.say(f"{error.reason}")
            return
        self.said = ""
        self.refresh_list()

    def action_clear_filter(self) -> None:
        """List all."""
        table = self.table
        if table is not None:
            table.only_marked = False
            self.filter_by("")

    def action_filter_before(self) -> None:
        """Return to the previous filter."""
        table = self.table
        if table is not None and table.before:
            text = table.before.pop()
            with suppress(WhereError):
                table.choose(text, keep=False)
            self.refresh_list()

    def action_only(self, wanted: bool) -> None:
        """Filter by the value of the cell, or exclude it."""
        table, rows = self.table, self.rows
        if table is None or rows is None or rows.number is None or rows.column is None:
            return
        row = table.listing.row(rows.number)
        name = field_of(table.table, rows.column.title)
        field = fields_of(table.table).find(name)
        if row is None or field is None:
            return
        self.filter_by(joined(table.filter, of_row(field, row, wanted)))

    def action_conversation(self) -> None:
        """List the rows of this conversation."""
        table, row = self.table, self.chosen_row()
        if table is not None and row is not None:
            self.filter_by(joined(table.filter, f"conversation == {row.conversation}"))

    def chosen_row(self) -> Any:
        """Return the selected row of the table, or None."""
        table, rows = self.table, self.rows
        if table is None or rows is None or rows.number is None:
            return None
        return table.listing.row(rows.number)

    # -- search -----------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Open the search line."""
        if self.table is not None:
            self.ask("search", "search in all columns", "")

    def _search(self, text: str) -> None:
        self.searched = text
        self.action_again(1)

    def action_again(self, by: int) -> None:
        """Move to the next or previous match."""
        table, rows = self.table, self.rows
        if table is None or rows is None or not self.searched:
            return
        wanted = self.searched.casefold()
        names = [c.name for c in COLUMNS_OF[table.table] if c.type in ("string", "list")]

        def holds(row: object) -> bool:
            return any(wanted in str(getattr(row, name) or "").casefold() for name in names)

        self.find_row(table, holds, rows.cursor + by, by > 0)

    def find_row(
        self, table: TableView, test: Callable[[object], bool], start: int, forward: bool
    ) -> None:
        """Search in steps, so that keys still work."""
        if self._finding is not None:
            self._finding.stop()
        steps = table.listing.find(test, start, forward)
        self.say("searching …")

        def look() -> None:
            if self.is_mounted_fully:
                self._look_on(steps, table)

        self._finding = self.set_interval(0.005, look)

    def _look_on(self, steps: Iterator[int | None], table: TableView) -> None:
        place = None
        ended = True
        for _, place in zip(range(8), steps, strict=False):
            ended = False
            if place is not None:
                break
        if place is None and not ended:
            return
        if self._finding is not None:
            self._finding.stop()
            self._finding = None
        if place is None:
            self.say(f"not found: {self.searched}")
        elif self.rows is not None and table is self.table:
            self.rows.go_to(place)
            self.say(f"found: {self.searched}")

    # -- order and marks --------------------------------------------------------------------------

    def action_sort(self) -> None:
        """Sort by the next column."""
        table = self.table
        if table is not None:
            place = SORTS.index(table.sort) if table.sort in SORTS else 0
            table.sort = SORTS[(place + 1) % len(SORTS)]
            table.descending = table.sort in ("latency", "size")
            table.apply()
            self.refresh_list()

    def action_reverse(self) -> None:
        """Reverse the order."""
        table = self.table
        if table is not None and table.sort:
            table.descending = not table.descending
            table.apply()
            self.refresh_list()

    def action_mark(self) -> None:
        """Toggle the mark of the row and move to the next."""
        table, rows = self.table, self.rows
        if table is not None and rows is not None and rows.number is not None:
            table.marks ^= {rows.number}
            rows.action_move(1)
            self.show_bar()

    def action_unmark(self) -> None:
        """Clear all marks."""
        table, rows = self.table, self.rows
        if table is not None and rows is not None:
            table.marks.clear()
            rows.refresh()
            self.show_bar()

    def action_only_marked(self) -> None:
        """Toggle between marked rows and all rows."""
        table = self.table
        if table is not None:
            table.only_marked = not table.only_marked and bool(table.marks)
            table.apply()
            self.refresh_list()

    # -- details ----------------------------------------------------------------------------------

    def action_mode(self, mode: str) -> None:
        """Switch the mode of the details."""
        self.details.mode = mode
        self.show_detail()

    def action_jump_side(self) -> None:
        """Toggle between request and response."""
        if self.details.mode == FIELDS:
            self.detail_now()
            self.details.jump_side()
            self.details.focus_content()

    def show_detail(self) -> None:
        """Show the selection."""
        if self.view == SUMMARY:
            return
        problem = self.problem()
        if self.view == PROBLEMS:
            if problem is None:
                self.details.show_lines("no problem", [])
            else:
                width = max(40, self.details.size.width - 4)
                facts = [wrapped(item.text, width, 12) for item in problem_facts(problem, True)]
                lines = [line for fact in facts for line in (*fact, "")]
                self.details.show_lines(problem.title, lines)
            return
        detail = self.detail()
        if detail is None:
            self.details.show_lines("nothing is listed", [])
            return
        mode = self.details.mode
        if mode == SIDES:
            self.details.show_sides(detail)
        elif mode == BODIES:
            self.details.show_lines(detail.title, detail.bodies)
        elif mode in (LIFE, TALK):
            self.show_more(mode, detail)
        else:
            self.details.show_detail(detail)

    def detail(self) -> Detail | None:
        """Return the details of the selected row."""
        table, rows, session = self.table, self.rows, self.session
        if table is None or rows is None or rows.number is None:
            return None
        number: int | None = rows.number
        row = table.listing.row(rows.number)
        if row is None:
            return None
        if table.table == MESSAGES:
            number = session.exchange_of_message(rows.number)
        if table.table != CONNECTIONS and number is not None and session.frames is not None:
            kept = session.frames.exchange(number)
            if kept is not None:
                return detail_of(kept, session.captures, self.plugins)
        name = "connection" if table.table == CONNECTIONS else table.table.removesuffix("s")
        title = f"{name} {rows.number}, conversation {row.conversation}"
        note = "decoded log: rows only, no frames" if table.table == EXCHANGES else ""
        return detail_of_row(row, COLUMNS_OF[table.table], title, note)

    @property
    def is_busy(self) -> bool:
        """Whether the screen is behind the keys or the reader."""
        return (
            super().is_busy
            or self._finding is not None
            or self._is_working
            or self._judged != self.session.version
            or self._when_listed is not None
        )

    # -- verdicts ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Show new rows and problems."""
        super().look()
        if not self.is_mounted_fully:
            return
        table = self.table
        if table is not None:
            self.main.query_one(TimelineStrip).show(table.listing.chosen.timeline)
        self.look_at_verdicts()

    def look_at_verdicts(self) -> None:
        """Diagnose again if there are new rows and it is due."""
        session = self.session
        wanted = self.view in (PROBLEMS, SUMMARY) or session.is_live or not session.is_reading
        if (
            self._judged == session.version
            or self._is_working
            or not wanted
            or time.monotonic() < self._next_look
        ):
            return
        self._is_working = True
        version, width = session.version, max(60, self.size.width - 2)
        self.run_worker(lambda: self._judge(version, width), thread=True)

    def _judge(self, version: int, width: int) -> None:
        """Compute diagnosis and summary in a thread."""
        begun = time.monotonic()
        diagnosis = self.session.diagnosis()
        lines = self.session.summary_lines(width, True)
        took = time.monotonic() - begun
        self.from_thread(self._show_verdict, version, diagnosis, lines, took)

    def _show_verdict(
        self, version: int, diagnosis: Diagnosis | None, lines: list[str], took: float
    ) -> None:
        self._is_working = False
        self._judged = version
        self._next_look = time.monotonic() + max(LOOK, SHARE * took)
        problems = [] if diagnosis is None else diagnosis.problems
        self.problem_rows.problems = problems
        self.list_of(PROBLEMS).update_rows()
        self.main.query_one(f"#{SUMMARY}", LinesView).show_lines(lines, keep=True)
        if self.view == PROBLEMS:
            self.detail_soon()
        new = {(problem.rule, problem.subject): problem for problem in problems}
        fresh = [problem for known, problem in new.items() if known not in self._known]
        self._known |= new.keys()
        if self.session.is_live:
            self._notify_problems(fresh)

    def _notify_problems(self, problems: Sequence[Problem]) -> None:
        """Show notifications of problems: the worst last, where the eye goes first."""
        if len(problems) > MOST_NOTIFIED:
            self.notify(f"{counted(len(problems) - MOST_NOTIFIED, 'more problem')}: press 4")
        for problem in reversed(problems[:MOST_NOTIFIED]):
            self.notify(one_line(problem_line(problem)), markup=False)

    def action_evidence(self) -> None:
        """Jump to the evidence of a problem, a message's exchange, or an exchange's connection."""
        problem, rows, row = self.problem(), self.rows, self.chosen_row()
        if problem is not None and problem.evidence:
            self._evidence = (self._evidence + 1) % len(problem.evidence)
            self._go_to_evidence(problem.evidence[self._evidence])
        elif rows is not None and row is not None and rows.number is not None:
            if self.view == MESSAGES:
                number = self.session.exchange_of_message(rows.number)
                if number is not None:
                    self._go_to_row(EXCHANGES, number)
            elif self.view == EXCHANGES:
                self.filter_by(f"conversation == {row.conversation}", CONNECTIONS)
            else:
                self.filter_by(f"conversation == {row.conversation}", EXCHANGES)

    def _go_to_evidence(self, evidence: Evidence) -> None:
        where = f"conversation == {evidence.conversation}"
        self.filter_by(where, EXCHANGES if evidence.packet is not None else CONNECTIONS)
        if evidence.packet is None:
            return
        packet = evidence.packet
        table = self.tables[EXCHANGES]
        self.searched = one_line(evidence.what)

        def holds(row: Any) -> bool:
            return packet in (row.request_packet, row.response_packet)

        self.when_listed(lambda: self.find_row(table, holds, 0, True))

    def _go_to_row(self, view: str, number: int) -> None:
        self.show_view(view)
        table, rows = self.tables[view], self.list_of(view)
        if not table.listing.has(number):
            self.filter_by("")
        self.when_listed(lambda: rows.go_to(table.listing.place_of(number)))

    def when_listed(self, then: Callable[[], object]) -> None:
        """Run a function once all rows are listed."""
        if self._when_listed is not None:
            self._when_listed.stop()

        def look() -> None:
            table = self.table
            if not self.is_mounted_fully:
                return
            if self._when_listed is not None and (table is None or table.listing.is_done):
                self._when_listed.stop()
                self._when_listed = None
                self.look()
                then()

        self._when_listed = self.set_interval(0.02, look)

    def action_attempts(self) -> None:
        """List all exchanges of the message: its attempts."""
        row = self.chosen_row()
        key = getattr(row, "unique_key", None)
        if key is None:
            self.say("this row has no unique key")
            return
        topic = getattr(row, "original_topic", None) or row.topic
        of_message = of_cell("unique_key", key, True)
        if topic is not None:  # a message forwarded to another topic has the same key
            of_message = joined(of_message, of_cell("topic", topic, True))
        self.filter_by(of_message, EXCHANGES)

    # -- stories ----------------------------------------------------------------------------------

    def show_more(self, mode: str, detail: Detail) -> None:
        """Show the trace of a message, or the conversation, computed in a thread."""
        row, rows, session = self.chosen_row(), self.rows, self.session
        if row is None or rows is None or rows.number is None:
            return
        self._story += 1
        story, number = self._story, rows.number
        if self.view == MESSAGES:
            number = session.exchange_of_message(number) or 0
        key = getattr(row, "unique_key", None) or getattr(row, "offset_msg_id", None) or ""
        if mode == LIFE and not key:
            self.details.show_lines("message trace", ["this row has no message ID"])
            return
        self.details.show_lines(detail.title, ["searching …"])
        width = self.details.size.width - 2

        def make() -> None:
            def wanted() -> bool:
                return story == self._story

            if mode == LIFE:
                lines = life_lines(session, key, width, wanted)
            else:
                lines = talk_lines(session, row.conversation, number, wanted)
            self.from_thread(show, lines)

        def show(lines: list[str]) -> None:
            if story == self._story:
                self.details.show_lines(detail.title, lines)

        self.run_worker(make, thread=True)

    # -- timeline ---------------------------------------------------------------------------------

    def action_timeline(self) -> None:
        """Move the focus to the timeline."""
        strip = self.main.query_one(TimelineStrip)
        if strip.has_focus:
            self.action_to_list()
        else:
            strip.focus()

    def on_timeline_strip_picked(self, event: TimelineStrip.Picked) -> None:
        """List the rows of a time range."""
        table = self.table
        if table is not None:
            field = field_of(table.table, "TIME")
            text = without_range(table.filter, field)
            self.filter_by(joined(text, of_range(field, event.first, event.end)))
            self.action_to_list()
