"""What is derived from an input and asked for more than once: kept for as long as it is needed.

Rules: what is kept follows from the input and the options alone, so whoever finds it made gets what
it would have made itself. A report's own frames are let go when its tables are computed; what has a
name among `Report.shares` stays until the last report that names it (`analytics.result.built`).
Spark analyses all that a frame is made of again with each step that is added to it. Of a small
input that takes longer than everything else, so there a kept frame is computed at once, and is
rows without a history. They are one partition, which is grouped, joined and sorted where it is:
without an exchange, a query is one job of one task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")

OWN = ""
"""The share of what one report alone asks for."""


class Kept:
    """The frames in Spark's memory that belong to one input, and what was made of it."""

    def __init__(self, small: bool = False) -> None:
        """`small`: the input has so few rows that this process can hold what is made of it."""
        self.small = small
        self._frames: dict[str, list[DataFrame]] = {}
        self._made: dict[str, tuple[Hashable, object]] = {}
        self._inputs: list[tuple[DataFrame, pyarrow.Table]] = []

    def frame(self, frame: DataFrame, share: str = OWN) -> DataFrame:
        """Return a frame that is computed once: a small one now, others when first asked for."""
        if self.small:
            return self.in_one_piece(frame.sparkSession, frame.toArrow(), frame.schema)
        kept = frame.persist()
        self._frames.setdefault(share, []).append(kept)
        return kept

    def input(self, frame: DataFrame) -> DataFrame:
        """Return a table of the input: a small one is read now, and never again."""
        if not self.small:
            return frame
        rows = frame.toArrow()
        read = self.in_one_piece(frame.sparkSession, rows, frame.schema)
        self._inputs.append((read, rows))
        return read

    @staticmethod
    def in_one_piece(session: SparkSession, rows: pyarrow.Table, schema: StructType) -> DataFrame:
        """Return rows that this process holds as a frame of one partition."""
        return session.createDataFrame(rows, schema).coalesce(1)

    def rows(self, frame: DataFrame) -> pyarrow.Table:
        """Return the rows of a frame; those of a table that was read are here already."""
        rows: pyarrow.Table
        for one, rows in self._inputs:
            if one is frame:
                return rows
        rows = frame.toArrow()
        return rows

    def once(self, share: str, of: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, or returned when it was last asked for with an equal `of`."""
        found = self._made.get(share)
        if found is None or found[0] != of:
            found = self._made[share] = (of, make())
        return cast(T, found[1])

    def let_go(self, but: Collection[str] = ()) -> None:
        """Free the memory of all frames but those of some shares."""
        for share in [*{**self._frames, **self._made}]:
            if share not in but:
                self._made.pop(share, None)
                for frame in self._frames.pop(share, []):
                    frame.unpersist()
