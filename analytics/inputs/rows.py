"""Rows of decoded logs, single files and journals as structs, without Spark.

Rules: columns that an older log does not have are absent; a value of another type is absent, too.
A damaged file is an `InputError` that names it and says where; nothing else raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from dissectors.decode.decoded_log import FINDING_COLUMNS
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
    for row in (ExchangeRecord, ConversationRecord, MessageRecord)
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
    """Yield the exchanges of an input that is no capture, in batches."""
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
            wanted = [name for name in opened.schema_arrow.names if name in names]
            for batch in opened.iter_batches(BATCH, columns=wanted):
                yield _arrow_values(batch, columns)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition(".")[0] or type(error).__name__
        raise InputError(f"{file} cannot be read: {reason}", "decode the captures again") from None


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
        else:
            values[column.name] = array.to_pylist()
    names = list(values)
    return [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _json_values(file: str, columns: Sequence[Column]) -> Iterator[list[Mapping[str, object]]]:
    times = [column.name for column in columns if column.type == "time"]
    rows: list[Mapping[str, object]] = []
    for number, line in enumerate(_lines_of(file), 1):
        if not line.strip():
            continue
        value = read_json(_JSON, line)
        if not isinstance(value, dict):
            raise InputError(
                f"{file}: line {number} is no JSON object", "a log whose writing was stopped?"
            )
        for name in times:
            text = value.get(name)
            if isinstance(text, str):
                moment = moment_of(text)
                value[name] = moment.ns if moment is not None else None
        rows.append(value)
        if len(rows) == BATCH:
            yield rows
            rows = []
    if rows:
        yield rows


def _lines_of(file: str) -> Iterable[bytes]:
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
