"""Executes relations on Spark: local, on a cluster, or at a Spark Connect server.

Rules: Spark analyses all that a frame is made of again with each step that is added to it, which
takes longer than the rest where there are few rows. So a kept relation is computed at once, and one
of at most `MOST_HERE` rows is then rows without a history, in one partition, which is grouped,
joined and sorted where it is: without an exchange, a query is one job of one task. This process has
these rows, too. A larger one stays in Spark's memory, and what is made of it is planned from there
(`lineage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ..schema import Described, schema_of
from ..sql.engine import OfGroup, OfGroups, made_by_group, made_by_groups, repeated_keys
from ..sql.relation import Relation, RelationText, statement_of
from .connect import is_connect
from .lineage import planned_from_memory
from .repeated_keys import PACKED, packed_keys, random_factor, told_keys

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_HERE: Final = 20_000
"""Rows of a kept relation of a large input that this process holds."""
_BATCH: Final = 4096


class SparkEngine:
    """A session of Spark."""

    def __init__(self, session: SparkSession, small: bool = False) -> None:
        """`small`: the input has so few rows that this process holds what is made of it."""
        self.session = session
        """the session"""
        self.small = small
        """whether all is held by this process: its tasks take longer to start than the work"""

    @property
    def is_distributed(self) -> bool:
        """Whether rows are with tasks, which fold them, and not with this process."""
        return not self.small

    def given(self, frame: DataFrame) -> Relation:
        """Return a frame as a relation."""
        return Relation(frame.columns, handle=frame)

    def frame(self, relation: Relation) -> DataFrame:
        """Return a relation as a frame."""
        if not relation.parts:
            return self._frame_of(relation)
        query = RelationText(relation)
        frames = {name: self._frame_of(one) for name, one in query.inputs.items()}
        # Spark fills in what stands in braces, so those of the text are doubled
        steps = [(name, _with_braces(text)) for name, text in query.steps]
        held = [(name, f"select * from {{{name}}}") for name in frames]
        return self.session.sql(statement_of([*held, *steps], _with_braces(query.last)), **frames)

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""
        return self.frame(relation).toArrow() if relation.rows is None else relation.rows

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""
        yield from self.rows(relation).to_batches(_BATCH)

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""
        return self.kept_frame(self.frame(relation))

    def kept_frame(self, frame: DataFrame) -> Relation:
        """Return a frame that is computed once, now, as a relation."""
        if self.small:
            return self._held(frame.toArrow(), frame.schema)
        kept = frame.persist()
        rows = kept.limit(MOST_HERE + 1).toArrow()
        if rows.num_rows <= MOST_HERE:
            kept.unpersist()
            return self._held(rows, frame.schema)
        return Relation(rows.schema.names, handle=_Kept(kept))

    def hold(self, rows: pyarrow.Table, columns: Sequence[Described] | None = None) -> Relation:
        """Return rows of this process as a relation; `columns` say their types to Spark."""
        return self._held(rows, None if columns is None else schema_of(columns))

    def close(self) -> None:
        """Leave the session to whoever started it."""

    def drop(self, relation: Relation) -> None:
        """Free what `keep` or `hold` keep."""
        if isinstance(relation.handle, _Kept):
            relation.handle.kept.unpersist()

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return what `make` gives for each group of rows with an equal `key`; null is a key."""
        if self.small:
            rows = self.rows(relation.sorted_by([f"`{key}`"]))
            return self.hold(made_by_group(rows, key, make, columns), columns)
        groups = self.frame(relation).groupBy(key)
        return self.kept_frame(groups.applyInArrow(make, schema_of(columns)))

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return what `make` gives for each `key`, of the rows of two relations that have it."""
        if self.small:
            one, two = (self.rows(each.sorted_by([f"`{key}`"])) for each in (relation, other))
            return self.hold(made_by_groups(one, two, key, make, columns), columns)
        groups = self.frame(relation).groupBy(key).cogroup(self.frame(other).groupBy(key))
        return self.kept_frame(groups.applyInArrow(make, schema_of(columns)))

    def repeated(self, relation: Relation) -> Relation:
        """Return each `key`, a whole number, that comes more than once or with `wrong`.

        Nearly every key is a group of one row, for which Spark takes three times as long as NumPy.
        """
        if self.small:
            return self.keep(repeated_keys(relation))
        pack = partial(packed_keys, factor=random_factor())
        packed = self.frame(relation).mapInArrow(pack, PACKED)
        return self.kept_frame(packed.groupBy("slot").applyInArrow(told_keys, "key long"))

    def _held(self, rows: pyarrow.Table, schema: StructType | None) -> Relation:
        return Relation(rows.schema.names, handle=_Held(rows, schema), rows=rows)

    def _frame_of(self, relation: Relation) -> DataFrame:
        handle = relation.handle
        if isinstance(handle, _Held):
            return handle.frame_in(self.session)
        return handle.planned if isinstance(handle, _Kept) else cast("DataFrame", handle)


class _Held:
    """Rows of this process, which Spark is given when it is first asked for them."""

    def __init__(self, rows: pyarrow.Table, schema: StructType | None) -> None:
        self._rows = rows
        self._schema = schema
        self._frame: DataFrame | None = None

    def frame_in(self, session: SparkSession) -> DataFrame:
        if self._frame is None:
            if (self._rows.num_rows and is_connect(session)) or self._schema is None:
                self._frame = session.createDataFrame(self._rows).coalesce(1)
            else:
                self._frame = session.createDataFrame(self._rows, self._schema).coalesce(1)
        return self._frame


class _Kept:
    """A frame in Spark's memory."""

    def __init__(self, kept: DataFrame) -> None:
        self.kept = kept
        self.planned = planned_from_memory(kept)
        """the same, planned from there"""


def _with_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
