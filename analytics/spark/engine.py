"""Execute relations on Spark: local, on a cluster, or on a Spark Connect server.

Rules: a Spark query takes seconds whatever its size. Kept relations are therefore computed at once,
and this process holds those with at most `MOST_HERE` rows and `MOST_VALUES` values; relations made
only from such rows are computed here by DuckDB, from the same text. All others are Spark queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from dissectors.foreign import natural_of

from ..schema import Described, schema_of
from ..sql.engine import OfBatches, OfGroup, OfGroups, made_by_groups, made_of_all
from ..sql.local import BATCH, LocalEngine, with_zones
from ..sql.relation import Relation, RelationText, statement_of
from .packed_rows import PACKED as PACKED_ROWS
from .packed_rows import SLOT, packed_rows, unpacked
from .repeated_keys import MOST_SLOTS, PACKED, keys_of_slot, packed_keys, random_factor

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

MOST_HERE: Final = 1_000_000
"""Most rows of a kept relation of a large input that this process holds."""
MOST_VALUES: Final = 10_000_000
"""Most values of one: about a hundred megabytes."""
_ASKED: Final = 20_000
"""Rows that are asked for before they are counted: nearly all kept relations have fewer."""
_TASK_SLOTS: Final = 4
"""Slots per shuffle partition: enough for tasks with equal work."""
MOST_SENT: Final = 2_000_000
"""Most rows to broadcast: about ten megabytes, enough for the keys of two overlapping captures."""


class SparkEngine:
    """A Spark session, and DuckDB for the rows of this process."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        """the Spark session"""
        self._here = LocalEngine()
        self._sent: dict[str, DataFrame] = {}

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are distributed over tasks."""
        return True

    def given(self, frame: DataFrame, rows: int | None = None) -> Relation:
        """Return a frame as a relation; `rows` is its row count, or None if unknown."""
        return Relation(frame.columns, handle=frame, is_large=rows is None or rows > MOST_SENT)

    def frame(self, relation: Relation) -> DataFrame:
        """Return a relation as a frame."""
        if not relation.parts:
            return self._frame_of(relation)
        query = RelationText(relation)
        frames = {
            name: self._frame_of(relation_read) for name, relation_read in query.inputs.items()
        }
        # Spark substitutes text in braces, so double those of the query
        steps = [(name, _with_braces(text)) for name, text in query.steps]
        held = [(name, f"select * from {{{name}}}") for name in frames]
        return self.session.sql(statement_of([*held, *steps], _with_braces(query.last)), **frames)

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""
        if relation.is_here:
            return self._here.rows(relation)
        rows: pyarrow.Table = self.frame(relation).toArrow()
        return rows

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""
        yield from self.rows(relation).to_batches(BATCH)

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""
        if relation.is_here:
            return self._here.keep(relation)
        return self.kept_frame(self.frame(relation))

    def kept_frame(self, frame: DataFrame) -> Relation:
        """Return a frame that is computed once, now, as a relation."""
        # drops the frame's query plan, which Spark would analyze with each query, and twice for
        # each join: after a few such steps that takes hours
        kept = frame.localCheckpoint(eager=False)
        asked = min(_ASKED, MOST_HERE)
        rows = kept.limit(asked + 1).toArrow()
        if rows.num_rows > asked:
            count = kept.count()
            if count > MOST_HERE or count * len(kept.columns) > MOST_VALUES:
                return self.given(kept, count)
            rows = kept.toArrow()
        return self._here.hold(rows)

    def hold(self, rows: pyarrow.Table) -> Relation:
        """Return rows of this process as a relation."""
        return self._here.hold(rows)

    def close(self) -> None:
        """Free the rows of this process; the session stays with its owner."""
        self._here.close()

    def drop(self, relation: Relation) -> None:
        """Drop the result of `keep` or `hold`; Spark frees a frame without references."""
        if relation.is_here:
            self._here.drop(relation)
            self._sent.pop(str(relation.handle), None)

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return the result of `make` for the groups of rows with an equal `key`; null is a key."""
        if relation.is_here:
            return self._here.by_group(relation, key, make, columns)
        # `applyInArrow` would call `make` once per group, which takes longer than most groups
        return self.folded(relation, key, partial(made_of_all, make=make), columns)

    def folded(
        self, relation: Relation, key: str, fold: OfBatches, columns: Sequence[Described]
    ) -> Relation:
        """Return the result of `fold` for some groups of equal `key` each."""
        if relation.is_here:
            return self._here.folded(relation, key, fold, columns)
        placed = self.frame(relation.adding({SLOT: self._slot_of(key)}))
        # All rows of a key get the same slot, so the task of a slot has whole groups.
        packed = placed.mapInArrow(partial(packed_rows, slots=self._slots()), PACKED_ROWS)
        fold_packed = partial(_folded, fold=fold)
        return self.kept_frame(packed.repartition(SLOT).mapInArrow(fold_packed, schema_of(columns)))

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return the result of `make` for each `key`, from its rows in two relations."""
        if relation.is_here and other.is_here:
            return self._here.by_groups(relation, other, key, make, columns)

        def made(first: pyarrow.Table, second: pyarrow.Table) -> pyarrow.Table:
            one, two = first.sort_by(key), second.sort_by(key)
            return made_by_groups(one, two, key, make, columns)

        # a call per group would take longer than most groups
        slots = [
            self.frame(rows.adding({SLOT: self._slot_of(key)})).groupBy(SLOT)
            for rows in (relation, other)
        ]
        together = slots[0].cogroup(slots[1])
        return self.kept_frame(together.applyInArrow(made, schema_of(columns)))

    def repeated(self, relation: Relation) -> Relation:
        """Return each integer `key` that is repeated or has `wrong` set."""
        if relation.is_here:
            return self._here.repeated(relation)
        # Nearly every key is a group of one row, for which Spark takes three times as long as
        # NumPy.
        pack = partial(packed_keys, factor=random_factor(), slots=self._slots())
        packed = self.frame(relation).mapInArrow(pack, PACKED)
        return self.kept_frame(packed.groupBy("slot").applyInArrow(keys_of_slot, "key long"))

    def _slot_of(self, key: str) -> str:
        """Return the SQL of the slot of a row."""
        return f"cast(pmod(xxhash64(`{key}`), {self._slots()}) as int)"

    def _slots(self) -> int:
        """Return the number of slots that all groups are divided into, some for each task."""
        partitions = str(self.session.conf.get("spark.sql.shuffle.partitions"))
        return min(_TASK_SLOTS * (natural_of(partitions) or 1), MOST_SLOTS)

    def _frame_of(self, relation: Relation) -> DataFrame:
        """Return an input of a relation as a frame; rows of this process are sent to Spark once."""
        if relation.rows is None:
            return cast("DataFrame", relation.handle)
        name = str(relation.handle)
        if name not in self._sent:
            rows = with_zones(relation.rows)
            # One partition: few rows in many would mean as many tasks in each query that reads
            # them.
            self._sent[name] = self.session.createDataFrame(rows).coalesce(1)
        return self._sent[name]


def _folded(
    batches: Iterable[pyarrow.RecordBatch], fold: OfBatches
) -> Iterator[pyarrow.RecordBatch]:
    return fold(unpacked(batches))


def _with_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
