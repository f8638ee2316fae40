"""A sink that holds who writes rows to the declaration of the columns."""

from __future__ import annotations

from collections.abc import Sequence

from dissectors.json_bytes import ABSENT, NOTHING, PLACE_END
from dissectors.rows.column import Column
from dissectors.rows.row_sink import RowPart, RowSink

_TYPES = {"number": "int", "time": "time", "flag": "bool", "text": "string", "texts": "list"}


class NamedSink(RowSink):
    """Rows by the names of their values, which must be those of the columns, in their order."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._row: dict[str, object] = {}
        self.rows: list[dict[str, object]] = []

    @property
    def waiting(self) -> int:
        return len(self.rows)

    def _take(self, name: str, value: object, kind: str = "") -> None:
        column = self._columns[len(self._row)]
        assert name == column.name
        assert not kind or _TYPES[kind] == column.type
        self._row[name] = value

    def number(self, name: str, number: int) -> None:
        self._take(name, None if number == NOTHING else number, "number")

    def integer(self, name: str, number: int) -> None:
        self._take(name, number, "number")

    def time(self, name: str, ns: int) -> None:
        self._take(name, ns, "time")

    def flag(self, name: str, flag: bool) -> None:
        self._take(name, flag, "flag")

    def plain(self, name: str, data: bytes, place: int) -> None:
        text = None if place == ABSENT else data[place >> 32 : place & PLACE_END].decode("ascii")
        self._take(name, text, "text")

    def utf8(self, name: str, data: bytes, start: int, stop: int) -> None:
        self._take(name, data[start:stop].decode("utf-8", "replace") or None, "text")

    def text(self, name: str, text: str | None) -> None:
        self._take(name, text, "text")

    def texts(self, name: str, texts: list[str]) -> None:
        self._take(name, texts, "texts")

    def null(self, name: str) -> None:
        self._take(name, None)

    def value(self, name: str, value: object) -> None:
        self._take(name, value)

    def part(self, name: str, values: Sequence[object]) -> RowPart:
        at = [column.name for column in self._columns].index(name)
        named = [(self._columns[at + place].name, value) for place, value in enumerate(values)]
        return RowPart(named, b"")

    def shared(self, part: RowPart) -> None:
        for pair in part.values:
            assert isinstance(pair, tuple)
            self._take(*pair)

    def end(self) -> None:
        assert len(self._row) == len(self._columns)
        self.rows.append(self._row)
        self._row = {}
