"""The writer against texts that fastjson wrote, and against our own reader."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.fastjson.codec import decode_json, encode_json
from dissectors.remoting.fastjson.reader import PairMap


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({0: "10.0.0.1:10911", 1: "x"}, '{0:"10.0.0.1:10911",1:"x"}'),
        (PairMap([({"queueId": 2}, 123)]), '{{"queueId":2}:123}'),
        ([None, True, False, -1, "x", []], '[null,true,false,-1,"x",[]]'),
        ('a\nb\tc"d\\e/f\0\x1f\x7f\u2028', r'"a\nb\tc\"d\\e/f\u0000\u001F\u007F\u2028"'),
        ("集群", '"集群"'),
        (b"\x09\x02", '"CQI="'),
        (9223372036854775807, "9223372036854775807"),
        (0.0, "0.0"),
        (1e10, "1.0E10"),
        (-1234567890.5, "-1.2345678905E9"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (math.inf, "null"),
        (math.nan, "null"),
    ],
)
def test_texts(value: object, text: str) -> None:
    assert encode_json(value) == text.encode()


def test_ascii_only() -> None:
    assert encode_json("集群😀", ascii_only=True) == rb'"\u96C6\u7FA4\uD83D\uDE00"'
    assert encode_json("plain", ascii_only=True) == b'"plain"'


def test_what_has_no_text() -> None:
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    for value in ({1, 2}, deep, object()):
        with pytest.raises(ValueError):  # noqa: PT011 - each says what it is
            encode_json(value)


scalars = (
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")) | st.floats()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner)
        | st.lists(st.tuples(st.dictionaries(st.just("k"), inner), inner), min_size=1).map(PairMap)
    ),
    max_leaves=15,
)


def finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, PairMap):
        return PairMap((finite(key), finite(item)) for key, item in value)
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(values, st.booleans())
def test_what_is_written_is_read(value: object, ascii_only: bool) -> None:
    text = encode_json(value, ascii_only=ascii_only)
    if b"$ref" not in text:
        assert decode_json(text).value == finite(value)
