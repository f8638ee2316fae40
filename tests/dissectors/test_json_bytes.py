"""Values written as bytes are what Python writes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from dissectors.json_bytes import (
    NOTHING,
    copy_range,
    digits_of,
    put_hex,
    put_integer,
    put_number,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64)
@example(0)
@example(99_999_999)
@example(100_000_000)
@example(NOTHING)
@example(-(1 << 63))
def test_any_integer(number: int) -> None:
    out = BytesWriter()
    out.write(b"before ")
    put_integer(out, number)
    assert out.getvalue() == b"before %d" % number


@given(st.integers(1 - (1 << 61), 1 << 61))
@example(-1)
def test_numbers(number: int) -> None:
    out = BytesWriter()
    put_number(out, number)
    assert out.getvalue() == b"%d" % number


@given(st.binary(min_size=8, max_size=20), st.integers(0, 12))
def test_hex(data: bytes, at: int) -> None:
    at = min(at, len(data) - 8)
    out = BytesWriter()
    put_hex(out, data, at)
    assert out.getvalue() == data[at : at + 8].hex().upper().encode()


@pytest.mark.parametrize("count", [1, 6, 8])
@given(number=st.integers(0, 1 << 60))
def test_digits(count: int, number: int) -> None:
    digits = digits_of(number, count).to_bytes(8, "little")[:count]
    assert digits.decode() == f"{number:0{count}d}"[-count:]


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_range(data: bytes, at: int, end: int) -> None:
    at, end = sorted((min(at, len(data)), min(end, len(data))))
    out = BytesWriter()
    out.write(b"x")
    copy_range(out, data, at, end)
    assert out.getvalue() == b"x" + data[at:end]
