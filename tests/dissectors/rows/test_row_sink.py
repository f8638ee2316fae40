"""JSON lines of a sink: the values passed to it, whatever runs of nulls are between them."""

from __future__ import annotations

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from dissectors.json_bytes import NOTHING
from dissectors.rows.column import Column
from dissectors.rows.row_sink import JsonSink

NAMES = ("a", "b", "c", "d", "e")
COLUMNS = [Column(name, "int", "", "", "") for name in NAMES]
numbers = st.none() | st.integers(-9, 9)


@given(
    st.lists(st.tuples(*[numbers] * 5), min_size=1, max_size=6),
    st.integers(0, 4),
    st.integers(1, 5),
)
def test_lines_have_all_values(rows: list[tuple[int | None, ...]], first: int, count: int) -> None:
    sink = JsonSink(COLUMNS, with_ends=True)
    for row in rows:
        at = 0
        while at < len(NAMES):
            if at == first:
                values = row[at : at + count]
                sink.shared(sink.part(NAMES[at], values))
                at += len(values)
                continue
            number = row[at]
            sink.number(NAMES[at], NOTHING if number is None else number)
            at += 1
        sink.end()
    lines = [json.dumps(dict(zip(NAMES, row, strict=True)), separators=(",", ":")) for row in rows]
    assert sink.take().decode() == "".join(f"{line}\n" for line in lines)
    ends = sink.take_ends()
    sizes = [int.from_bytes(ends[at : at + 8], "little") for at in range(0, len(ends), 8)]
    assert sizes == [sum(len(line) + 1 for line in lines[: n + 1]) for n in range(len(lines))]


def test_long_texts_are_not_kept() -> None:
    sink = JsonSink([Column(name, "string", "", "", "") for name in NAMES])
    tracemalloc.start()
    try:
        for number in range(len(NAMES)):
            for at, name in enumerate(NAMES):
                sink.text(name, "é" * 1_000_000 if at == number else None)
            sink.end()
            sink.take()
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()
