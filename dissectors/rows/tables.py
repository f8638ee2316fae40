"""Exchanges as text rows: JSON lines and CSV, one row per record, in the order of its columns.

Rules: times are ISO 8601 in UTC with microseconds and ``Z``. JSON lines are exact. CSV is for
spreadsheets and eyes: what does not print is escaped, so that a row is one line, and a text that a
spreadsheet would run as a formula, also where it splits at `;`, gets an apostrophe before it. An
absent value is ``null`` in JSON and an empty cell in CSV. Nothing here raises because of what a
record contains.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from ..printable import printable
from ..times import text_of_time
from .record import COLUMNS, ExchangeRecord
from .timed_rows import with_text_times

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_FORMULA_LATER = re.compile(r"""(;[\s"]*)(?=[=+\-@])""")
_CELLS_KEPT = 10_000
_TEXT_COLUMNS = [column.name for column in COLUMNS if column.type == "string"]
_ENCODER = msgspec.json.Encoder()


def jsonl_of(records: Sequence[ExchangeRecord]) -> bytes:
    """Return one JSON object per line; the records are afterwards as they were."""
    return with_text_times(records, _encoded)


def _encoded(records: Sequence[ExchangeRecord]) -> bytes:
    try:
        return _ENCODER.encode_lines(records)
    except UnicodeEncodeError:  # half a surrogate pair: a JSON header can bring one
        return _ENCODER.encode_lines([_encodable(record) for record in records])


def encodable(text: str) -> str:
    """Return `text` with ``?`` for what UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode()


def encodable_value(value: object) -> object:
    """Return a value of JSON types with ``?`` for what UTF-8 cannot write, names included."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, (list, tuple)):
        return [encodable_value(item) for item in value]
    if isinstance(value, dict):
        return {encodable(str(name)): encodable_value(item) for name, item in value.items()}
    return value


def _encodable(record: ExchangeRecord) -> ExchangeRecord:
    texts = {name: getattr(record, name) for name in _TEXT_COLUMNS}
    return replace(record, **{name: encodable(text) for name, text in texts.items() if text})


def json_lines_of(
    columns: Iterable[tuple[str, str, Callable[[object], object]]],
) -> Callable[[Sequence[object]], bytes]:
    """Return what makes JSON lines of rows, with these columns."""
    chosen = list(columns)

    def value_of(row: object, type_: str, get: Callable[[object], object]) -> object:
        value = get(row)
        return text_of_time(value) if type_ == "time" and isinstance(value, int) else value

    def lines_of(rows: Sequence[object]) -> bytes:
        objects = [{name: value_of(row, type_, get) for name, type_, get in chosen} for row in rows]
        try:
            return _ENCODER.encode_lines(objects)
        except UnicodeEncodeError:  # half a surrogate pair: a JSON header can bring one
            return _ENCODER.encode_lines([encodable_value(one) for one in objects])

    return lines_of


def csv_header() -> bytes:
    """Return the line with the names of the columns."""
    return _csv_lines([tuple(column.name for column in COLUMNS)])


def csv_of(records: Sequence[ExchangeRecord]) -> bytes:
    """Return one line per record."""
    return _csv_rows(_CSV_COLUMNS, records)


def csv_lines_of(
    columns: Iterable[tuple[str, str, Callable[[object], object]]],
) -> tuple[bytes, Callable[[Sequence[object]], bytes]]:
    """Return the line with the names of these columns, and what makes lines of rows with them.

    A column is its name, its type, and what takes its value from a row.
    """
    chosen = list(columns)
    cells = [(get, _CELLS[type_]) for _, type_, get in chosen]
    return _csv_lines([tuple(c[0] for c in chosen)]), lambda rows: _csv_rows(cells, rows)


def _csv_rows(cells: Sequence[_Cells], rows: Sequence[object]) -> bytes:
    columns = [make(map(get, rows)) for get, make in cells]
    return _csv_lines(zip(*columns, strict=True))


def _csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    import csv  # not what the start of every command waits for

    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def safe_cell(text: str) -> str:
    """Return `text` as a spreadsheet may open it: printable, and never a formula.

    Where the decimal sign is a comma a spreadsheet splits cells at each `;`, also within quotes.
    """
    if text.startswith(_FORMULA_STARTS):
        text = "'" + text
    if ";" in text:
        text = _FORMULA_LATER.sub(r"\1'", text)
    return text if text.isprintable() else printable(text)


class _SafeCells(dict[object, object]):
    """Text -> the text as a cell; most columns repeat theirs."""

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
