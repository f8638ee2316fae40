"""What reads files of rows for an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ..schema import Described
from ..sql.engine import SqlEngine
from ..sql.relation import Relation
from .inputs import Input


class LineRows(NamedTuple):
    """Rows of JSON lines, and what was left out."""

    rows: Relation
    """the rows"""
    broken: int
    """lines that are no rows"""
    example: str
    """the first of them"""


class Reader(Protocol):
    """Reads files of rows; a table has the columns that are asked for, and `schema.SOURCE`."""

    @property
    def engine(self) -> SqlEngine:
        """What executes relations over the rows."""

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; a column that they do not have is null."""

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Return the tables of captures, by name of a field of `ReportInput`."""
