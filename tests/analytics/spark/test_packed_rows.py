"""Packed rows: each row comes out once, with the others of its slot."""

from __future__ import annotations

from datetime import UTC
from itertools import pairwise

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.spark import packed_rows as packing
from analytics.spark.packed_rows import SLOT, packed_rows, unpacked
from analytics.sql.engine import with_texts

_SCHEMA = pyarrow.schema(
    {
        "text": pyarrow.string(),
        "name": pyarrow.string(),
        "number": pyarrow.int64(),
        "time": pyarrow.timestamp("us", "UTC"),
        "facts": pyarrow.list_(pyarrow.string()),
        SLOT: pyarrow.int32(),
    }
)
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.text(max_size=5),
            "name": st.sampled_from([None, "a", "b"]),
            "number": st.none() | st.integers(-(2**63), 2**63 - 1),
            "time": st.none() | st.datetimes(timezones=st.just(UTC)),
            "facts": st.none() | st.lists(st.sampled_from(["x=1", "y"]), max_size=2),
            SLOT: st.integers(0, 4),
        }
    ),
    max_size=40,
)


@given(_ROWS, st.lists(st.integers(0, 40), max_size=4), st.sampled_from([1, 7, 1 << 18]))
def test_each_row_comes_out_with_its_slot(
    rows: list[dict[str, object]], cuts: list[int], most: int
) -> None:
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    whole = pyarrow.Table.from_pylist(rows, _SCHEMA)
    batches = [batch for a, b in pairwise(places) for batch in whole.slice(a, b - a).to_batches()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_MOST_ROWS", most)
        packed = list(packed_rows(batches, 5))
    found: list[dict[str, object]] = []
    for batch in packed:
        for place, slot in enumerate(batch.column(SLOT).to_pylist()):
            for some in unpacked([batch.slice(place, 1)]):
                plain = with_texts(pyarrow.Table.from_batches([some]))
                found += [{**row, SLOT: slot} for row in plain.to_pylist()]
    assert sorted(found, key=repr) == sorted(whole.to_pylist(), key=repr)


def test_texts_are_codes_where_few_differ() -> None:
    batch = pyarrow.record_batch(
        {
            "same": ["broker-a"] * 1000,
            "different": [f"key {number}" for number in range(1000)],
            SLOT: pyarrow.array([number % 4 for number in range(1000)], pyarrow.int32()),
        }
    )
    (packed,) = packed_rows([batch], 4)
    assert packed.num_rows == 4
    for some in unpacked([packed]):
        assert some.num_rows == 250
        assert pyarrow.types.is_dictionary(some.column("same").type)
        assert pyarrow.types.is_string(some.column("different").type)
