"""What is derived from an input and asked for more than once: kept for as long as it is needed.

Rules: what is kept follows from the input and the options alone, so whoever finds it made gets what
it would have made itself. A report's own frames are let go when its tables are computed; what has a
name among `Report.shares` stays until the last report that names it (`analytics.result.built`).
Spark analyses all that a frame is made of again with each step that is added to it, which takes
longer than the rest where there are few rows. So a kept frame is computed at once, and one of at
most `MOST_HERE` rows is then rows without a history, in one partition, which is grouped, joined and
sorted where it is: without an exchange, a query is one job of one task. This process has these
rows, too, and knows without a query whether there are any. A larger one stays in Spark's memory,
and what is made of it is planned from there (`spark.lineage`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .schema import Described, arrow_schema_of, schema_of
from .spark.connect import is_connect
from .spark.expressions import text
from .spark.lineage import planned_from_memory

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")

OWN = ""
"""The share of what one report alone asks for."""
MOST_HERE = 20_000
"""Rows of a kept frame of a large input that this process holds."""


def in_one_piece(session: SparkSession, rows: pyarrow.Table, schema: StructType) -> DataFrame:
    """Return rows that this process holds as a frame of one partition."""
    if not is_connect(session):
        return cast("DataFrame", _Unmade(session, rows, schema))
    if not rows.num_rows:
        return session.createDataFrame(rows, schema).coalesce(1)
    import pyarrow

    # without metadata of columns, which a schema brings: Sail joins no frames that have it
    plain = pyarrow.schema([field.remove_metadata() for field in rows.schema])
    return session.createDataFrame(rows.cast(plain)).coalesce(1)


class _Unmade:
    """A frame that Spark is given when it is first asked for something: most never are."""

    def __init__(self, session: SparkSession, rows: pyarrow.Table, schema: StructType) -> None:
        self.sparkSession = session
        self.schema = schema
        self._rows = rows
        self._frame: DataFrame | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of every object: by copy, by pickle
            raise AttributeError(name)
        if self._frame is None:
            self._frame = self.sparkSession.createDataFrame(self._rows, self.schema).coalesce(1)
        return getattr(self._frame, name)


class Kept:
    """The frames in Spark's memory that belong to one input, and what was made of it."""

    def __init__(self, small: bool = False) -> None:
        """`small`: the input has so few rows that this process can hold what is made of it."""
        self.small = small
        self._frames: dict[str, list[DataFrame]] = {}
        self._here: dict[str, list[tuple[DataFrame, pyarrow.Table]]] = {}
        self._made: dict[str, tuple[Hashable, object]] = {}
        self._inputs: list[tuple[DataFrame, pyarrow.Table]] = []

    def frame(self, frame: DataFrame, share: str = OWN) -> DataFrame:
        """Return a frame that is computed once, now."""
        if self.small:
            return self.here(frame.sparkSession, frame.toArrow(), frame.schema, share)
        kept = frame.persist()
        rows = kept.limit(MOST_HERE + 1).toArrow()
        if rows.num_rows <= MOST_HERE:
            kept.unpersist()
            return self.here(frame.sparkSession, rows, frame.schema, share)
        self._frames.setdefault(share, []).append(kept)
        return planned_from_memory(kept)

    def here(
        self, session: SparkSession, rows: pyarrow.Table, schema: StructType, share: str = OWN
    ) -> DataFrame:
        """Return rows that this process has as a frame of one partition."""
        frame = in_one_piece(session, rows, schema)
        self._here.setdefault(share, []).append((frame, rows))
        return frame

    def empty(
        self, session: SparkSession, columns: Sequence[Described], share: str = OWN
    ) -> DataFrame:
        """Return a frame without rows."""
        rows = arrow_schema_of(columns).empty_table()
        return self.here(session, rows, schema_of(columns), share)

    def input(self, frame: DataFrame) -> DataFrame:
        """Return a table of the input: a small one is read now, and never again."""
        if not self.small or any(one is frame for one, _ in self._inputs):
            return frame
        return self.put(frame.sparkSession, frame.toArrow(), frame.schema)

    def put(self, session: SparkSession, rows: pyarrow.Table, schema: StructType) -> DataFrame:
        """Return a table of the input whose rows this process has."""
        read = in_one_piece(session, rows, schema)
        self._inputs.append((read, rows))
        return read

    def rows_here(self, frame: DataFrame) -> pyarrow.Table | None:
        """Return the rows of a frame where this process has them."""
        for held in (self._inputs, *self._here.values()):
            for one, rows in held:
                if one is frame:
                    return rows
        return None

    def is_empty(self, frame: DataFrame) -> bool:
        """Return whether it is known, without a query, that a frame has no rows."""
        rows = self.rows_here(frame)
        return rows is not None and not rows.num_rows

    def part(self, frame: DataFrame, column: str, value: str) -> DataFrame:
        """Return the rows with a text in a column; without a query where they are here."""
        rows = self.rows_here(frame)
        if rows is None:
            return frame.where(f"`{column}` = {text(value)}")
        import pyarrow.compute

        chosen = rows.filter(pyarrow.compute.field(column) == value)
        return self.here(frame.sparkSession, chosen, frame.schema)

    def rows(self, frame: DataFrame) -> pyarrow.Table:
        """Return the rows of a frame; those that this process has are not read again."""
        rows = self.rows_here(frame)
        return frame.toArrow() if rows is None else rows

    def once(self, share: str, of: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, or returned when it was last asked for with an equal `of`."""
        found = self._made.get(share)
        if found is None or found[0] != of:
            found = self._made[share] = (of, make())
        return cast(T, found[1])

    def let_go(self, but: Collection[str] = ()) -> None:
        """Free the memory of all frames but those of some shares."""
        for share in [*{**self._frames, **self._here, **self._made}]:
            if share not in but:
                self._made.pop(share, None)
                self._here.pop(share, None)
                for frame in self._frames.pop(share, []):
                    frame.unpersist()
