"""Captures as a Spark data source: ``spark.read.format("rocketmq_capture").load(path)``.

Register it once: ``spark.dataSource.register(CaptureSource)``. Options: `table` (`exchanges`,
`conversations`, `findings`, `messages`, or `all` of them for one pass), `messages` (`true`: `all`
has those, too), `tasks` (how many at most), `decode_as` (ports, separated by commas),
`tls_keylog` (file with secrets of TLS, under the same path for all tasks), `each`
(`true`: every capture has whole conversations, so a task decodes one capture and reads no other),
`task_bytes` (captures below this size are one task's).

Rules: without `each` the captures are one ordered list, as in `rmqtool decode pcap`: every task
reads all packets and decodes its share of the conversations, so a conversation is whole however the
capture was cut, and the numbers of conversations are those of a single run. With it, the captures
are numbered each by itself, and `source` tells them apart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dissectors.decode.decoded_log import FINDING_COLUMNS, finding_of
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.foreign import Unreadable, json_of, natural_of
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.json_rows import row_encoder
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.parquet import RowTable, exchange_table
from dissectors.tcp.source import CaptureError, expand_sources

from ..schema import (
    SOURCE,
    conversation_schema,
    exchange_schema,
    finding_schema,
    message_schema,
)

if TYPE_CHECKING:
    import pyarrow

    Arrays = pyarrow.Array[pyarrow.Scalar[pyarrow.DataType]]

NAME = "rocketmq_capture"
EXCHANGES, CONVERSATIONS, FINDINGS = "exchanges", "conversations", "findings"
MESSAGES, ALL = "messages", "all"
TABLES = (EXCHANGES, CONVERSATIONS, FINDINGS, MESSAGES, ALL)
KIND, OTHER = "row_kind", "other_row"
"""Columns of the table `all`: the table of a row; as JSON, the row if it is not an exchange."""
BATCH_ROWS = 8192
"""Rows of an Arrow batch."""
MAX_TASKS = 64
"""Tasks that read the same captures, at most: each reads all packets."""
TASK_BYTES = 16 * 1024 * 1024
"""Captures below this size, together, are not worth a second task, unless `task_bytes` says so."""


class CaptureOptionError(ValueError):
    """An option of the data source is wrong; the text says which and what it may be."""


@dataclass
class CaptureTask(InputPartition):  # type: ignore[misc, unused-ignore]
    """What one task decodes."""

    sources: list[str]
    """captures, in order, as whole paths: a worker has another current folder"""
    names: list[str]
    """what rows call each of them: as it was given"""
    source: str
    """how rows name their input"""
    shard: int = 0
    """which part of the conversations"""
    shards: int = 1
    """of how many"""


class Options(Protocol):
    """The options of a data source: a mapping that ignores case."""

    def get(self, name: str, default: str) -> str:
        """Return an option."""


class CaptureSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The data source; Spark makes one for each `load`."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` is given."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table that is asked for."""
        return schema_of_table(self._table())

    def reader(self, schema: StructType) -> CaptureTaskReader:  # noqa: ARG002
        """Return the reader; raise CaptureOptionError where an option is wrong."""
        return CaptureTaskReader(
            _paths_of(self.options),
            self._table(),
            _number_of(self.options, "tasks", os.cpu_count() or 1),
            _number_of(self.options, "task_bytes", TASK_BYTES),
            _is_set(self.options, "each"),
            _ports_of(self.options.get("decode_as", "")),
            self._table() == MESSAGES or _is_set(self.options, "messages"),
            str(self.options.get("tls_keylog", "")),
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
        tasks: int,
        task_bytes: int,
        each: bool,
        decode_as: frozenset[int],
        messages: bool = False,
        tls_keylog: str = "",
    ) -> None:
        self.paths = paths
        self.table = table
        self.tasks = tasks
        self.task_bytes = task_bytes
        self.each = each
        self.decode_as = decode_as
        self.messages = messages
        self.tls_keylog = tls_keylog

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; raise CaptureError where a capture is not there."""
        return list(tasks_of(self.paths, self.tasks, self.task_bytes, self.each))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Give the rows of one task as Arrow batches."""
        assert isinstance(partition, CaptureTask)
        options = DecodeOptions(
            decode_as=self.decode_as,
            tls_keylog=self.tls_keylog,
            shard=partition.shard,
            shards=partition.shards,
            conversations=self.table in (CONVERSATIONS, ALL),
            messages=self.messages and self.table in (MESSAGES, ALL),
        )
        decode = Decode(partition.sources, options)
        form = _Form(self.table, partition.source)
        for kind, rows in _pieces(decode, partition):
            yield from form.batches(kind, rows)
        yield from form.rest()


def schema_of_table(table: str) -> StructType:
    """Return the columns of one of `TABLES`."""
    schemas: dict[str, Callable[[], StructType]] = {
        EXCHANGES: exchange_schema,
        CONVERSATIONS: conversation_schema,
        FINDINGS: finding_schema,
        MESSAGES: message_schema,
        ALL: lambda: exchange_schema().add(KIND, "string").add(OTHER, "string"),
    }
    return schemas[table]().add(SOURCE, "string")


def tasks_of(paths: list[str], tasks: int, task_bytes: int, each: bool) -> list[CaptureTask]:
    """Return what is decoded where: one task per capture, or all captures by parts."""
    captures = expand_sources(paths)
    if "-" in captures:
        raise CaptureError("-", "standard input can be read once only", hint="give a file")
    whole = [os.path.abspath(capture) for capture in captures]
    if each:
        return [
            CaptureTask([path], [name], name) for path, name in zip(whole, captures, strict=True)
        ]
    size = sum(os.path.getsize(capture) for capture in captures)
    shards = max(1, min(tasks, MAX_TASKS, size // task_bytes))
    return [CaptureTask(whole, captures, captures[0], shard, shards) for shard in range(shards)]


def _pieces(decode: Decode, task: CaptureTask) -> Iterator[tuple[str, Sequence[object]]]:
    """Give what a run finds as (table, rows), as it finds it."""
    names = dict(zip(task.sources, task.names, strict=True))
    for records in decode.records():
        for record in records:
            record.capture = names.get(record.capture, record.capture)
        yield EXCHANGES, records
        messages = [row for carried in decode.take_messages() for row in carried.messages]
        for message in messages:
            message.capture = names.get(message.capture, message.capture)
        yield MESSAGES, messages
        ended = decode.take_conversations()
        for row in ended:
            row.capture = names.get(row.capture, row.capture)
        yield CONVERSATIONS, ended
        experts = decode.take_experts()
        mine = [info for info in experts if task.shard == 0 or info.conversation >= 0]
        yield FINDINGS, [finding_of(info, task.names) for info in mine]


class _Form:
    """Rows of the tables that are asked for, as Arrow batches of a fair size."""

    def __init__(self, table: str, source: str) -> None:
        self._table = table
        self._source = source
        self._exchanges = exchange_table()
        self._form = _table_of(_OTHERS[table]) if table in _OTHERS else self._exchanges
        self._json = {kind: row_encoder(columns) for kind, columns in _OTHERS.items()}
        self._waiting: list[object] = []
        self._others: list[tuple[str, str]] = []

    def batches(self, kind: str, rows: Sequence[object]) -> Iterator[pyarrow.RecordBatch]:
        """Take rows of a table, and give those that are enough for a batch."""
        if kind != self._table and self._table != ALL:
            return
        if kind == EXCHANGES or self._table == kind:
            self._waiting += rows
        else:
            lines = self._json[kind](rows).decode().splitlines()
            self._others += [(kind, line) for line in lines]
        while len(self._waiting) >= BATCH_ROWS:
            yield self._batch(self._waiting[:BATCH_ROWS])
            del self._waiting[:BATCH_ROWS]

    def rest(self) -> Iterator[pyarrow.RecordBatch]:
        """Give what is left."""
        if self._waiting:
            yield self._batch(self._waiting)
        for start in range(0, len(self._others), BATCH_ROWS):
            yield self._batch_of_others(self._others[start : start + BATCH_ROWS])

    def _batch(self, rows: list[object]) -> pyarrow.RecordBatch:
        batch = self._form.batch_of(rows)
        texts: list[list[str | None]] = []
        if self._table == ALL:
            texts = [[EXCHANGES] * len(rows), [None] * len(rows)]
        return self._completed(list(batch.columns), texts, len(rows))

    def _batch_of_others(self, rows: list[tuple[str, str]]) -> pyarrow.RecordBatch:
        import pyarrow

        nulls = [pyarrow.nulls(len(rows), field.type) for field in self._exchanges.schema]
        texts: list[list[str | None]] = [[kind for kind, _ in rows], [line for _, line in rows]]
        return self._completed(nulls, texts, len(rows))

    def _completed(
        self, arrays: list[Arrays], texts: list[list[str | None]], count: int
    ) -> pyarrow.RecordBatch:
        """Return a batch of arrays, of columns of texts, and of the input's name."""
        import pyarrow

        columns: list[list[str | None]] = [*texts, [self._source] * count]
        every = [*arrays, *(pyarrow.array(column, pyarrow.string()) for column in columns)]
        names = schema_of_table(self._table).fieldNames()
        return pyarrow.RecordBatch.from_arrays(every, names=names)


_OTHERS: dict[str, list[tuple[str, str]]] = {
    CONVERSATIONS: [(column.name, column.type) for column in CONVERSATION_COLUMNS],
    FINDINGS: [(column.name, column.type) for column in FINDING_COLUMNS],
    MESSAGES: [(column.name, column.type) for column in MESSAGE_COLUMNS],
}
"""Tables of what is not an exchange -> their columns with types."""


def _table_of(columns: list[tuple[str, str]]) -> RowTable:
    return RowTable((name, kind, attrgetter(name)) for name, kind in columns)


_PATHS: Final = msgspec.json.Decoder(list[str])


def _paths_of(options: Options) -> list[str]:
    """Return what `load` was given: a path or a list of them."""
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
    return [_local(one) for one in paths]


def _local(path: str) -> str:
    """Return a path of the file system for a ``file:`` address."""
    return path.removeprefix("file://") if path.startswith("file://") else path


def _number_of(options: Options, name: str, default: int) -> int:
    text = options.get(name, str(default))
    number = natural_of(text)
    if not number:
        raise CaptureOptionError(f"{name} is a number from 1, not {text!r}")
    return number


def _is_set(options: Options, name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise CaptureOptionError(f"{name} is true or false, not {text!r}")
    return text == "true"


def _ports_of(text: str) -> frozenset[int]:
    ports = set()
    for part in (part.strip() for part in text.split(",") if part.strip()):
        port = natural_of(part)
        if port is None or not 0 < port < 65536:
            raise CaptureOptionError(f"decode_as is ports separated by commas, not {part!r}")
        ports.add(port)
    return frozenset(ports)
