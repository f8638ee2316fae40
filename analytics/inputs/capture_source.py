"""Captures as a Spark data source: ``spark.read.format("rocketmq_capture").load(path)``.

Register it once: ``spark.dataSource.register(CaptureSource)``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.foreign import Unreadable, json_of, natural_of
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.source import CaptureError, expand_sources

from .row_batches import ALL, CONVERSATIONS, MESSAGES, TABLES, batches_of, schema_of_table

if TYPE_CHECKING:
    import pyarrow

NAME = "rocketmq_capture"


class CaptureOptionError(ValueError):
    """An invalid option of the data source; the text names it and the valid values."""


@dataclass
class CaptureTask(InputPartition):  # type: ignore[misc, unused-ignore]
    """The share of one task."""

    sources: list[str]
    """absolute paths of the captures in order: a worker has another current folder"""
    names: list[str]
    """names of the captures in rows, as the user wrote them"""
    shard: int = 0
    """index of its share of the connections, of `shards`"""
    shards: int = 1


class CaptureSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The data source; Spark creates one for each `load`.

    Options: `table` (one of TABLES), `messages` (`true`: the table `all` has those, too),
    `decode_as` (ports, separated by commas), `tls_keylog` (a file under the same path for all
    tasks), `max_ratio` (bytes that each byte of a compressed capture may become), `each` (`true`:
    every capture has whole conversations; `source` tells them apart).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the requested table."""
        return schema_of_table(self._table())

    def reader(self, schema: StructType) -> CaptureTaskReader:  # noqa: ARG002
        """Return the reader; raise CaptureOptionError if an option is invalid."""
        return CaptureTaskReader(
            _paths_of(self.options),
            self._table(),
            _is_set(self.options, "each"),
            DecodeOptions(
                decode_as=_ports_of(self.options.get("decode_as", "")),
                messages=self._table() == MESSAGES or _is_set(self.options, "messages"),
                tls_keylog=str(self.options.get("tls_keylog", "")),
                max_ratio=_ratio_of(self.options.get("max_ratio", str(MOST_TIMES))),
            ),
        )

    def _table(self) -> str:
        table = str(self.options.get("table", TABLES[0]))
        if table not in TABLES:
            raise CaptureOptionError(f"table is one of {', '.join(TABLES)}, not {table!r}")
        return table


class CaptureTaskReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Plans the tasks and decodes in each."""

    def __init__(
        self,
        paths: list[str],
        table: str,
        each: bool,
        options: DecodeOptions,
    ) -> None:
        self.paths = paths
        self.table = table
        self.each = each
        self.options = options

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; raise CaptureError if a capture does not exist."""
        return list(tasks_of(self.paths, self.each))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of one task as Arrow batches."""
        assert isinstance(partition, CaptureTask)
        options = replace(
            self.options,
            shard=partition.shard,
            shards=partition.shards,
            conversations=self.table in (CONVERSATIONS, ALL),
            messages=self.options.messages and self.table in (MESSAGES, ALL),
        )
        decode = Decode(partition.sources, options)
        names = dict(zip(partition.sources, partition.names, strict=True))
        return batches_of(decode, self.table, partition.names[0], names)


def tasks_of(paths: list[str], each: bool) -> list[CaptureTask]:
    """Return the tasks: one per capture, or one for all."""
    captures = expand_sources(paths)
    if "-" in captures:
        raise CaptureError("-", "standard input can be read only once", hint="give a file")
    whole = [os.path.abspath(capture) for capture in captures]
    if each:  # each capture numbers its conversations by itself
        return [CaptureTask([path], [name]) for path, name in zip(whole, captures, strict=True)]
    return [CaptureTask(whole, captures)]


_PATHS: Final = msgspec.json.Decoder(list[str])


def _paths_of(options: Mapping[str, str]) -> list[str]:
    """Return the argument of `load`: a path or a list of paths."""
    path = options.get("path", "")
    several = options.get("paths", "[]")
    try:
        paths = json_of(_PATHS, several)
    except Unreadable as error:
        raise CaptureOptionError(f"paths is a list of texts as JSON: {error}") from None
    if path:
        paths.insert(0, path)
    if not paths:
        raise CaptureOptionError("no path: load(PATH) takes a capture, a folder, or a list of them")
    return [_local(path) for path in paths]


def _local(path: str) -> str:
    """Return the local path of a ``file:`` URL."""
    return path.removeprefix("file://") if path.startswith("file://") else path


def _is_set(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise CaptureOptionError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _ports_of(text: str) -> frozenset[int]:
    ports = set()
    for part in (part.strip() for part in text.split(",") if part.strip()):
        port = natural_of(part)
        if port is None or not 0 < port < 65536:
            raise CaptureOptionError(f"decode_as is ports separated by commas, not {part!r}")
        ports.add(port)
    return frozenset(ports)


def _ratio_of(text: str) -> int:
    ratio = natural_of(text)
    if not ratio:
        raise CaptureOptionError(f"max_ratio is a whole number from 1, not {text!r}")
    return ratio
