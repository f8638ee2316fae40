"""Protocol of readers, which read files of rows for an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ..schema import Described
from ..sql.engine import SqlEngine
from ..sql.relation import Relation
from .inputs import Input


class LineRows(NamedTuple):
    """Rows of JSON lines, and the number of skipped lines."""

    rows: Relation
    """the rows"""
    broken: int
    """number of lines that are not rows"""
    example: str
    """the first of these lines"""


class Reader(Protocol):
    """Reads files of rows; a table has the requested columns and `schema.SOURCE`."""

    @property
    def engine(self) -> SqlEngine:
        """Engine that executes relations over the rows."""

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; missing columns are null."""

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""

    def table(self, name: str, columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of a table of a Spark catalog; missing columns are null.

        `source` is the default for rows without one.
        """

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Return the tables of captures, by field name of `ReportInput`."""
