"""Exchanges as text rows: JSON lines and CSV, one row per record, in column order.

Rules: times are ISO 8601 in UTC with microseconds and ``Z``. JSON lines are exact. CSV is for
spreadsheets and people: a row is one line, and no text is a formula. An absent value is ``null`` in
JSON and an empty cell in CSV. No record content raises an error.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import IO, Any

import msgspec

from ..printable import printable
from ..times import text_of_time
from .encoded import EncodedRows, Lines
from .record import COLUMNS, ExchangeRecord
from .timed_rows import TextTimes

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_FORMULA_LATER = re.compile(r"""(;[\s"]*)(?=[=+\-@])""")
_CELLS_KEPT = 10_000
_ENCODER = msgspec.json.Encoder()


def encodable(text: str) -> str:
    """Return `text` with ``?`` for characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def encodable_value(value: object) -> object:
    """Return a JSON value with ``?`` for characters that UTF-8 cannot encode, keys included."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, (list, tuple)):
        return [encodable_value(item) for item in value]
    if isinstance(value, dict):
        return {encodable(str(name)): encodable_value(item) for name, item in value.items()}
    return value


Encode = Callable[[Sequence[Any]], bytes]
"""encodes rows as lines"""


def json_lines_of(columns: Iterable[tuple[str, str, Callable[[Any], object]]]) -> Encode:
    """Return an encoder of rows as JSON lines, for columns of (name, type, getter)."""
    chosen = list(columns)

    def value_of(row: object, type_: str, get: Callable[[object], object]) -> object:
        value = get(row)
        return text_of_time(value) if type_ == "time" and isinstance(value, int) else value

    def lines_of(rows: Sequence[object]) -> bytes:
        objects = [{name: value_of(row, type_, get) for name, type_, get in chosen} for row in rows]
        try:
            return _ENCODER.encode_lines(objects)
        except UnicodeEncodeError:  # a lone surrogate, which a JSON header can contain
            return _ENCODER.encode_lines([encodable_value(item) for item in objects])

    return lines_of


def row_encoder(columns: Iterable[tuple[str, str]]) -> Encode:
    """Return an encoder of rows as JSON lines, for attributes of (name, type)."""
    return json_lines_of((name, kind, attrgetter(name)) for name, kind in columns)


def struct_encoder(row: type[msgspec.Struct], columns: Iterable[tuple[str, str]]) -> Encode:
    """Return an encoder of structs as JSON lines, whose fields are the columns in order.

    Structs are encoded directly, except for times: several times faster than by columns.
    """
    chosen = list(columns)
    if tuple(name for name, _ in chosen) != row.__struct_fields__:
        raise ValueError(f"the columns are not the fields of {row.__name__}")
    times = TextTimes([name for name, kind in chosen if kind == "time"])
    by_columns = row_encoder(chosen)

    def encode(rows: Sequence[object]) -> bytes:
        try:
            return times.encoded(rows, _ENCODER.encode_lines)
        except UnicodeEncodeError:
            return by_columns(rows)

    return encode


_exchange_lines = struct_encoder(ExchangeRecord, [(one.name, one.type) for one in COLUMNS])


def jsonl_of(records: Sequence[ExchangeRecord]) -> bytes:
    """Return one JSON object per line; the records are unchanged afterwards."""
    return _exchange_lines(records)


class JsonRows:
    """A JSON lines file being written; call `close` after `finish`, or instead of it."""

    def __init__(self, path: str, encode: Encode) -> None:
        """`encode` makes lines of rows."""
        self.rows = 0
        """rows written so far"""
        self._encode = encode
        self._file: IO[bytes] | None = open(path, "wb", buffering=1 << 18)  # noqa: SIM115

    def write(self, rows: Sequence[object]) -> None:
        """Add rows."""
        if self._file is not None:
            self.rows += len(rows)
            self._file.write(self._encode(rows))

    def write_encoded(self, rows: EncodedRows) -> None:
        """Add encoded lines."""
        if self._file is not None and isinstance(rows, Lines):
            self.rows += sum(rows.counts)
            self._file.writelines(rows.pieces)

    def finish(self) -> None:
        """Write the remaining rows."""
        self.close()

    def close(self) -> None:
        """Close the file; without a preceding `finish`, rows may be missing."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


def csv_header() -> bytes:
    """Return the header line with the column names."""
    return _csv_lines([tuple(column.name for column in COLUMNS)])


def csv_of(records: Sequence[ExchangeRecord]) -> bytes:
    """Return one line per record."""
    return _csv_rows(_CSV_COLUMNS, records)


def csv_lines_of(
    columns: Iterable[tuple[str, str, Callable[[object], object]]],
) -> tuple[bytes, Callable[[Sequence[object]], bytes]]:
    """Return the header line, and an encoder of rows, for these columns.

    A column is (name, type, getter).
    """
    chosen = list(columns)
    cells = [(get, _CELLS[type_]) for _, type_, get in chosen]
    return _csv_lines([tuple(c[0] for c in chosen)]), lambda rows: _csv_rows(cells, rows)


def _csv_rows(cells: Sequence[_Cells], rows: Sequence[object]) -> bytes:
    columns = [make(map(get, rows)) for get, make in cells]
    return _csv_lines(zip(*columns, strict=True))


def _csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    import csv  # keep it out of the start of every command

    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def safe_cell(text: str) -> str:
    """Return `text` as a safe spreadsheet cell: printable, and never a formula."""
    if text.startswith(_FORMULA_STARTS):
        text = "'" + text  # spreadsheets show what follows as text
    # In locales with a decimal comma, a spreadsheet splits cells at each `;`, even within quotes.
    if ";" in text:
        text = _FORMULA_LATER.sub(r"\1'", text)
    return text if text.isprintable() else printable(text)


class _SafeCells(dict[object, object]):
    """Cache of text -> safe cell; most columns repeat their texts."""

    def __missing__(self, value: object) -> object:
        if len(self) >= _CELLS_KEPT:
            self.clear()
        cell = self[value] = safe_cell(value) if isinstance(value, str) else value
        return cell


def _text_cells(values: Iterable[object]) -> list[object]:
    return list(map(_SafeCells().__getitem__, values))


def _time_cells(values: Iterable[object]) -> list[object]:
    return [text_of_time(value) if isinstance(value, int) else None for value in values]


def _list_cells(values: Iterable[object]) -> list[object]:
    joined = (" ".join(map(str, value)) if isinstance(value, list) else None for value in values)
    return _text_cells(joined)


_CELLS: dict[str, Callable[[Iterable[object]], list[object]]] = {
    "string": _text_cells,
    "int": list,
    "bool": lambda values: [None if one is None else str(one).lower() for one in values],
    "time": _time_cells,
    "list": _list_cells,
}
_Cells = tuple[Callable[[object], object], Callable[[Iterable[object]], list[object]]]


_CSV_COLUMNS: list[_Cells] = [(attrgetter(one.name), _CELLS[one.type]) for one in COLUMNS]
