"""Executes relations in this process: DuckDB over Arrow tables and Parquet files.

Rules: no network, no files but the Parquet files of the input, no settings to be made. A time is
one without a zone in DuckDB, and means UTC. What is kept is an Arrow table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..errors import reason_here
from ..schema import SOURCE, Described
from .dialect import MACROS, SETTINGS, for_duckdb
from .engine import OfGroup, OfGroups, made_by_group, made_by_groups, repeated_keys
from .relation import Relation, RelationText, statement_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow

BATCH: Final = 4096
"""Rows of a batch."""
_CLOSED: Final = (
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set python_enable_replacements = false",
    "set enable_external_access = false",
)
"""Statements after which nothing but the files of the input can be read."""
_TYPES: Final = {
    "string": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "time": "TIMESTAMP",
    "list": "VARCHAR[]",
}
"""Word in a column's description -> type in DuckDB."""


class LocalEngine:
    """DuckDB in this process."""

    def __init__(self, files: Sequence[str] = (), small: bool = True) -> None:
        """`files` are the Parquet files that may be read; `small`: rows are held, none is read."""
        self._small = small
        self._files = list(files)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._count = 0

    @property
    def is_distributed(self) -> bool:
        """Whether rows are with tasks: no."""
        return False

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""
        if relation.rows is not None:
            return relation.rows
        try:
            found = self._connected().sql(self._statement(relation)).to_arrow_table()
        except Exception as error:
            raise reason_here(error) from error
        return _with_whole_numbers(found)

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""
        if relation.rows is not None:
            yield from relation.rows.to_batches(BATCH)
        else:
            yield from self._connected().sql(self._statement(relation)).to_arrow_reader(BATCH)

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""
        return self.hold(self.rows(relation))

    def hold(self, rows: pyarrow.Table) -> Relation:
        """Return rows of this process as a relation."""
        self._count += 1
        name = f"rows_{self._count}"
        self._connected().register(name, _without_zones(rows))
        return Relation(rows.schema.names, handle=name, rows=rows)

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files, read as far as a query needs them."""
        self._count += 1
        name = f"rows_{self._count}"
        there = self._types_in(files)
        chosen = [_column_of(column, there.get(column.name)) for column in columns]
        self._connected().execute(
            f"create view {name} as select {', '.join(chosen)}, {_text(source)} as {SOURCE}"
            f" from {_read(files)}"
        )
        return Relation([*(column.name for column in columns), SOURCE], handle=name)

    def _types_in(self, files: Sequence[str]) -> dict[str, str]:
        """Return the type of each column in some Parquet files."""
        found = self._connected().sql(f"select * from {_read(files)} limit 0")
        return dict(zip(found.columns, map(str, found.types), strict=True))

    def close(self) -> None:
        """Free all; the relations have no rows then."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def drop(self, relation: Relation) -> None:
        """Free what `keep` or `hold` keep."""
        self._connected().unregister(str(relation.handle))

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return what `make` gives for each group of rows with an equal `key`; null is a key."""
        batches = self.batches(relation.sorted_by([f"`{key}`"]))
        return self.hold(made_by_group(batches, key, make, columns))

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return what `make` gives for each `key`, of the rows of two relations that have it."""
        one, two = self._sorted(relation, key), self._sorted(other, key)
        return self.hold(made_by_groups(one, two, key, make, columns))

    def repeated(self, relation: Relation) -> Relation:
        """Return each `key`, a whole number, that comes more than once or with `wrong`."""
        return self.keep(repeated_keys(relation))

    def _sorted(self, relation: Relation, key: str) -> pyarrow.Table:
        return self.rows(relation.sorted_by([f"`{key}`"]))

    def _statement(self, relation: Relation) -> str:
        query = RelationText(relation)
        held = [(name, f"select * from {one.handle}") for name, one in query.inputs.items()]
        return for_duckdb(statement_of([*held, *query.steps], query.last))

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(":memory:")
            paths = ", ".join(map(_text, self._files))
            self._connection.execute(f"set allowed_paths = [{paths}]")  # before the door is shut
            # to start threads for few rows takes longer than they save
            threads = ("set threads = 1",) if self._small else ()
            self._connection.execute(";".join((*_CLOSED, *SETTINGS, *threads)))
            self._connection.execute(";".join(f"create macro {macro}" for macro in MACROS))
            self._connection.execute("set lock_configuration = true")
        return self._connection


def _read(files: Sequence[str]) -> str:
    names = ", ".join(map(_text, files))
    return f"read_parquet([{names}], union_by_name = true)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _column_of(column: Described, kind: str | None) -> str:
    """Return a column of a file, of that type there, as the relation has it."""
    wanted = _TYPES[column.type]
    if kind is None:
        return f'cast(null as {wanted}) as "{column.name}"'
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f'make_timestamp(epoch_us("{column.name}")) as "{column.name}"'
    if kind == wanted:
        return f'"{column.name}"'
    return f'try_cast("{column.name}" as {wanted}) as "{column.name}"'


def _without_zones(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows whose times have no zone: DuckDB computes with these alone."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.tz is not None:
            plain = field.with_type(pyarrow.timestamp("us"))
            rows = rows.set_column(place, plain, rows.column(place).cast(plain.type))
    return rows


def with_zones(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows whose times say that they are UTC: Spark takes others for times of no place."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.tz is None:
            zoned = field.with_type(pyarrow.timestamp("us", tz="UTC"))
            rows = rows.set_column(place, zoned, rows.column(place).cast(zoned.type))
    return rows


def _with_whole_numbers(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with sums of whole numbers as 64 bits; DuckDB has 128 for them."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_decimal(field.type):
            whole = field.with_type(pyarrow.int64())
            rows = rows.set_column(place, whole, rows.column(place).cast(whole.type, safe=False))
    return rows
