"""Rows of the decoded log as JSON lines: the form that needs no library to be read.

Rules: names and order are those of the columns; times are ISO 8601 in UTC with microseconds and
``Z``; an absent value is ``null``. Nothing here raises because of what a row contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import IO

import msgspec

from ..times import text_of_time
from .encoded import EncodedRows, Lines
from .tables import encodable
from .timed_rows import TimesOfColumns, given_texts, with_texts

_ENCODER = msgspec.json.Encoder()
Encode = Callable[[Sequence[object]], bytes]


def struct_encoder(
    row: type[msgspec.Struct], columns: Iterable[tuple[str, str]], *, kept: bool = True
) -> Encode:
    """Return what makes lines of structs of one class, whose fields are the columns, in order.

    Structs are encoded as they are, but for their times: several times faster than by columns.
    `kept`: somebody needs the rows afterwards; others are given texts for their times.
    """
    chosen = list(columns)
    if tuple(name for name, _ in chosen) != row.__struct_fields__:
        raise ValueError(f"the columns are not the fields of {row.__name__}")
    times = TimesOfColumns([name for name, kind in chosen if kind == "time"])
    by_column = row_encoder(chosen)
    timed = with_texts if kept else given_texts

    def encode(rows: Sequence[object]) -> bytes:
        try:
            return _ENCODER.encode_lines(timed(rows, times))
        except UnicodeEncodeError:  # half a surrogate pair
            return by_column(rows)

    return encode


def row_encoder(columns: Iterable[tuple[str, str]]) -> Encode:
    """Return what makes lines of rows that have these columns: (name, type as in `Column`)."""
    chosen = [(name, kind, attrgetter(name)) for name, kind in columns]

    def encode(rows: Sequence[object]) -> bytes:
        return _ENCODER.encode_lines(
            [{name: _value(kind, get(row)) for name, kind, get in chosen} for row in rows]
        )

    return encode


def _value(kind: str, value: object) -> object:
    if kind == "time" and isinstance(value, int):
        return text_of_time(value)
    return encodable(value) if isinstance(value, str) else value


class JsonRows:
    """A file of JSON lines that is being written; `close` after `finish` or instead of it."""

    def __init__(self, path: str, encode: Encode) -> None:
        """`encode` makes lines of rows."""
        self.rows = 0
        """rows given so far"""
        self._encode = encode
        self._file: IO[bytes] | None = open(path, "wb", buffering=1 << 18)  # noqa: SIM115

    def write(self, rows: Sequence[object]) -> None:
        """Add rows."""
        if self._file is not None:
            self.rows += len(rows)
            self._file.write(self._encode(rows))

    def write_encoded(self, rows: EncodedRows) -> None:
        """Add rows that are lines."""
        if self._file is not None and isinstance(rows, Lines):
            self.rows += sum(rows.counts)
            self._file.writelines(rows.pieces)

    def finish(self) -> None:
        """Write what is left."""
        self.close()

    def close(self) -> None:
        """Close the file; without `finish` before it, rows may be missing."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
