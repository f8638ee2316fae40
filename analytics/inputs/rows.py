"""Rows of decoded logs, single files and journals as structs, without Spark.

Rules: columns that an older log does not have are absent; a value of another type is absent, too.
A damaged file is an `InputError` that names it and says where; nothing else raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dissectors.budget import FREE_BYTES, MOST_TIMES
from dissectors.decode.decoded_log import FINDING_COLUMNS, Finding
from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.foreign import read_json
from dissectors.rows.bounded_lines import BoundedLines, LineTooLong
from dissectors.rows.column import Column
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.parquet import load_pyarrow
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import moment_of

from .inputs import Input, InputError

if TYPE_CHECKING:
    import pyarrow

BATCH: Final = 4096
"""rows that are read at a time"""
BATCH_BYTES: Final = 16 << 20
"""bytes of lines that are read at a time: a line more at most"""
_READ: Final = 1 << 20
_JSON: Final = msgspec.json.Decoder()
_ABSENT: Final[dict[str, object]] = {
    "string": "",
    "int": 0,
    "bool": False,
    "time": 0,
    "list": [],
}
_OPTIONAL: Final = frozenset(
    (row, name)
    for row in (ExchangeRecord, ConversationRecord, MessageRecord, Finding)
    for name, type_ in row.__annotations__.items()
    if "None" in str(type_)
)
"""columns that may be absent"""
_TYPES: Final[dict[str, type]] = {
    "string": str,
    "int": int,
    "bool": bool,
    "time": int,
    "list": list,
}


def exchange_rows(given: Input) -> Iterator[list[ExchangeRecord]]:
    """Yield the exchanges of an input that is not a capture, in batches."""
    for file in given.exchanges:
        for values in _values_of(file, COLUMNS):
            yield [ExchangeRecord(**_cleaned(one, COLUMNS, ExchangeRecord)) for one in values]  # type: ignore[arg-type]


def message_rows(given: Input) -> Iterator[list[MessageRecord]]:
    """Yield the messages of a decoded log, in batches; nothing where it has no such table."""
    for file in given.messages or ():
        for values in _values_of(file, MESSAGE_COLUMNS):
            yield [MessageRecord(**_cleaned(one, MESSAGE_COLUMNS, MessageRecord)) for one in values]  # type: ignore[arg-type]


def conversation_rows(given: Input) -> Iterator[list[ConversationRecord]]:
    """Yield the TCP connections of an input, in batches; nothing where it has none."""
    if given.conversations is not None:
        for values in _values_of(given.conversations, CONVERSATION_COLUMNS):
            yield [
                ConversationRecord(**_cleaned(one, CONVERSATION_COLUMNS, ConversationRecord))  # type: ignore[arg-type]
                for one in values
            ]


def finding_rows(given: Input) -> Iterator[list[ExpertInfo]]:
    """Yield the findings of an input, in batches; nothing where it has none."""
    if given.findings is None:
        return
    kinds = ExpertKind.__members__
    for values in _values_of(given.findings, FINDING_COLUMNS):
        yield [
            ExpertInfo(kinds[str(one["kind"])], str(one.get("detail") or ""), 0, 0, -1, -1)
            for one in values
            if str(one.get("kind")) in kinds
        ]


def finding_records(given: Input) -> Iterator[list[Finding]]:
    """Yield the findings of an input with their places, in batches; nothing where it has none."""
    if given.findings is not None:
        for values in _values_of(given.findings, FINDING_COLUMNS):
            yield [Finding(**_cleaned(one, FINDING_COLUMNS, Finding)) for one in values]  # type: ignore[arg-type]


def _values_of(file: str, columns: Sequence[Column]) -> Iterator[list[Mapping[str, object]]]:
    if file.endswith(".parquet"):
        return _parquet_values(file, columns)
    with open(file, "rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    return _parquet_values(file, columns) if is_parquet else _json_values(file, columns)


def _parquet_values(file: str, columns: Sequence[Column]) -> Iterator[list[Mapping[str, object]]]:
    load_pyarrow()
    import pyarrow
    import pyarrow.parquet

    names = {column.name for column in columns}
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            shared = _shared_texts(file, opened.metadata, names)
        with pyarrow.parquet.ParquetFile(file, read_dictionary=shared) as opened:
            wanted = [name for name in opened.schema_arrow.names if name in names]
            for group in range(opened.num_row_groups):  # each has its own shared texts
                for batch in opened.iter_batches(BATCH, [group], wanted):
                    yield _arrow_values(batch, columns)
    except (pyarrow.ArrowException, OSError, ValueError, IndexError) as error:
        reason = str(error).partition(".")[0] or type(error).__name__
        raise InputError(f"{file} cannot be read: {reason}", "decode the captures again") from None


def _shared_texts(
    file: str, metadata: pyarrow.parquet.FileMetaData, names: Collection[str]
) -> list[str]:
    """Return the columns whose texts are in the file once each; they are so in memory, too.

    Raise InputError where a column becomes more than a file of that size may.
    """
    most = FREE_BYTES + MOST_TIMES * Path(file).stat().st_size
    shared: dict[str, bool] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name = column.path_in_schema
            if name.partition(".")[0] not in names:
                continue
            if column.total_uncompressed_size > most:
                raise InputError(
                    f"{file}: its column {name} becomes {column.total_uncompressed_size:,} bytes",
                    f"no more than {most:,} are made of a file of that size",
                )
            is_text = column.physical_type == "BYTE_ARRAY"
            once = is_text and any("DICTIONARY" in one for one in column.encodings)
            shared[name] = once and shared.get(name, True)
    return [name for name, is_shared in shared.items() if is_shared]


def _arrow_values(
    batch: pyarrow.RecordBatch, columns: Sequence[Column]
) -> list[Mapping[str, object]]:
    """Return the rows of a batch by name of column, times in ns."""
    import pyarrow

    there = set(batch.schema.names)
    values = {}
    for column in columns:
        if column.name not in there:
            continue
        array = batch.column(column.name)
        if column.type == "time" and pyarrow.types.is_timestamp(array.type):
            array = array.cast(pyarrow.timestamp("us", tz="UTC"), safe=False)
            array = array.cast(pyarrow.int64())
            values[column.name] = [
                None if value is None else value * 1000 for value in array.to_pylist()
            ]
        elif _is_shared(array.type):
            values[column.name] = _texts_of(array)
        else:
            values[column.name] = array.to_pylist()
    names = list(values)
    return [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]


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
                f"{file}: line {number} is not a JSON object", "a log whose writing was stopped?"
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
    """Yield the lines of a file; raise InputError where one is too long."""
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
    """Return the values of a row's fields; what is absent or of another type has a neutral one."""
    cleaned: dict[str, object] = {}
    for column in columns:
        value = values.get(column.name)
        if value is not None and not _is_of(value, column.type):
            value = None
        if value is None and (row, column.name) not in _OPTIONAL:
            value = _ABSENT[column.type]
        elif isinstance(value, list):
            value = [one for one in value if isinstance(one, str)]
        cleaned[column.name] = value
    return cleaned


def _is_of(value: object, type_: str) -> bool:
    """Return whether a value is one of a column of that type."""
    if isinstance(value, bool):
        return type_ == "bool"
    if isinstance(value, int):
        fits = -(1 << 63) <= value < 1 << 63
        return type_ in ("int", "time") and fits
    return isinstance(value, _TYPES[type_])


def exchanges_in(batch: pyarrow.RecordBatch) -> list[ExchangeRecord]:
    """Return the exchanges of an Arrow batch; times are timestamps of microseconds."""
    values = _arrow_values(batch, COLUMNS)
    return [ExchangeRecord(**_cleaned(one, COLUMNS, ExchangeRecord)) for one in values]  # type: ignore[arg-type]


def connections_in(batch: pyarrow.RecordBatch) -> list[ConversationRecord]:
    """Return the TCP connections of an Arrow batch; times are timestamps of microseconds."""
    values = _arrow_values(batch, CONVERSATION_COLUMNS)
    return [
        ConversationRecord(**_cleaned(one, CONVERSATION_COLUMNS, ConversationRecord))  # type: ignore[arg-type]
        for one in values
    ]


def findings_in(batch: pyarrow.RecordBatch) -> Iterator[ExpertInfo]:
    """Yield the findings of known kinds in an Arrow batch; all that is read of them is the kind."""
    kinds = ExpertKind.__members__
    for name in map(str, batch.column("kind").to_pylist()):
        if name in kinds:
            yield ExpertInfo(kinds[name], "", 0, 0, -1, -1)


def messages_in(batch: pyarrow.RecordBatch) -> list[MessageRecord]:
    """Return the messages of an Arrow batch; times are timestamps of microseconds."""
    values = _arrow_values(batch, MESSAGE_COLUMNS)
    return [MessageRecord(**_cleaned(one, MESSAGE_COLUMNS, MessageRecord)) for one in values]  # type: ignore[arg-type]


def json_text_of(value: object) -> str:
    """Return a struct as JSON that UTF-8 can write."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair
        return msgspec.json.encode(encodable_value(msgspec.to_builtins(value))).decode()
