"""Execute relations in this process: DuckDB over Arrow tables and Parquet files.

Rules: no network, no files but the Parquet files of the input, no configuration. Times have a zone,
as in Parquet, so that filters reach the reader. Kept relations are Arrow tables, and large ones of
a large input are Parquet files in a private temporary folder. What exceeds a query's memory goes
there during the query.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from dissectors.quantities import size_bytes
from dissectors.rows.column import NAMES
from dissectors.rows.record import COLUMNS, DERIVED
from dissectors.temporary import remove, temporary_in

from ..errors import ReportError, reason_here
from ..schema import SOURCE, Described, absent_derived, arrow_schema_of, derived_column
from .dialect import MACROS, SETTINGS, for_duckdb
from .engine import OfBatches, OfGroup, OfGroups, made_by_group, made_by_groups, repeated_keys
from .relation import Relation, RelationText, statement_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow

T = TypeVar("T")

BATCH: Final = 4096
"""Rows per batch."""
_ROW_GROUP: Final = 1 << 17
"""Rows per batch of a relation to be kept, and per row group of its file."""
MOST_HELD: Final = 48 << 20
"""Most bytes of a kept relation of a large input that stay in memory."""
MEMORY: Final = 256
"""MiB per thread that a query of a large input uses before it spills to disk; a machine with less
gets fewer threads."""
_CLOSED: Final = (
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    # Otherwise an unknown table name would mean a Python variable of that name.
    "set python_enable_replacements = false",
    "set enable_external_access = false",
)
"""Statements that restrict reading to the files of the input."""
_IN_FILE: Final = "kept_"
"""Prefix of the names of relations in files."""
_INTERRUPTED: Final = ("Query interrupted", "KeyboardInterrupt")
_TYPES: Final = {
    "string": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "time": "TIMESTAMP WITH TIME ZONE",
    "list": "VARCHAR[]",
}
"""Type in a column's description -> type in DuckDB."""


class LocalEngine:
    """DuckDB in this process."""

    def __init__(self, files: Sequence[str] = (), small: bool = True) -> None:
        """Initialize; `files` are the readable Parquet files; `small`: rows are in memory."""
        self._small = small
        self._files = list(files)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._remove_temporary: Callable[[], object] = lambda: None
        self._folder: Path | None = None
        """private folder for what exceeds memory"""
        self._count = 0
        self._limits: list[int] = []
        """limits of a query's memory in bytes, each tried if the one before is too low"""
        self._limit = 0
        """the one in force"""

    @property
    def is_distributed(self) -> bool:
        """Whether the rows are distributed over tasks: always False."""
        return False

    def rows(self, relation: Relation) -> pyarrow.Table:
        """Return the rows of a relation."""
        if relation.rows is not None:
            return relation.rows
        return _with_whole_numbers(self._fetched(relation, lambda query: query.to_arrow_table()))

    def batches(self, relation: Relation) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a relation, some thousands at a time."""
        if relation.rows is not None:
            yield from relation.rows.to_batches(BATCH)
            return
        reader, batch = self._fetched(relation, _started)
        while batch is not None:
            yield batch
            with _explained():
                batch = next(reader, None)

    def _fetched(self, relation: Relation, fetch: Callable[[duckdb.DuckDBPyRelation], T]) -> T:
        """Return the result of a query; one that cannot spill all of its state gets more memory."""
        import duckdb

        with _explained():
            connection, statement = self._connected(), self._statement(relation)
            for limit in self._limits:
                self._set_limit(limit)
                try:
                    return fetch(connection.sql(statement))
                except duckdb.OutOfMemoryException:
                    if limit == self._limits[-1]:
                        raise
            return fetch(connection.sql(statement))

    def _set_limit(self, limit: int) -> None:
        """Set the limit of a query's memory."""
        import duckdb

        if limit == self._limit:
            return
        # what another query still reads may exceed it
        with suppress(duckdb.OutOfMemoryException):
            self._connected().execute(f"set memory_limit = '{limit}B'")
            self._limit = limit

    def keep(self, relation: Relation) -> Relation:
        """Return a relation that is computed once, now, until it is dropped."""
        if relation.rows is not None or self._small:
            return self.hold(self.rows(relation))
        return self._fetched(relation, lambda query: self._kept(_whole(query), query.columns))

    def _kept(self, parts: Iterator[pyarrow.Table], columns: Sequence[str]) -> Relation:
        """Return rows as a relation: in memory, or in a file if they are too many."""
        import pyarrow

        held: list[pyarrow.Table] = []
        size = 0
        for part in parts:
            held.append(part)
            size += part.nbytes
            if size > MOST_HELD and self._folder is not None:
                return self._in_file(chain(held, parts), columns, self._folder)
        return self.hold(pyarrow.concat_tables(held))

    def _in_file(
        self, parts: Iterator[pyarrow.Table], columns: Sequence[str], folder: Path
    ) -> Relation:
        """Return rows as a relation that reads them from a file."""
        import pyarrow.parquet

        self._count += 1
        name = f"{_IN_FILE}{self._count}"
        path = folder / f"{name}.parquet"
        first = next(parts)
        try:
            with pyarrow.parquet.ParquetWriter(path, first.schema, compression="lz4") as writer:
                for part in chain((first,), parts):
                    writer.write_table(part)
        except OSError as error:
            raise reason_here(error) from error
        self._connected().execute(f"create view {name} as select * from {_read([str(path)])}")
        return Relation(columns, handle=name)

    def hold(self, rows: pyarrow.Table) -> Relation:
        """Return rows of this process as a relation."""
        self._count += 1
        name = f"rows_{self._count}"
        self._connected().register(name, with_zones(rows))
        return Relation(rows.schema.names, handle=name, rows=rows)

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files, read as far as a query needs them."""
        self._count += 1
        name = f"rows_{self._count}"
        there = self._types_in(files)
        chosen = {column.name: _column_of(column, there) for column in columns}
        for made in self._lacking(files) if DERIVED.keys() <= chosen.keys() else ():
            chosen[made] = f"coalesce({chosen[made]}, {self._derived(made, chosen)})"
        named = ", ".join(f'{value} as "{column}"' for column, value in chosen.items())
        self._connected().execute(
            f"create view {name} as select {named}, {_text(source)} as {SOURCE} from {_read(files)}"
        )
        return Relation([*(column.name for column in columns), SOURCE], handle=name)

    def _lacking(self, files: Sequence[str]) -> list[str]:
        """Return the `DERIVED` columns missing in the file of an older log."""
        names = ", ".join(map(_text, files))
        having = "select name, count(distinct file_name) from parquet_schema"
        counts = self._connected().sql(f"{having}([{names}]) group by name").fetchall()
        return absent_derived([name for name, count in counts if count == len(files)])

    def _derived(self, name: str, chosen: Mapping[str, str]) -> str:
        """Return a column of `DERIVED` for a log that lacks it."""
        from duckdb.func import FunctionNullHandling, PythonUDFType

        of = DERIVED[name][1]
        types = {column.name: _TYPES[column.type] for column in COLUMNS}
        fields = ", ".join(f'"{column}" {types[column]}' for column in of)
        self._count += 1
        function = f"derived_{self._count}"
        self._connected().create_function(
            function,
            lambda rows: derived_column(name, rows.combine_chunks().flatten()),
            [f"struct({fields})"],
            types[name],
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )
        values = ", ".join(f"'{column}': {chosen[column]}" for column in of)
        return f"{function}({{{values}}})"

    def _types_in(self, files: Sequence[str]) -> dict[str, str]:
        """Return the type of each column in some Parquet files."""
        result = self._connected().sql(f"select * from {_read(files)} limit 0")
        return dict(zip(result.columns, map(str, result.types), strict=True))

    def close(self) -> None:
        """Free everything; relations lose their rows."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._remove_temporary()

    def drop(self, relation: Relation) -> None:
        """Drop the result of `keep` or `hold`."""
        name = str(relation.handle)
        if relation.rows is None and self._folder is not None:
            self._connected().execute(f"drop view {name}")
            (self._folder / f"{name}.parquet").unlink(missing_ok=True)
        else:
            self._connected().unregister(name)

    def by_group(
        self, relation: Relation, key: str, make: OfGroup, columns: Sequence[Described]
    ) -> Relation:
        """Return the result of `make` for the groups of rows with an equal `key`; null is a key."""
        ordered = relation.sorted_by([f"`{key}`"])
        return self.folded(ordered, key, partial(made_by_group, key=key, make=make), columns)

    def folded(
        self,
        relation: Relation,
        key: str,  # noqa: ARG002
        fold: OfBatches,
        columns: Sequence[Described],
    ) -> Relation:
        """Return the result of `fold` for all rows."""
        import pyarrow

        schema = arrow_schema_of(columns)
        made = fold(self.batches(relation))
        parts = (with_zones(pyarrow.Table.from_batches([batch], schema)) for batch in made)
        return self._kept(chain((with_zones(schema.empty_table()),), parts), schema.names)

    def by_groups(
        self,
        relation: Relation,
        other: Relation,
        key: str,
        make: OfGroups,
        columns: Sequence[Described],
    ) -> Relation:
        """Return the result of `make` for each `key`, from its rows in two relations."""
        first, second = self._sorted(relation, key), self._sorted(other, key)
        return self.hold(made_by_groups(first, second, key, make, columns))

    def repeated(self, relation: Relation) -> Relation:
        """Return each integer `key` that is repeated or has `wrong` set."""
        return self.keep(repeated_keys(relation))

    def _sorted(self, relation: Relation, key: str) -> pyarrow.Table:
        return self.rows(relation.sorted_by([f"`{key}`"]))

    def _statement(self, relation: Relation) -> str:
        query = RelationText(relation)
        held = [(name, f"select * from {input_.handle}") for name, input_ in query.inputs.items()]
        return for_duckdb(statement_of([*held, *query.steps], query.last))

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(":memory:")
            if not self._small:
                self._limit_memory(self._connection)
            paths = ", ".join(map(_text, self._files))
            self._connection.execute(f"set allowed_paths = [{paths}]")  # before access is locked
            # starting threads for few rows takes longer than they save
            threads = ("set threads = 1",) if self._small else ()
            self._connection.execute(";".join((*_CLOSED, *SETTINGS, *threads)))
            self._connection.execute(";".join(f"create macro {macro}" for macro in MACROS))
            self._connection.execute("set lock_configuration = true")
        return self._connection

    def _limit_memory(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make queries spill to a temporary folder early, so memory does not grow with rows."""
        try:
            folder = temporary_in(Path(tempfile.gettempdir()), "rmqtool-report-")
            folder.mkdir(0o700)
            self._folder = folder
        except OSError:  # no such folder: everything must fit into memory
            return
        self._remove_temporary = weakref.finalize(self, remove, folder)
        asked = "select current_setting('threads'), current_setting('memory_limit')"
        [(threads, most)] = connection.sql(asked).fetchall()
        usual = size_bytes(str(most))  # a share of the machine's memory, such as 12.4 GiB
        limit = self._limit = int(threads) * MEMORY << 20
        if usual is None or limit < usual:
            connection.execute(f"set memory_limit = '{limit}B'")
            # The only setting that may still change after `lock_configuration`: see `_fetched`.
            connection.execute("set allowed_configs = ['memory_limit']")
            self._limits = [limit]
            # A query whose state cannot spill needs more: each further limit doubles the one
            # before.
            while usual is not None and self._limits[-1] < usual:
                self._limits.append(min(2 * self._limits[-1], usual))
        else:  # a sort fails where many threads share little memory
            connection.execute(f"set threads = {max(1, usual // (MEMORY << 20))}")
        connection.execute(f"set temp_directory = {_text(str(folder))}")
        connection.execute(f"set allowed_directories = [{_text(f'{folder}/')}]")


def _started(
    query: duckdb.DuckDBPyRelation,
) -> tuple[Iterator[pyarrow.RecordBatch], pyarrow.RecordBatch | None]:
    reader = query.to_arrow_reader(BATCH)
    return reader, next(reader, None)


def _whole(query: duckdb.DuckDBPyRelation) -> Iterator[pyarrow.Table]:
    """Yield the rows of a query; at least one table, which may be empty."""
    import pyarrow

    reader = query.to_arrow_reader(_ROW_GROUP)
    yield _as_kept(reader.schema.empty_table())
    for batch in reader:
        yield _as_kept(pyarrow.Table.from_batches([batch]))


def _as_kept(rows: pyarrow.Table) -> pyarrow.Table:
    return with_zones(_with_whole_numbers(rows))


@contextmanager
def _explained() -> Iterator[None]:
    """Raise ReportError for errors of DuckDB; pass Ctrl-C on."""
    try:
        yield
    except Exception as error:
        if is_interrupted(error) or isinstance(error, ReportError):
            raise
        raise reason_here(error) from error


def is_interrupted(error: Exception) -> bool:
    """Return whether Ctrl-C ended a query: DuckDB raises its own error then."""
    return any(sign in str(error) for sign in _INTERRUPTED)


def _read(files: Sequence[str]) -> str:
    names = ", ".join(map(_text, files))
    # date folders are not columns
    return f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _column_of(column: Described, types: Mapping[str, str]) -> str:
    """Return a column with the relation's type; `types` are those of the columns in the files."""
    wanted = _TYPES[column.type]
    stored = [name for name in NAMES.get(column.name, (column.name,)) if name in types]
    values = [
        f'"{name}"' if types[name] == wanted else f'try_cast("{name}" as {wanted})'
        for name in stored
    ] or [f"cast(null as {wanted})"]
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


def with_zones(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows whose times are marked as UTC: both engines compute only with these."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.tz is None:
            zoned = field.with_type(pyarrow.timestamp("us", tz="UTC"))
            rows = rows.set_column(place, zoned, rows.column(place).cast(zoned.type))
    return rows


def _with_whole_numbers(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with 64-bit sums of integers; DuckDB uses 128 bits for them."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_decimal(field.type):
            whole = field.with_type(pyarrow.int64())
            rows = rows.set_column(place, whole, rows.column(place).cast(whole.type, safe=False))
    return rows
