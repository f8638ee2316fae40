"""Keys that repeat: NumPy, of packed keys, finds those that groups find."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.spark import repeated_keys

if TYPE_CHECKING:
    from collections.abc import Iterable


_LONG = st.integers(-(2**63), 2**63 - 1)
_SENDS = st.lists(
    st.tuples(st.one_of(st.integers(-3, 3), _LONG, st.sampled_from([-(2**63), 2**63 - 1])),
              st.booleans()),
    max_size=60,
)  # fmt: skip


def _batch(sends: Iterable[tuple[int, bool]]) -> pyarrow.RecordBatch:
    rows = list(sends)
    return pyarrow.record_batch(
        {
            "key": pyarrow.array([key for key, _ in rows], pyarrow.int64()),
            "wrong": pyarrow.array([wrong for _, wrong in rows], pyarrow.bool_()),
        }
    )


def _told(packed: Iterable[pyarrow.RecordBatch]) -> list[int]:
    """Return what the slots tell, as Spark brings their rows together."""
    rows = [one for batch in packed for one in batch.to_pylist()]
    slots = {one["slot"] for one in rows}
    binary = pyarrow.binary()
    schema = pyarrow.schema([("slot", pyarrow.int32()), ("keys", binary), ("told", binary)])
    found = [
        repeated_keys.keys_of_slot(
            pyarrow.Table.from_pylist([one for one in rows if one["slot"] == slot], schema)
        )
        for slot in slots
    ]
    return [key for table in found for key in table.column("key").to_pylist()]


@given(
    _SENDS,
    st.lists(st.integers(0, 60), max_size=4),
    st.sampled_from([1, 7, 1 << 20]),
    st.integers(0, 2**63 - 1),
    st.sampled_from([1, 4, 70]),
)
def test_keys_that_repeat_or_went_wrong_are_told_once(
    sends: list[tuple[int, bool]], cuts: list[int], most: int, factor: int, slots: int
) -> None:
    places = [0, *sorted(min(cut, len(sends)) for cut in cuts), len(sends)]
    batches = [_batch(sends[a:b]) for a, b in pairwise(places)]
    seen = Counter(key for key, _ in sends)
    expected = {key for key, wrong in sends if wrong or seen[key] > 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_keys, "_MOST_KEYS", most)
        found = _told(repeated_keys.packed_keys(batches, 2 * factor + 1, slots))
    assert sorted(found) == sorted(expected)


def test_a_task_holds_so_many_keys_at_most() -> None:
    taken = 0

    def batches() -> Iterable[pyarrow.RecordBatch]:
        nonlocal taken
        for start in range(0, 50_000, 1_000):
            taken += 1_000
            yield _batch((key, False) for key in range(start, start + 1_000))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_keys, "_MOST_KEYS", 5_000)
        given_away = 0
        for packed in repeated_keys.packed_keys(batches(), 1, 4):
            given_away += sum(len(one) for one in packed.column("keys").to_pylist()) // 8
            assert taken - given_away < 6_000
    assert given_away == 50_000


def test_nobody_can_fill_one_slot() -> None:
    alike = [(number, False) for number in range(20_000)]  # by their first bits
    (packed,) = repeated_keys.packed_keys([_batch(alike)], repeated_keys.random_factor(), 200)
    sizes = [len(one) // 8 for one in packed.column("keys").to_pylist()]
    assert sum(sizes) == len(alike)
    assert max(sizes) < 2_000
    (packed,) = repeated_keys.packed_keys([_batch([(5, True)] * 20_000)], 1, 200)
    assert [sum(map(len, packed.column(name).to_pylist())) for name in ("keys", "told")] == [8, 8]
