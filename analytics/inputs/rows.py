"""Rows of decoded logs, single files and journals as structs, without Spark.

Columns missing in an older log are absent, and so are values of another type. A damaged file raises
an `InputError`; there are no other errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from dissectors.budget import FREE_BYTES, MOST_TIMES
from dissectors.decode.decoded_log import FINDING_COLUMNS, FindingRecord
from dissectors.findings import Finding, FindingKind
from dissectors.foreign import read_json
from dissectors.rows.bounded_lines import BoundedLines, LineTooLong
from dissectors.rows.column import Column, stored_name
from dissectors.rows.conversation_record import (
    CONVERSATION_COLUMNS,
    RENAMED_ENDS,
    ConversationRecord,
)
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.parquet import load_pyarrow
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import moment_of

from .inputs import Input, InputError

if TYPE_CHECKING:
    import pyarrow

Row = TypeVar("Row", ExchangeRecord, ConversationRecord, MessageRecord, FindingRecord)
BATCH: Final = 4096
"""rows per batch"""
BATCH_BYTES: Final = 16 << 20
"""bytes of lines per batch, plus at most one line"""
_READ: Final = 1 << 20
_JSON: Final = msgspec.json.Decoder()
_LAST_US: Final = ((1 << 63) - 1) // 1000
"""last µs that are a number of ns in 64 bits"""
_ABSENT: Final[dict[str, object]] = {
    "string": "",
    "int": 0,
    "bool": False,
    "time": 0,
}
"""default of an absent column; a list is created for each row"""
_OPTIONAL: Final = frozenset(
    (row, name)
    for row in (ExchangeRecord, ConversationRecord, MessageRecord, FindingRecord)
    for name, type_ in row.__annotations__.items()
    if "None" in str(type_)
)
"""optional columns"""
_TYPES: Final[dict[str, type]] = {
    "string": str,
    "int": int,
    "bool": bool,
    "time": int,
    "list": list,
}


def exchange_rows(entry: Input) -> Iterator[list[ExchangeRecord]]:
    """Yield the exchanges of an input other than captures, in batches."""
    return _rows_of(entry.exchanges, COLUMNS, ExchangeRecord)


def message_rows(entry: Input) -> Iterator[list[MessageRecord]]:
    """Yield the messages of a decoded log in batches; none if it has no such table."""
    return _rows_of(entry.messages, MESSAGE_COLUMNS, MessageRecord)


def conversation_rows(entry: Input) -> Iterator[list[ConversationRecord]]:
    """Yield the TCP connections of an input in batches; none if it has no such table."""
    for rows in _rows_of(entry.conversations, CONVERSATION_COLUMNS, ConversationRecord):
        for row in rows:
            row.end = RENAMED_ENDS.get(row.end, row.end)
        yield rows


def finding_rows(entry: Input) -> Iterator[list[Finding]]:
    """Yield the findings of known kinds in batches; none if the input has no such table."""
    kinds = FindingKind.__members__
    for rows in finding_records(entry):
        yield [
            Finding(kinds[row.kind], row.detail, row.time or 0, 0, -1, -1)
            for row in rows
            if row.kind in kinds
        ]


def finding_records(entry: Input) -> Iterator[list[FindingRecord]]:
    """Yield the findings with their positions in batches; none if the input has no such table."""
    return _rows_of(entry.findings, FINDING_COLUMNS, FindingRecord)


def _rows_of(
    files: Sequence[str] | None, columns: Sequence[Column], row: type[Row]
) -> Iterator[list[Row]]:
    """Yield the rows of files in batches; `columns` are those of `row`, in the same order."""
    for file in files or ():
        if _is_parquet(file):
            yield from _parquet_rows(file, columns, row)
        else:
            for values in _json_values(file, columns):
                yield [row(**_cleaned(item, columns, row)) for item in values]  # type: ignore[arg-type]


def _is_parquet(file: str) -> bool:
    if file.endswith(".parquet"):
        return True
    with open(file, "rb") as stream:
        return stream.read(4) == b"PAR1"


def _parquet_rows(file: str, columns: Sequence[Column], row: type[Row]) -> Iterator[list[Row]]:
    load_pyarrow()
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            there = opened.schema_arrow.names
            names = {stored_name(column.name, there) for column in columns}
            refuse_expanding(file, opened.metadata, names)
            shared = _shared_texts(opened.metadata, names)
        with pyarrow.parquet.ParquetFile(file, read_dictionary=shared) as opened:
            wanted = [name for name in there if name in names]
            for group in range(opened.num_row_groups):  # each has its own shared texts
                for batch in opened.iter_batches(BATCH, [group], wanted):
                    yield _records_in(batch, columns, row)
    except (
        *(pyarrow.ArrowException, OSError, ValueError),
        *(LookupError, ArithmeticError),  # of damaged schemas and of values beyond all types
    ) as error:
        reason = str(error).partition(".")[0] or type(error).__name__
        raise InputError(f"{file} cannot be read: {reason}", "decode the captures again") from None


def refuse_expanding(
    file: str, metadata: pyarrow.parquet.FileMetaData, names: Collection[str]
) -> None:
    """Raise InputError if a column of these exceeds the size allowed for such a file.

    Before reading: a small file could expand to any size.
    """
    most = FREE_BYTES + MOST_TIMES * Path(file).stat().st_size
    for column in _chunks_of(metadata, names):
        if column.total_uncompressed_size > most:
            size = f"{column.total_uncompressed_size:,} bytes"
            raise InputError(
                f"{file}: column {column.path_in_schema} expands to {size}",
                f"the limit for a file of this size is {most:,} bytes",
            )


def _shared_texts(metadata: pyarrow.parquet.FileMetaData, names: Collection[str]) -> list[str]:
    """Return the dictionary-encoded text columns, which stay encoded in memory."""
    shared: dict[str, bool] = {}
    for column in _chunks_of(metadata, names):
        name, is_text = column.path_in_schema, column.physical_type == "BYTE_ARRAY"
        # only if all its row groups are encoded like that, since the reader is told once
        once = is_text and any("DICTIONARY" in item for item in column.encodings)
        shared[name] = once and shared.get(name, True)
    return [name for name, is_shared in shared.items() if is_shared]


def _chunks_of(
    metadata: pyarrow.parquet.FileMetaData, names: Collection[str]
) -> Iterator[pyarrow.parquet.ColumnChunkMetaData]:
    """Yield what each row group says about these columns."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for column in map(row_group.column, range(row_group.num_columns)):
            if column.path_in_schema.partition(".")[0] in names:
                yield column


def _records_in(batch: pyarrow.RecordBatch, columns: Sequence[Column], row: type[Row]) -> list[Row]:
    """Return the rows of a batch with times in ns; `columns` are those of `row`, in order."""
    there = set(batch.schema.names)
    values = []
    for column in columns:
        stored = stored_name(column.name, there)
        optional = (row, column.name) in _OPTIONAL
        if stored in there:
            values.append(_values_in(batch.column(stored), column, optional))
        else:
            values.append([_neutral(column, optional) for _ in range(len(batch))])
    return list(map(row, *values))


def _values_in(array: Any, column: Column, optional: bool) -> list[object]:
    """Return the values of an Arrow array, converted to the column's type and mutable."""
    import pyarrow
    from pyarrow import types

    kind = array.type
    if column.type == "time" and types.is_timestamp(kind):
        # safe=False: other programs write nanoseconds, of which the last three digits are dropped.
        array = array.cast(pyarrow.timestamp("us", tz="UTC"), safe=False).cast(pyarrow.int64())
        values = [
            value * 1000 if value is not None and -_LAST_US <= value <= _LAST_US else None
            for value in array.to_pylist()
        ]
        is_plain = True
    elif column.type == "list" and types.is_list(kind) and not len(array.flatten()):
        # lists are mostly empty; each row needs one of its own, because rows are mutable
        values = [[] if there else None for there in array.is_valid().to_pylist()]
        is_plain = True
    else:
        values = _texts_of(array) if _is_shared(kind) else array.to_pylist()
        # Checked once for all rows: a look at each value takes ten times as long.
        is_plain = _KINDS[column.type](types, kind)
    if not is_plain:
        return [_cleaned_value(value, column, optional) for value in values]
    if column.type == "list":
        values = [value and [item for item in value if item is not None] for value in values]
    if optional or None not in values:
        return values
    return [_neutral(column, optional) if value is None else value for value in values]


_KINDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "string": lambda types, kind: _is_text(types, kind),
    "int": lambda types, kind: types.is_integer(kind) and not types.is_uint64(kind),
    "bool": lambda types, kind: types.is_boolean(kind),
    "time": lambda types, kind: types.is_integer(kind) and not types.is_uint64(kind),
    "list": lambda types, kind: types.is_list(kind) and _is_text(types, kind.value_type),
}
"""Column type -> check whether an Arrow type has only such values."""


def _is_text(types: Any, kind: Any) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_shared(kind: pyarrow.DataType) -> bool:
    import pyarrow

    of = kind.value_type if pyarrow.types.is_list(kind) else kind
    return pyarrow.types.is_dictionary(of)


def _texts_of(array: Any) -> list[object]:
    """Return the values of a column of shared texts, or of lists of them: each text once."""
    import pyarrow

    if pyarrow.types.is_list(array.type):
        inner, bounds = _texts_of(array.values), array.offsets.to_pylist()
        there = array.is_valid().to_pylist()
        return [
            inner[start:end] if valid else None
            for start, end, valid in zip(bounds, bounds[1:], there, strict=False)
        ]
    texts = array.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in array.indices.to_pylist()]


def _json_values(file: str, columns: Sequence[Column]) -> Iterator[list[Mapping[str, object]]]:
    times = [column.name for column in columns if column.type == "time"]
    rows: list[Mapping[str, object]] = []
    size = 0
    for number, line in enumerate(lines_of(file), 1):
        if not line.strip():
            continue
        value = read_json(_JSON, line)
        if not isinstance(value, dict):
            raise InputError(
                f"{file}: line {number} is not a JSON object",
                "its writer may have been interrupted",
            )
        for name in times:
            text = value.get(name)
            if isinstance(text, str):
                moment = moment_of(text)
                value[name] = moment.ns if moment is not None else None
        rows.append(value)
        size += len(line)
        if len(rows) == BATCH or size > BATCH_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def lines_of(file: str) -> Iterable[bytes]:
    """Yield the lines of a file; raise InputError if one is too long."""
    lines = BoundedLines()
    with Path(file).open("rb") as stream:
        try:
            while chunk := stream.read(_READ):
                yield from lines.receive(chunk)
        except LineTooLong as error:
            raise InputError(f"{file} has {error}", "is it a decoded log?") from None
    if last := lines.finish():
        yield last


def _cleaned(
    values: Mapping[str, object], columns: Sequence[Column], row: type
) -> dict[str, object]:
    """Return the values of a row's fields, with defaults if absent or of another type."""
    return {
        column.name: _cleaned_value(
            values.get(stored_name(column.name, values)), column, (row, column.name) in _OPTIONAL
        )
        for column in columns
    }


def _cleaned_value(value: object, column: Column, optional: bool) -> object:
    """Return the value of a column, or its default if absent or of another type."""
    if value is None or not _is_of(value, column.type):
        return _neutral(column, optional)
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return value


def _neutral(column: Column, optional: bool) -> object:
    if optional:
        return None
    return [] if column.type == "list" else _ABSENT[column.type]


def _is_of(value: object, type_: str) -> bool:
    """Return whether a value has the type of a column."""
    # Before int, of which it is a subclass.
    if isinstance(value, bool):
        return type_ == "bool"
    if isinstance(value, int):
        # JSON has integers of any size; the columns have 64 bits.
        fits = -(1 << 63) <= value < 1 << 63
        return type_ in ("int", "time") and fits
    return isinstance(value, _TYPES[type_])


def exchanges_in(batch: pyarrow.RecordBatch) -> list[ExchangeRecord]:
    """Return the exchanges of an Arrow batch."""
    return _records_in(batch, COLUMNS, ExchangeRecord)


def connections_in(batch: pyarrow.RecordBatch) -> list[ConversationRecord]:
    """Return the TCP connections of an Arrow batch."""
    return _records_in(batch, CONVERSATION_COLUMNS, ConversationRecord)


def findings_in(batch: pyarrow.RecordBatch) -> Iterator[Finding]:
    """Yield the findings of known kinds in an Arrow batch; only their kind is read."""
    kinds = FindingKind.__members__
    for name in map(str, batch.column("kind").to_pylist()):
        if name in kinds:
            yield Finding(kinds[name], "", 0, 0, -1, -1)


def messages_in(batch: pyarrow.RecordBatch) -> list[MessageRecord]:
    """Return the messages of an Arrow batch."""
    return _records_in(batch, MESSAGE_COLUMNS, MessageRecord)


def json_text_of(value: object) -> str:
    """Return a struct as JSON that can be encoded as UTF-8."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return msgspec.json.encode(encodable_value(msgspec.to_builtins(value))).decode()
