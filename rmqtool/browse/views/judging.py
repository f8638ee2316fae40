"""Jumps between lists, verdicts, traces, and the timeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from textual.timer import Timer

from analytics.diagnosis.engine import Diagnosis
from analytics.diagnosis.problem import Evidence, Problem
from dissectors.quantities import counted

from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES
from ...summary.verdict import problem_line
from ...summary.watch import LOOK, SHARE
from ...ui.console import one_line
from ..model.columns import field_of
from ..model.detail import Detail
from ..model.expressions import joined, of_cell, of_range, without_range
from ..model.story import life_lines, talk_lines
from .browser import Browser
from .details import LIFE
from .lines_view import LinesView
from .tables import PROBLEMS, SUMMARY
from .timeline_strip import TimelineStrip

MOST_NOTIFIED: Final = 2
"""most notifications of problems at a time"""


class Judging(Browser):
    """A browser that reports problems and jumps to their evidence."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._is_working = False
        self._when_listed: Timer | None = None
        self._judged = -1
        self._next_look = 0.0
        self._story = 0
        self._evidence = -1
        self._known: set[tuple[str, object]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether the screen is behind the keys or the reader."""
        return (
            super().is_busy
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
        self.when_listed(lambda: rows.go_to(table.place_of(number)))

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
