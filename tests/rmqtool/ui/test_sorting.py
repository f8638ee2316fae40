"""Rows in the order of time: all of them, once, and with bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.ui import sorting
from rmqtool.ui.sorting import by_key

Row = tuple[int | None, int]


def time(row: Row) -> int | None:
    return row[0]


@given(st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=200), st.integers(1, 70))
def test_rows_come_once_and_in_order(times: list[int | None], part: int) -> None:
    rows = [(at, number) for number, at in enumerate(times)]
    batches = [rows[start : start + 7] for start in range(0, len(rows), 7)]
    found = [row for batch in by_key(batches, time, part) for row in batch]
    assert found == sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, row[1]))


def test_few_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "FILES", 3)
    rows = [(number * 7 % 50, number) for number in range(400)]
    before = len(list(Path("/proc/self/fd").iterdir()))
    with sorting.SortedRows(time, 4) as kept:
        for start in range(0, len(rows), 4):
            kept.add(rows[start : start + 4])
        assert (
            len(list(Path("/proc/self/fd").iterdir())) - before <= 2 * 5
        )  # 100 parts, 3 ** 4 < 100
        found = [row for batch in kept.batches() for row in batch]
    assert found == sorted(rows)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_nothing_is_left_and_little_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    read = 0

    def batches() -> Iterator[Sequence[Row]]:
        nonlocal read
        for number in range(100):
            read += 1
            yield [(1000 - number, number)] * 10

    found = by_key(batches(), time, 50)
    assert [next(found) for _ in range(100)] == [()] * 100
    assert read == 100
    assert next(found)[0] == (901, 99)
    found.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with sorting.SortedRows(time, 4) as kept, pytest.raises(OSError, match="No space") as error:
        kept.add([(number, number) for number in range(8)])
    assert error.value.filename == tempfile.gettempdir()
