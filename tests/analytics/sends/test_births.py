"""How long before its send a message was born: SQL, Python and NumPy say the same of every key."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.sends.births import lead_of, lead_sql, mark_of, marks_in
from dissectors.remoting.ids.message_ids import KEY_LENGTHS, decode_unique_key
from tests.analytics.rows import evaluated, row

KEY = "7F00000100002A9F00000000000186A0"
_HEX = "0123456789ABCDEFabcdef"
_KEYS = st.one_of(
    st.none(),
    st.sampled_from(KEY_LENGTHS).flatmap(lambda size: st.text(_HEX, min_size=size, max_size=size)),
    st.sampled_from(KEY_LENGTHS).flatmap(
        lambda size: st.text(_HEX + "-Gx \n", min_size=size, max_size=size)
    ),
    st.text(max_size=60),
)
HOSTILE = (
    *(KEY[:20] + digits + KEY[28:] for digits in ("-FFFFFFF", " 1234567", "0x123456", "FFFFFFFF")),
    *(KEY[:-1] + last for last in ("G", "\n", " ", "-")),
    *("", "-" * 32, "é" * 16, "0" * 30 + "é", "F" * 56, "F" * 33, KEY.lower(), "x" * 5000),
)
"""Texts where a UNIQ_KEY should be."""
TIMES = (0, 1, 1_763_632_800_123_456, 253_402_300_799_999_999, -62_135_596_800_000_000)


@given(st.lists(_KEYS, max_size=20), st.integers(0, 3))
def test_numpy_finds_the_marks_of_python(keys: list[str | None], skipped: int) -> None:
    column = pyarrow.chunked_array([pyarrow.array(keys[:3], pyarrow.string()),
                                    pyarrow.array(keys[3:], pyarrow.string())])  # fmt: skip
    expected = [-1 if key is None else _or_none(mark_of(key)) for key in keys]
    ascii_only = [key is None or key.isascii() for key in keys]
    found = marks_in(column.slice(skipped)).tolist()
    for mine, theirs, plain in zip(found, expected[skipped:], ascii_only[skipped:], strict=True):
        assert mine == theirs or not plain, "of other texts bytes and characters differ in number"


def _or_none(mark: int | None) -> int:
    return -1 if mark is None else mark


@given(st.lists(st.tuples(st.integers(0, 2**48 - 1), st.integers(-(2**60), 2**60)), max_size=20))
def test_numpy_finds_the_leads_of_python(sends: list[tuple[int, int]]) -> None:
    marks, begins = (np.array([one[n] for one in sends], dtype=np.int64) for n in (0, 1))
    assert lead_of(marks, begins).tolist() == [lead_of(mark, begin) for mark, begin in sends]


def test_the_birth_is_that_of_the_whole_key() -> None:
    """The month begins at another time in each zone, by whole quarters of an hour."""
    mark = mark_of(KEY)
    key = decode_unique_key(KEY)
    assert mark is not None
    assert key is not None
    assert (mark >> 16, mark & 0xFFFF) == (1, 0x86A0)
    for zone in (0, 15, 330, -210):
        begin = (7 + 1 + zone * 60_000) * 1000
        assert lead_of(mark, begin) == 7000


@pytest.mark.parametrize("time", TIMES)
def test_sql_says_what_python_says(time: int) -> None:
    lead = lead_sql("unique_key", f"{time}L")
    exchanges = [row(unique_key=key) for key in HOSTILE]
    rows = evaluated(exchanges, "unique_key as key", f"{lead} as lead")
    assert len(rows) == len(HOSTILE)
    for one in rows:
        key = str(one["key"])
        mark = mark_of(key) if key.isascii() else None
        assert one["lead"] == (None if mark is None else lead_of(mark, time)), key
