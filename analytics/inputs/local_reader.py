"""Reads inputs for the local engine: holds small ones, lets DuckDB read from large ones."""

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
        """Take all inputs that it is asked to read."""
        files = [
            file
            for one in inputs
            for file in (*one.exchanges, one.conversations, one.findings, *(one.messages or ()))
            if file is not None
        ]
        self._is_small = is_small(inputs)
        self.engine = LocalEngine(files, self._is_small)

    def parquet(self, files: Sequence[str], columns: Sequence[Described], source: str) -> Relation:
        """Return the rows of Parquet files; a column that they do not have is null."""
        if self._is_small or not files:
            return self.engine.hold(parquet_here(files, columns, source))
        return self.engine.parquet(files, columns, source)

    def json_lines(
        self, files: Sequence[str], columns: Sequence[Described], source: str
    ) -> LineRows:
        """Return the rows of JSON lines."""
        rows, broken = json_lines_here(files, columns, source)
        return LineRows(self.engine.hold(rows), len(broken), broken[0] if broken else "")

    def captures(self, captures: Input) -> Mapping[str, Relation]:
        """Refuse captures: whoever reads here has decoded them."""
        raise NotImplementedError(f"{captures.name} is not decoded yet")
