"""Cells: the counts that report tables are computed from, as files, to merge days into weeks.

Layout: ``cells.json``, which lists the parts and their inputs, and one folder per part with a
Parquet file for each `CellTable`. Cells are counts that reports need anyway, before naming,
windowing, and cutting; so tables from merged cells equal those of one run over all rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.owned_folder import LOCK, lock_in
from dissectors.temporary import PRIVATE, forget, remove, temporary_in

from .errors import ReportError
from .schema import SOURCE

if TYPE_CHECKING:
    import pyarrow

    from .sql.engine import SqlEngine
    from .sql.relation import Relation

MANIFEST: Final = "cells.json"
FORMAT: Final = "rmqtool-cells"
VERSION: Final = 3
"""Increment when cells change: other versions are refused."""
KIND: Final = "folder of cells"
_TEMPORARY: Final = ".cells-"
MOST_PARTS: Final = 32
"""Most parts of a growing folder before they are merged."""


class CellTable(NamedTuple):
    """Columns that rows are counted by, and aggregates kept for each combination."""

    name: str
    """unique"""
    keys: tuple[str, ...] = ()
    """columns that identify a cell; empty: each row is one"""
    values: Mapping[str, str] = {}
    """column -> `sum`, `min` or `max`, to merge cells"""
    order: tuple[str, ...] = ()
    """sort order of rows kept unchanged: the first `CellPart.slowest` are kept"""


class CellPart(msgspec.Struct, kw_only=True):
    """The counts of one run."""

    folder: str
    """folder of its files"""
    reports: list[str]
    """reports with cells in it"""
    tables: list[str]
    """file names, without `.parquet`"""
    inputs: list[str]
    """names of its inputs"""
    notes: list[str] = msgspec.field(default_factory=list, name="remarks")
    """notes about its inputs"""
    slowest: int = 0
    """number of slowest exchanges"""
    is_relayed: bool = False
    """it has sends through a proxy; only rows show whether they count twice"""


class CellManifest(msgspec.Struct, kw_only=True):
    """Content of ``cells.json``."""

    parts: list[CellPart]
    """what is there"""
    format: str = FORMAT
    """always `rmqtool-cells`"""
    version: int = VERSION
    """version of the cells"""
    done: list[str] = []
    """processed inputs of a followed folder"""
    skipped: dict[str, str] = {}
    """unreadable inputs of a followed folder, and the errors"""


def is_cells(folder: Path) -> bool:
    """Return whether a folder has cells."""
    return os.path.lexists(folder / MANIFEST)


def read_manifest(folder: Path) -> CellManifest:
    """Return the manifest of a folder; raise ReportError if it is unreadable."""
    path = folder / MANIFEST
    try:
        manifest = json_of(msgspec.json.Decoder(CellManifest), path.read_bytes())
    except (OSError, Unreadable) as error:
        raise ReportError(f"{path} cannot be read: {error}", "write the cells again") from None
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise ReportError(
            f"{folder} has cells of version {manifest.version}, not {VERSION}",
            "write them again with this rmqtool: --cells FOLDER",
        )
    return manifest


class Counted:
    """The cells of a run: counted and to be written, or read and merged."""

    def __init__(self, merged: Mapping[str, Relation] | None = None) -> None:
        """Initialize with cells that were read, by name, or None if rows are counted."""
        self.merged = merged
        """cells used instead of rows"""
        self.found: dict[str, pyarrow.Table] = {}
        """cells that were counted"""
        self.parts: list[CellPart] = []
        """parts of the cells that were read"""
        self.is_relayed = False
        """whether the input had sends through a proxy"""

    @property
    def slowest(self) -> int:
        """Number of known slowest exchanges."""
        return min((part.slowest for part in self.parts), default=0)

    def has(self, report: str) -> bool:
        """Return whether all parts have the cells of a report."""
        return all(report in part.reports for part in self.parts)


class CellFolder:
    """A folder that grows by parts; its content is always consistent."""

    def __init__(self, folder: Path, manifest: CellManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        """what is there"""
        self._lock: int | None = None

    @classmethod
    def made(cls, folder: Path) -> CellFolder:
        """Create cells in an empty folder."""
        created = cls(folder, CellManifest(parts=[]))
        created._commit(created.manifest)
        return created

    @classmethod
    def followed(cls, folder: Path) -> CellFolder:
        """Open or create a growing folder, locked until `close`; raise ReportError on failure."""
        # a run that has just created the folder has only its lock there
        known = {*(entry.name for entry in folder.iterdir()), LOCK} if folder.is_dir() else {LOCK}
        if not is_cells(folder) and known != {LOCK}:
            raise ReportError(f"{folder} exists and is not a {KIND}", "give another name")
        folder.mkdir(0o700, exist_ok=True)
        lock = lock_in(folder)
        if lock is None:
            raise ReportError(f"another run keeps its cells in {folder}", "end it, or name another")
        opened = cls(folder, read_manifest(folder)) if is_cells(folder) else cls.made(folder)
        opened._lock = lock
        parts = {part.folder for part in opened.manifest.parts}
        for entry in folder.iterdir():  # left by an aborted run
            left = entry.name.startswith("part-") and entry.name not in parts
            if left or entry.name.startswith(_TEMPORARY):
                remove(entry)
        return opened

    def close(self) -> None:
        """Unlock the folder for other runs."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def add(
        self,
        cells: Mapping[str, pyarrow.Table],
        part: CellPart,
        done: Iterable[str] = (),
        instead: Sequence[CellPart] = (),
    ) -> None:
        """Add a part atomically; `done` are the inputs processed with it.

        `instead`: parts that it replaces.
        """
        import pyarrow.parquet

        taken = {part.folder for part in self.manifest.parts}
        number = len(taken)
        while (name := f"part-{number:05d}") in taken or (self.folder / name).exists():
            number += 1
        part = msgspec.structs.replace(part, folder=name, tables=sorted(cells))
        # written beside, then renamed: a run that is killed leaves no half part
        written = temporary_in(self.folder, _TEMPORARY)
        written.mkdir(0o700)
        for table, rows in cells.items():
            pyarrow.parquet.write_table(plain_times(rows), written / f"{table}.parquet")
            (written / f"{table}.parquet").chmod(PRIVATE)
        written.rename(self.folder / name)
        forget(written)
        kept = [part for part in self.manifest.parts if part not in instead]
        everything = sorted({*self.manifest.done, *done})
        self._commit(
            CellManifest(parts=[*kept, part], done=everything, skipped=self.manifest.skipped)
        )
        # after the commit: until then, the manifest names them
        for part in instead:
            remove(self.folder / part.folder)

    def skip(self, name: str, why: str) -> None:
        """Record an unreadable input."""
        self._commit(
            msgspec.structs.replace(
                self.manifest,
                done=sorted({*self.manifest.done, name}),
                skipped=self.manifest.skipped | {name: why},
            )
        )

    def joined(self, tables: Sequence[CellTable]) -> None:
        """Merge the parts if there are many."""
        from .sql.local import LocalEngine

        parts = self.manifest.parts
        if len(parts) < MOST_PARTS:
            return
        engine = LocalEngine()
        counted = merged_cells(engine, tables, [self.folder])
        assert counted.merged is not None
        cells = {name: engine.rows(relation) for name, relation in counted.merged.items()}
        engine.close()
        whole = CellPart(
            folder="",
            reports=[name for name in parts[0].reports if counted.has(name)],
            tables=[],
            inputs=sorted({name for part in parts for name in part.inputs}),
            notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
            slowest=counted.slowest,
            is_relayed=counted.is_relayed,
        )
        self.add(cells, whole, instead=parts)

    def _commit(self, manifest: CellManifest) -> None:
        written = temporary_in(self.folder, _TEMPORARY)
        written.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        written.chmod(PRIVATE)
        written.replace(self.folder / MANIFEST)
        forget(written)
        self.manifest = manifest


def written_cells(
    folder: CellFolder,
    counted: Counted,
    part: CellPart,
    identities: Mapping[str, str],
    done: Iterable[str] = (),
) -> None:
    """Add the counts of a run to a folder; `identities` are permanent, by input name."""
    import pyarrow

    cells = dict(counted.found)
    if _BY_CONNECTION in cells:
        # inputs of several days may have the same name, but not the same connections
        rows = cells[_BY_CONNECTION]
        place = rows.schema.get_field_index(SOURCE)
        names = [identities.get(str(name), name) for name in rows.column(place).to_pylist()]
        cells[_BY_CONNECTION] = rows.set_column(place, SOURCE, pyarrow.array(names, "string"))
    folder.add(cells, msgspec.structs.replace(part, is_relayed=counted.is_relayed), done)


_BY_CONNECTION: Final = "overview"
"""Cells with connection numbers, which are unique within an input."""


def merged_cells(
    engine: SqlEngine, tables: Sequence[CellTable], folders: Sequence[Path]
) -> Counted:
    """Return the merged cells of some folders, held by an engine of this process.

    Raise ReportError if a file is unreadable.
    """
    merged: dict[str, Relation] = {}
    counted = Counted(merged)
    parts = [(folder, part) for folder in folders for part in read_manifest(folder).parts]
    counted.parts = [part for _, part in parts]
    counted.is_relayed = any(part.is_relayed for part in counted.parts)
    for table in tables:
        files = [
            folder / part.folder / f"{table.name}.parquet"
            for folder, part in parts
            if table.name in part.tables
        ]
        if files:
            rows = [_read(file) for file in files]
            merged[table.name] = _merged(engine, table, rows, counted.slowest)
    return counted


def _merged(
    engine: SqlEngine, table: CellTable, rows: Sequence[pyarrow.Table], most: int
) -> Relation:
    import pyarrow

    whole = pyarrow.concat_tables(rows, promote_options="permissive")
    held = engine.hold(whole)
    if not table.keys:  # rows that stay as they are, such as the slowest exchanges
        return engine.hold(engine.rows(held.ordered(table.order, most)))
    values = {name: f"{how}(`{name}`)" for name, how in table.values.items()}
    merged = engine.rows(held.grouped(table.keys, values))
    engine.drop(held)
    # DuckDB's integer sums have more bits
    types = pyarrow.schema([whole.schema.field(name) for name in merged.schema.names])
    return engine.hold(merged.cast(types))


def _read(file: Path) -> pyarrow.Table:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            return opened.read()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition(".")[0] or type(error).__name__
        raise ReportError(f"{file} cannot be read: {reason}", "write the cells again") from None


def plain_times(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows whose times have no zone, also in structs: engines differ in that."""
    import pyarrow

    schema = pyarrow.schema(
        [pyarrow.field(field.name, _plain_type(field.type)) for field in rows.schema]
    )
    return rows.cast(schema)


def _plain_type(kind: Any) -> Any:
    import pyarrow

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp("us")
    if pyarrow.types.is_decimal(kind):
        return pyarrow.int64()
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct(
            [pyarrow.field(field.name, _plain_type(field.type)) for field in kind.fields]
        )
    return kind
