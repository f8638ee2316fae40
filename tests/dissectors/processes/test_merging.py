"""Rows of several processes are merged to the order that their places have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissectors.processes.encoding import ends_of
from dissectors.processes.merging import (
    merged_lines,
    merged_places,
    places_at,
    rows_of,
    runs_of,
    runs_of_counts,
)

Place = tuple[int, int]


def packed(places: list[Place]) -> bytes:
    return b"".join(number.to_bytes(8, "little") for place in places for number in place)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 3), st.integers(0, 2))), st.data())
def test_any_rows_of_any_processes(rows: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """The rows of one place are of one process, in the order it gave them."""
    owner: dict[Place, int] = {}
    parts: list[list[tuple[Place, bytes]]] = [[], [], []]
    for number, (packet, place, process) in enumerate(rows):
        line = b"%d %s\n" % (number, b"x" * data.draw(st.integers(0, 3)))
        parts[owner.setdefault((packet, place), process)].append(((packet, place), line))
    for part in parts:
        part.sort(key=lambda row: row[0])
    lines = [b"".join(line for _, line in part) for part in parts]
    places = [packed([place for place, _ in part]) for part in parts]
    flat = [row for part in parts for row in part]
    wanted = sorted(range(len(flat)), key=lambda at: flat[at][0])
    assert merged_places([runs_of(one, b"") for one in places]) == wanted
    runs = [runs_of(where, ends_of(one)) for one, where in zip(lines, places, strict=True)]
    views = [memoryview(one) for one in lines]
    pieces, _ = merged_lines(views, runs)
    assert b"".join(pieces) == b"".join(flat[at][1] for at in wanted)

    floor = data.draw(st.integers(0, 100))
    pieces, ends = merged_lines(views, runs, floor)
    assert b"".join(pieces) == b"".join(flat[at][1] for at in wanted if flat[at][0][0] < floor)
    left = [of[at:] for of, (_, at) in zip(runs, ends, strict=True)]
    assert sum(map(rows_of, left)) == sum(place[0] >= floor for place, _ in flat)
    rest = [view[at:] for view, (at, _) in zip(views, ends, strict=True)]
    pieces, _ = merged_lines(rest, left)
    assert b"".join(pieces) == b"".join(flat[at][1] for at in wanted if flat[at][0][0] >= floor)


def test_places_of_some_rows() -> None:
    places: list[Place] = [(1, 0), (1, 1 << 30), (1 << 41, 2)]
    assert places_at(packed(places), [2, 0, 0]) == packed([places[2], places[0], places[0]])
    assert places_at(packed(places), []) == b""


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), max_size=20))
def test_runs_of_what_exchanges_gave(given_rows: list[tuple[int, int]]) -> None:
    """Exchanges that gave no rows have no run; the others have that of their rows."""
    places = packed([(number, number % 3) for number in range(len(given_rows))])
    counts, rows, ends, end = b"", [], [], 0
    for number, (count, size) in enumerate(given_rows):
        for _ in range(count):
            end += size
            rows.append(number)
            ends.append(end)
        if count:
            counts += b"".join(one.to_bytes(8, "little") for one in (number, count, end))
    wanted = runs_of(places_at(places, rows), b"".join(one.to_bytes(8, "little") for one in ends))
    assert runs_of_counts(places, counts) == wanted
