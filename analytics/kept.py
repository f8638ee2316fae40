"""Cache of relations derived from an input and used more than once.

Rules: a cached relation depends only on the input and the options, so it equals what the caller
would compute. A report's own relations are released when its tables are computed; shares named in
`Report.shares` stay until the last report that names them (`result.built`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from .errors import ReportError
from .schema import Described, arrow_rows
from .sql.engine import SqlEngine
from .sql.expressions import text
from .sql.relation import Relation
from .sql.windows import base_of, with_window

if TYPE_CHECKING:
    import pyarrow

    from .cells import CellTable, Counted

T = TypeVar("T")

OWN = ""
"""Share of relations used by one report alone."""


class Kept:
    """The relations that an engine keeps for one input, and cached values."""

    def __init__(self, engine: SqlEngine) -> None:
        self.engine = engine
        """engine that executes relations"""
        self.counted: Counted | None = None
        """cells used instead of rows, or written beside the tables"""
        self._relations: dict[str, list[Relation]] = {}
        self._made: dict[str, tuple[Hashable, object]] = {}

    def noted(self, relation: Relation, share: str = OWN) -> Relation:
        """Return a result of the engine, which is dropped when its share is released."""
        self._relations.setdefault(share, []).append(relation)
        return relation

    def frame(self, relation: Relation, share: str = OWN) -> Relation:
        """Return a relation that is computed once, now."""
        return self.noted(self.engine.keep(relation), share)

    def cells(self, table: CellTable, make: Callable[[], Relation]) -> Relation:
        """Return counted rows as cells, computed now, or the cells of other runs."""
        counted = self.counted
        if counted is None:
            return self.frame(make())
        if counted.merged is not None:
            return counted.merged[table.name]
        counts = self.frame(make())
        if table.name not in counted.found:
            counted.found[table.name] = self.rows(counts)
        return counts

    def cells_over_time(
        self,
        table: CellTable,
        rows: Relation,
        length_us: int,
        make: Callable[[Relation], Relation],
    ) -> Relation:
        """Return cells of rows counted by `make` in windows of their column `time`.

        Cells for other runs have short windows that longer ones are composed of. Raise ReportError
        if the windows of the read cells do not compose these.
        """
        # other runs may have other windows: cells have short ones that all of them are made of
        if self.counted is None:
            return self.frame(make(with_window(rows, "time", length_us)))
        cells = self.cells(table, lambda: make(with_window(rows, "time", base_of(length_us))))
        lengths = self.rows(cells.select("window_us").distinct()).column(0).to_pylist()
        for length in map(int, filter(None, lengths)):
            if length_us % length:
                raise ReportError(
                    f"the cells have windows of {length / 1e6:g} s",
                    f"--window must be a multiple, not {length_us / 1e6:g} s",
                )
        plain = cells.without("window_us").renamed({"window_start": "_time"})
        return with_window(plain, "_time", length_us).without("_time")

    @property
    def has_rows(self) -> bool:
        """Whether there are rows, and not only cells."""
        return self.counted is None or self.counted.merged is None

    def here(
        self, rows: Sequence[Mapping[str, object]], columns: Sequence[Described], share: str = OWN
    ) -> Relation:
        """Return rows made by this process as a relation; times are µs since the epoch."""
        return self.noted(self.engine.hold(arrow_rows(rows, columns)), share)

    def empty(self, columns: Sequence[Described], share: str = OWN) -> Relation:
        """Return a relation without rows."""
        return self.here([], columns, share)

    def is_empty(self, relation: Relation) -> bool:
        """Return whether a relation is known, without a query, to be empty."""
        return relation.rows is not None and not relation.rows.num_rows

    def part(
        self, relation: Relation, column: str, value: str, names: Sequence[str] = ()
    ) -> Relation:
        """Return the rows with a text in a column; without a query where they are here.

        `names` are the columns that are needed; none: all.
        """
        if relation.rows is None:
            return relation.where(f"`{column}` = {text(value)}")
        import pyarrow.compute

        # a filter by an expression would load Arrow's query engine
        is_chosen = pyarrow.compute.equal(relation.rows.column(column), pyarrow.scalar(value))
        chosen = relation.rows.select(names or relation.columns).filter(is_chosen)
        return self.noted(self.engine.hold(chosen), OWN)

    def parts(
        self, relation: Relation, column: str, names: Mapping[str, Sequence[str]]
    ) -> dict[str, Relation]:
        """Return `part` for each text of `names`, and let the whole go where it is here."""
        parts = {value: self.part(relation, column, value, some) for value, some in names.items()}
        if relation.rows is not None:
            self.engine.drop(relation)
            self._relations[OWN].remove(relation)
        return parts

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation; rows held by this process are not read again."""
        return self.engine.rows(relation)

    def once(self, share: str, of: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, cached for the share while `of` is equal."""
        entry = self._made.get(share)
        if entry is None or entry[0] != of:
            entry = self._made[share] = (of, make())
        return cast(T, entry[1])

    def release(self, but: Collection[str] = ()) -> None:
        """Free the memory of all relations except those of some shares."""
        for share in [*{**self._relations, **self._made}]:
            if share not in but:
                self._made.pop(share, None)
                for relation in self._relations.pop(share, []):
                    self.engine.drop(relation)
