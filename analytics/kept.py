"""What is derived from an input and asked for more than once: kept for as long as it is needed.

Rules: what is kept follows from the input and the options alone, so whoever finds it made gets what
it would have made itself. A report's own relations are let go when its tables are computed; what
has a name among `Report.shares` stays until the last report that names it (`result.built`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from .schema import Described, arrow_rows
from .sql.engine import OfGroup, OfGroups, SqlEngine
from .sql.expressions import text
from .sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

OWN = ""
"""The share of what one report alone asks for."""


class Kept:
    """The relations that an engine keeps for one input, and what was made of it."""

    def __init__(self, engine: SqlEngine) -> None:
        self.engine = engine
        """what executes relations"""
        self._relations: dict[str, list[Relation]] = {}
        self._made: dict[str, tuple[Hashable, object]] = {}

    def frame(self, relation: Relation, share: str = OWN) -> Relation:
        """Return a relation that is computed once, now."""
        return self._noted(self.engine.keep(relation), share)

    def here(
        self, rows: Sequence[Mapping[str, object]], columns: Sequence[Described], share: str = OWN
    ) -> Relation:
        """Return rows that this process has made as a relation; times are µs since the epoch."""
        return self._noted(self.engine.hold(arrow_rows(rows, columns)), share)

    def empty(self, columns: Sequence[Described], share: str = OWN) -> Relation:
        """Return a relation without rows."""
        return self.here([], columns, share)

    def by_group(
        self,
        relation: Relation,
        key: str,
        make: OfGroup,
        columns: Sequence[Described],
        share: str = OWN,
    ) -> Relation:
        """Return what `make` gives for each group of rows, computed now."""
        return self._noted(self.engine.by_group(relation, key, make, columns), share)

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
        share: str = OWN,
    ) -> Relation:
        """Return what `make` gives for each key of two relations, computed now."""
        return self._noted(self.engine.by_groups(relation, other, key, make, columns), share)

    def repeated(self, relation: Relation, share: str = OWN) -> Relation:
        """Return each `key` that comes more than once or with `wrong`, computed now."""
        return self._noted(self.engine.repeated(relation), share)

    def is_empty(self, relation: Relation) -> bool:
        """Return whether it is known, without a query, that a relation has no rows."""
        return relation.rows is not None and not relation.rows.num_rows

    def part(self, relation: Relation, column: str, value: str) -> Relation:
        """Return the rows with a text in a column; without a query where they are here."""
        if relation.rows is None:
            return relation.where(f"`{column}` = {text(value)}")
        import pyarrow.compute

        chosen = relation.rows.filter(pyarrow.compute.field(column) == value)
        return self._noted(self.engine.hold(chosen), OWN)

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation; those that this process has are not read again."""
        return self.engine.rows(relation)

    def once(self, share: str, of: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, or returned when it was last asked for with an equal `of`."""
        found = self._made.get(share)
        if found is None or found[0] != of:
            found = self._made[share] = (of, make())
        return cast(T, found[1])

    def let_go(self, but: Collection[str] = ()) -> None:
        """Free the memory of all relations but those of some shares."""
        for share in [*{**self._relations, **self._made}]:
            if share not in but:
                self._made.pop(share, None)
                for relation in self._relations.pop(share, []):
                    self.engine.drop(relation)

    def _noted(self, relation: Relation, share: str) -> Relation:
        self._relations.setdefault(share, []).append(relation)
        return relation
