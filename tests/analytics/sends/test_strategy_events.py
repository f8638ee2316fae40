"""Attempts as numbers: only where no two kinds, and no two producers, have the same one."""

from __future__ import annotations

import pytest

pyarrow = pytest.importorskip("pyarrow")


def kinds(*rows: tuple[int, int, str, str | None]) -> object:
    """Return a table of (kind, producer, client, group)."""
    names = ("kind", "producer", "client", "group")
    table = pyarrow.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    return table.append_column("process", pyarrow.array([None] * len(rows), pyarrow.string()))


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        ([(1, 7, "a", "g"), (2, 7, "a", "g"), (3, 8, "b", "g"), (4, 9, "b", None)], True),
        ([(1, 7, "a", "g"), (1, 7, "a", "g")], False),
        ([(1, 7, "a", "g"), (2, 7, "b", "g")], False),
        ([(1, 7, "b", "g"), (2, 7, "b", None)], False),
    ],
)
def test_numbers_that_tell_apart(rows: list[tuple[int, int, str, str | None]], apart: bool) -> None:
    from analytics.sends.strategy_events import _tells_apart

    assert _tells_apart(kinds(*rows)) == apart
