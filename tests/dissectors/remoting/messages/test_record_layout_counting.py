"""Counting without decoding: what a body proves, and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.messages.record_layout import count_batch, count_messages

from ..vectors import BATCH, STORED_V4, STORED_V6

FILLER = b"\0\0\0\x0c" + b"\xcb\xd4\x31\x94" + bytes(4)


@pytest.mark.parametrize(
    ("body", "missing", "count"),
    [
        (b"", 0, 0),
        (STORED_V4 * 7 + STORED_V6, 0, 8),
        (STORED_V4 + FILLER + STORED_V6, 0, 2),
        (STORED_V4 + b"\0" * 20, 0, 1),
        (STORED_V4 + STORED_V6[:-1], 0, 1),
        (STORED_V4 + STORED_V6[:-1], 1, 2),
        (STORED_V4 + STORED_V6[:-2], 1, 1),
        (STORED_V4 + STORED_V6[:7], 9999, 1),
        (b"\0\0\0\x5a" + STORED_V4[4:], 0, 0),
        (b"\x7f\xff\xff\xff" + STORED_V4[4:], 0, 0),
        (b"\0\0\0\0" + b"\xcb\xd4\x31\x94", 0, 0),
    ],
)
def test_stored_messages(body: bytes, missing: int, count: int) -> None:
    assert count_messages(body, missing) == count


@pytest.mark.parametrize(
    ("body", "missing", "count"),
    [
        (BATCH * 3, 0, 6),
        (BATCH[:-1], 0, 1),
        (BATCH[:-1], 1, 2),
        (BATCH[:-2], 1, 1),
        (b"\0\0\0\x15" + bytes(30), 0, 0),
        (b"\0\0\0\x16" + b"\0\0\0\1" + bytes(14), 0, 0),
        (b"\0\0\0\x16" + bytes(18), 0, 1),
    ],
)
def test_batches(body: bytes, missing: int, count: int) -> None:
    assert count_batch(body, missing) == count


@given(st.binary(max_size=300), st.integers(0, 1000))
def test_any_bytes(body: bytes, missing: int) -> None:
    for data in (body, STORED_V4 + body):
        assert 0 <= count_messages(data, missing) <= len(data) // 8
    assert 0 <= count_batch(BATCH + body, missing) <= len(BATCH + body) // 8
