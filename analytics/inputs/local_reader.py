"""Read inputs for the local engine: small ones into memory, large ones through DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..schema import Described
from ..sql.local import LocalEngine
from ..sql.relation import Relation
from .inputs import Input, is_small
from .reader import LineRows
from .rows_here import json_lines_here, parquet_here


class LocalReader:
    """Reads inputs into a local engine."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        """Initialize with all inputs to be read."""
        files = [
            file
            for entry in inputs
            for paths in (entry.exchanges, entry.conversations, entry.findings, entry.messages)
            for file in paths or ()
        ]
        self._is_small = is_small(inputs)
        self.engine = LocalEngine(files, self._is_small)

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; missing columns are null."""
        if self._is_small or not files:
            return self.engine.hold(parquet_here(files, columns, source))
        return self.engine.parquet(files, columns, source)

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""
        rows, broken, first = json_lines_here(files, columns, source)
        return LineRows(self.engine.hold(rows), broken, first)

    def table(self, name: str, columns: Sequence[Described], source: str) -> Relation:
        """Raise an error: only Spark reads tables of catalogs."""
        raise NotImplementedError(f"{name} is a table of {len(columns)} columns in {source}")

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Raise an error: captures are decoded before."""
        raise NotImplementedError(f"{captures.name} is not decoded yet")
