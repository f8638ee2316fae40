"""Rewrite decoded logs and their rows, JSON lines and Parquet, with the pseudonyms of captures."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from ..decode.decoded_log import (
    FINDING_COLUMNS,
    FORMS,
    MANIFEST,
    Manifest,
    file_in,
    read_manifest,
    write_manifest,
)
from ..decode.growing_log import PARTS
from ..decode.log_parts import CONVERSATIONS, FINDINGS
from ..findings import FindingKind
from ..foreign import Unreadable, json_of
from ..remoting.row_facts import names as facts
from ..rows import conversation_facts as tcp
from ..rows.bounded_lines import LONGEST_LINE, BoundedLines, LineTooLong
from ..rows.column import NAMES
from ..rows.conversation_record import CONVERSATION_COLUMNS
from ..rows.message_record import EVENTS, MESSAGE_COLUMNS
from ..rows.parquet import load_pyarrow
from ..rows.record import COLUMNS, STATUSES
from ..where.fields import ALIASES, MESSAGE_ALIASES
from .pseudonyms import Pseudonyms
from .vocabulary import MEMBERS, MESSAGE_IDS, OWN_WORDS, REMARK_WORDS, SETTINGS

if TYPE_CHECKING:
    import pyarrow

_CRC: Final = "body_crc"
_WORDS: Final = frozenset(
    (
        *("status", "request_name", "response_name", "language", "version_name", "end"),
        *("serialize_type", "outcome_class", "event", "covers", "body_form", "protocol", "start"),
        *("ended_by", "kind", "severity", "directions"),
    )
)
"""Columns with words of rmqtool and the protocol."""
_STAY: Final = {
    name
    for columns in (COLUMNS, MESSAGE_COLUMNS, CONVERSATION_COLUMNS, FINDING_COLUMNS)
    for column in columns
    if column.type not in ("string", "list") or column.name in _WORDS
    if column.name != _CRC
    for name in NAMES.get(column.name, (column.name,))
}
"""Columns that stay: words, numbers, and times, including former column names."""
_NOTE: Final = "note"
"""the column `remark` in a filter"""
_STAY_IN_FILTERS: Final = _STAY | {
    alias.name for alias in (*ALIASES, *MESSAGE_ALIASES) if _STAY.issuperset(alias.columns)
}
"""Columns of filters whose values stay."""
_OWN_VALUES: Final = OWN_WORDS | {*STATUSES, *EVENTS}
"""Words of values that stay."""
_CONNECTORS: Final = ("and", "or", "not", "has", "absent")
_FILTER_WORDS: Final = frozenset(
    (
        *_CONNECTORS,
        *(alias.name for alias in (*ALIASES, *MESSAGE_ALIASES)),
        *(column.name for column in (*COLUMNS, *MESSAGE_COLUMNS)),
    )
)
"""Columns and words of filters."""
_FILTER: Final = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<operator>[=<>~])|(?P<sign>[(),])"""
    r"""|(?P<word>[^\s"'()=<>~!,&|]+)""",
    re.DOTALL,
)
"""What a filter consists of; `!=` and `<=` are an operator and a character that stays."""
_LISTS_OF_FACTS: Final = frozenset(("facts", "brokers"))
_FACTS_OF_IDS: Final = frozenset((facts.FIRST_KEY, facts.TRANSACTION_ID))
_FACTS_OF_NAMES: Final = frozenset(
    (
        *(facts.CLIENT, facts.CONSUMER, facts.PRODUCER, facts.CONSUME_FROM, facts.SUBSCRIPTION),
        *(facts.GROUP, facts.MEMBER, facts.ACCOUNT, facts.MESSAGE_GROUP, facts.CORRELATION),
    )
)
_FACTS_OF_WORDS: Final = frozenset(
    (
        *(facts.TRANSACTION, facts.DECISION, facts.CHECKED, facts.CLIENT_TYPE, facts.MESSAGE_TYPE),
        *(facts.STREAM_RESET, facts.FAULT, tcp.STALL, tcp.LATE, tcp.TLS_OFFERED, tcp.TLS_CHOSEN),
        *(tcp.TLS_ALERT, tcp.TLS_SUITE, tcp.TLS_RESUMED, tcp.TLS_EARLY_DATA),
        *(tcp.TLS_NOT_BEFORE, tcp.TLS_NOT_AFTER),
    )
)
_ALPN: Final = frozenset(("h2", "grpc-exp", "http/1.1", "http/1.0"))
"""Names of protocols that are no names of anybody; others are pseudonyms."""
_LOWER_MEMBERS: Final = frozenset(map(str.lower, MEMBERS))
_CHUNK: Final = 1 << 20
_ROWS: Final = msgspec.json.Decoder(dict[str, Any])
_COMMANDS: Final = frozenset(("ext_fields", "header", "messages"))


class RowsError(ValueError):
    """Rows cannot be rewritten; the text says which, and why."""


def json_lines(file: BinaryIO, names: Pseudonyms) -> Iterator[bytes]:
    """Yield rewritten JSON lines; raise RowsError for lines that are not rows of a decoded log."""
    for number, line in enumerate(_lines_of(file), 1):
        if not line.strip():
            continue
        try:
            row = json_of(_ROWS, line)
        except Unreadable as error:
            raise RowsError(f"line {number} is not a JSON object: {error}") from None
        if not _COMMANDS.isdisjoint(row):
            raise RowsError(f"line {number} has a command; anonymize its capture instead")
        for name in sorted(row, key=_is_said):  # names are recognised in texts once they were seen
            row[name] = _changed(names, name, row[name])
        yield msgspec.json.encode(row) + b"\n"


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    lines = BoundedLines(LONGEST_LINE)
    try:
        for chunk in iter(partial(file.read, _CHUNK), b""):
            yield from lines.receive(chunk)
    except LineTooLong as error:
        raise RowsError(str(error)) from None
    yield lines.finish()


def parquet(path: str, out: BinaryIO, names: Pseudonyms) -> None:
    """Rewrite a Parquet file; raise RowsError if it is damaged."""
    load_pyarrow()
    import pyarrow
    import pyarrow.parquet

    try:
        with (
            pyarrow.parquet.ParquetFile(path) as file,
            pyarrow.parquet.ParquetWriter(out, file.schema_arrow) as writer,
        ):
            for batch in file.iter_batches(8192):
                writer.write_table(_table(pyarrow.Table.from_batches([batch]), names))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition(".")[0]
        raise RowsError(f"it is a damaged Parquet file: {reason}") from None


def _table(table: pyarrow.Table, names: Pseudonyms) -> pyarrow.Table:
    import pyarrow

    columns = sorted(enumerate(table.schema), key=lambda pair: _is_said(pair[1].name))
    for place, column in columns:
        if column.name in _STAY:
            continue
        changed = [_changed(names, column.name, value) for value in table.column(place).to_pylist()]
        array = pyarrow.chunked_array([pyarrow.array(changed, column.type)])
        table = table.set_column(place, column, array)
    return table


def _is_said(column: str) -> bool:
    """Return whether a column has texts that may contain names, to be recognised there."""
    return column in ("remark", "detail")


def _changed(names: Pseudonyms, column: str, value: object) -> object:
    if column in _STAY:
        return value
    change = _change_of(names, column)
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        changed = [change(text) if isinstance(text, str) else None for text in value]
        return sorted(changed, key=str) if column == "brokers" else changed
    if column == _CRC and isinstance(value, int):
        return names.checksum(value)
    # No column has objects: what is not understood is not passed on.
    return value if value is None or isinstance(value, (int, float, bool)) else None


def _change_of(names: Pseudonyms, column: str) -> Callable[[str], str]:
    if column == "remark":
        return names.remark
    if column == "detail":
        return partial(names.remark, words=OWN_WORDS)
    if column in _LISTS_OF_FACTS:
        return lambda text: _fact(names, column, text)
    if column == "findings":
        return lambda text: text if text in FindingKind.__members__ else names.remark(text)
    if column == "body":
        return lambda text: names.body(text.encode("utf-8", "replace")).decode()
    if column in MESSAGE_IDS:
        return names.message_id
    if column == "group":
        return lambda text: ",".join(names.name(part, column) for part in text.split(","))
    return names.value if column.endswith("_address") else partial(names.name, field=column)


def _fact(names: Pseudonyms, column: str, text: str) -> str:
    name, separator, value = text.partition("=")
    if column == "brokers":
        return f"{names.name(name)}{separator}{names.value(value)}"
    if name in _FACTS_OF_IDS:
        value = names.message_id(value)
    elif name in _FACTS_OF_NAMES:
        value = names.name(value, name)
    elif name == tcp.FIRST_BYTES:
        value = "0" * len(value)
    elif name == facts.ROUTE:
        numbers, blank, broker = value.rpartition(" ")
        value = f"{numbers}{blank}{names.name(broker)}"
    elif name == facts.FAULT:
        value = names.fault(value)
    elif name in (tcp.TLS_PROTOCOLS, tcp.TLS_PROTOCOL):
        offered = value.split(",")
        value = ",".join(one if one in _ALPN else names.name(one) for one in offered)
    elif not _is_word(name, value):
        value = " ".join(map(names.value, value.split(" ")))
    return f"{name}{separator}{value}"


def _is_word(name: str, value: str) -> bool:
    """Return whether the value of a fact is a word of rmqtool or the protocol."""
    if name == facts.SETTING:
        return value in SETTINGS or value in REMARK_WORDS
    return name in _FACTS_OF_WORDS or (name == facts.RESPELLED and value.lower() in _LOWER_MEMBERS)


def rewrite_log(folder: Path, out: Path, names: Pseudonyms) -> None:
    """Write a rewritten decoded log into an empty folder.

    Raise DecodedLogError if `folder` is not a log, RowsError if a part cannot be rewritten, and
    OSError.
    """
    manifest = read_manifest(folder)
    files = list(_files_of(folder, manifest))
    if names.learns:  # a first pass collects the names that stay; what it writes is not kept
        with open(os.devnull, "wb") as nowhere:
            for name in files:
                _rewrite(folder, name, nowhere, names)
        names.start_over()
    for name in files:
        path = out / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("wb") as file:
            _rewrite(folder, name, file, names)
    write_manifest(out / MANIFEST, _manifest(manifest, names))


def rewrite_rows(path: Path, out: BinaryIO, names: Pseudonyms) -> None:
    """Rewrite rows, JSON lines or Parquet; raise RowsError if that fails."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            file.seek(0)
            for line in json_lines(file, names):
                out.write(line)
            return
    with tempfile.TemporaryFile(prefix="rmqtool-anonymize-") as made:  # pyarrow needs a file
        parquet(str(path), made, names)
        made.seek(0)
        while piece := made.read(_CHUNK):
            out.write(piece)


def _files_of(folder: Path, manifest: Manifest) -> Iterator[str]:
    for member in PARTS.values():
        for part in getattr(manifest, member):
            yield part.file
    for table in (CONVERSATIONS, FINDINGS):
        for form in FORMS:
            if (folder / f"{table}.{form}").exists():
                yield f"{table}.{form}"


def _rewrite(folder: Path, name: str, out: BinaryIO, names: Pseudonyms) -> None:
    try:
        rewrite_rows(file_in(folder, name), out, names)
    except RowsError as error:
        raise RowsError(f"{name}: {error}") from None


def _manifest(manifest: Manifest, names: Pseudonyms) -> Manifest:
    for capture in manifest.captures:
        capture.name = names.name(capture.name)
    manifest.options = {
        name: _Filter(names).rewritten(value)
        if name == "where" and isinstance(value, str)
        else _option(value, names)
        for name, value in manifest.options.items()
    }
    manifest.replications = [
        replace(
            replication,
            master=names.value(replication.master),
            slave=names.value(replication.slave),
            slave_id=replication.slave_id and names.value(replication.slave_id),
        )
        for replication in manifest.replications
    ]
    return manifest


def _option(value: object, names: Pseudonyms) -> object:
    if isinstance(value, list):
        return [_option(item, names) for item in value]
    return names.remark(value) if isinstance(value, str) else value


class _Filter:
    """Rewrites the values in a filter; columns and operators stay."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names
        self._column = ""
        self._is_value = self._is_list = False

    def rewritten(self, text: str) -> str:
        """Return the filter with pseudonyms."""
        return _FILTER.sub(self._part, text)

    def _part(self, match: re.Match[str]) -> str:
        text = match[0]
        if match["operator"]:
            self._is_value = True
        elif match["sign"]:
            self._is_list = self._is_list and text != ")"
        elif match["quoted"]:
            self._is_value = False
            return f"{text[0]}{self._value(text[1:-1])}{text[0]}"
        elif self._is_value or self._is_list:
            self._is_value = False
            return self._value(text)
        elif text.lower() == "in":
            self._is_list = True
        else:  # a column, a word such as `and`, or the unit of a number
            if text.lower() not in _CONNECTORS:
                self._column = text
            return text if text in _FILTER_WORDS else self._names.remark(text, OWN_WORDS)
        return text

    def _value(self, text: str) -> str:
        if self._column in _STAY_IN_FILTERS:
            return self._names.remark(text, _OWN_VALUES)
        column = "remark" if self._column == _NOTE else self._column
        return _change_of(self._names, column)(text)
