"""The lists of the screen, with their filters and orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from analytics.diagnosis.problem import Problem

from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES
from ...summary.verdict import LABELS
from ...ui.columns import LineColumn
from ...ui.common_options import Order
from ...ui.console import one_line
from ...ui.figures import clock, count
from ..model.columns import TIMELINES, line_columns, sort_column
from ..model.expressions import test_of_text
from ..model.listing import Listing, ListOrder
from ..model.session import BrowseSession

PROBLEMS: Final = "problems"
SUMMARY: Final = "summary"
VIEWS: Final = (EXCHANGES, MESSAGES, CONNECTIONS, PROBLEMS, SUMMARY)
"""views in the order of their keys, from 1"""
TABLES: Final = (EXCHANGES, MESSAGES, CONNECTIONS)
SORTS: Final = ("", "time", "latency", "size")
"""sort orders that `s` cycles through"""
NOT_SEEN: Final = (-1, -1, -1, -1)
"""a value that was not shown yet"""


class TableView:
    """A table of the session as a list."""

    def __init__(self, session: BrowseSession, table: str, columns: Sequence[str]) -> None:
        self.table = table
        self.store = session.store(table)
        self.listing = Listing(self.store, TIMELINES[table], lambda: session.is_reading)
        self.filter = ""
        """current filter expression"""
        self.before: list[str] = []
        """previous filters"""
        self.usual_sort = "time" if session.is_by_time else ""
        self.sort = self.usual_sort
        """sort order; empty: arrival order"""
        self.descending = False
        self.columns = list(columns)
        """headings of the columns; empty: the defaults"""
        self.marks: set[int] = set()
        self.only_marked = False
        self.seen = NOT_SEEN
        """number of the first row, and counts of rows, filtered rows, and sorted rows, as shown"""
        if self.sort:
            self.apply()

    def sort_by(self, order: Order) -> None:
        """List in this order, the slowest first by latency."""
        self.sort = "" if order is Order.completion else str(order)
        self.descending = order is Order.latency
        self.apply()

    def choose(self, text: str, keep: bool = True) -> None:
        """List the rows that match an expression; raise WhereError if it is invalid.

        `keep`: keep the previous filter in the history.
        """
        test_of_text(text, self.table)
        if keep and text != self.filter:
            self.before.append(self.filter)
            del self.before[:-100]
        self.filter = text
        self.apply()

    def apply(self) -> None:
        """List again after a change of filter or order."""
        test = test_of_text(self.filter, self.table)
        order = None
        if self.sort:
            column, by_time = sort_column(self.table, self.sort), self.sort == "time"
            order = ListOrder(column, self.descending, by_time and not self.descending)
        self.listing.choose(test, order, frozenset(self.marks) if self.only_marked else None)

    def line_columns(self) -> list[LineColumn[Any]]:
        """Return the shown columns."""
        return line_columns(self.table, self.columns)


class ProblemRows:
    """Problems as a list."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def __len__(self) -> int:
        return len(self.problems)

    def number_at(self, place: int) -> int | None:
        """Return the number of the problem at a position."""
        return place if 0 <= place < len(self.problems) else None

    def place_of(self, number: int) -> int:
        """Return the position of a problem."""
        return number

    def row(self, number: int) -> Problem | None:
        """Return a problem."""
        return self.problems[number] if number < len(self.problems) else None


def _title(problem: Problem) -> str:
    follows = "└ " if problem.consequence_of is not None else ""
    return follows + one_line(problem.title)


PROBLEM_COLUMNS: Final[list[LineColumn[Problem]]] = [
    LineColumn(
        "SEVERITY", lambda p: LABELS[p.severity][0], 1, 8, 9, style=lambda p: LABELS[p.severity][1]
    ),
    LineColumn("FIRST", lambda p: clock(p.first_time), 3, 12, 12),
    LineColumn("TIMES", lambda p: count(p.count), 4, 5, 9, right=True),
    LineColumn("PROBLEM", _title, 2, 30, 200),
    LineColumn("RULE", lambda p: p.rule, 8, 12, 32),
]
