"""The guard at the boundary: whatever comes in, a value, None or `Unreadable` comes out."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.foreign import (
    Unreadable,
    base64_of,
    converted,
    hex_bytes_of,
    hexadecimal_of,
    integer_of,
    json_of,
    natural_of,
    read_json,
    real_of,
    toml_of,
)

ANY = msgspec.json.Decoder()
NESTED = "[" * 100_000
TEXTS = (
    *("", " ", "-", "+", "²", "٣", "௧", "1_0", " 1", "1 ", "1\n", "0x1", "1e9", "-1", "+1", "--1"),
    *("9" * 18, "9" * 19, "9" * 20, "9" * 5000, "-" + "9" * 5000, "1" * 1_000_000, "\ud800"),
    *("inf", "nan", "-inf", "1e999", "f" * 16, "f" * 17, "g", "\0", "00", "=", "====", "A"),
)
any_text = st.text() | st.sampled_from(TEXTS) | st.from_regex(r"[-+]?[0-9]{0,25}", fullmatch=True)


@given(any_text)
@example("9223372036854775808")
@example("-9223372036854775808")
def test_integers_are_those_of_java(text: str) -> None:
    digits = text[1:] if text[:1] in ("-", "+") else text
    plain = bool(digits) and set(digits) <= set("0123456789")
    value = int(text) if plain and len(digits) < 20 else None
    expected = value if value is not None and -(1 << 63) <= value < 1 << 63 else None
    assert integer_of(text) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_never_raise(text: str) -> None:
    natural = natural_of(text)
    assert natural is None or str(natural) == text.lstrip("0").rjust(1, "0")
    hexadecimal = hexadecimal_of(text)
    assert hexadecimal is None or 0 <= hexadecimal < 1 << 64
    real = real_of(text)
    assert real is None or isinstance(real, float)
    assert base64_of(text) is None or base64_of(text) == b"" or len(text) > 1
    assert hex_bytes_of(text) is None or isinstance(hex_bytes_of(text), bytes)


def test_numbers() -> None:
    assert (natural_of("007"), natural_of("-7"), natural_of("+7")) == (7, None, None)
    assert (hexadecimal_of("7fFF"), hexadecimal_of("0x7f"), hexadecimal_of("-7")) == (
        0x7FFF,
        None,
        None,
    )
    assert (real_of("0.98"), real_of("1_0.5"), real_of("٣")) == (0.98, None, None)
    assert math.isinf(real_of("1e999") or 0)
    assert base64_of("-_8=", b"-_") == b"\xfb\xff"
    assert base64_of("-_8=") is None
    assert hex_bytes_of("0aFF") == b"\x0a\xff"


def _problem_of(read: Callable[[], object]) -> str | None:
    """Return why something is unreadable; None where it is a value."""
    try:
        read()
    except Unreadable as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    "data",
    [
        *(
            NESTED,
            '{"a":' * 100_000,
            '{"a": ' + "9" * 5000 + "}",
            '"\\ud800"',
            "{",
            "nul",
            "1e9999",
        ),
        *(b"\xff", b'{"\xff": 1}', b"", b"[" + b"1," * 100_000),
    ],
)
def test_what_is_no_json_is_unreadable(data: str | bytes) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    read_json(ANY, raw)
    problem = _problem_of(lambda: json_of(ANY, data))
    assert problem is None or (problem and read_json(ANY, raw) is None)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_unreadable(data: bytes) -> None:
    for read in (lambda: json_of(ANY, data), lambda: toml_of(data)):
        assert _problem_of(read) != ""


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"a = " + NESTED.encode(),
            b"a = " + b"{a=" * 100_000,
            b"a = " + b"9" * 5000,
            b"\xff = 1",
        ),
        *(b"a = 2026-13-41", b"a = 99:99:99", b"=", b"[a]\n[a]"),
        b'a = "\\UFFFFFFFF"',
    ],
)
def test_what_is_no_toml_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        toml_of(data)


def test_reasons_are_for_people() -> None:
    for data, reason in ((NESTED, "nested too deep"), (b'"\xff"', "UTF-8"), (b"{", "truncated")):
        with pytest.raises(Unreadable, match=reason):
            json_of(ANY, data)
    with pytest.raises(Unreadable, match="Expected `int`"):
        converted("a", int)
    assert converted({"a": 1}, dict[str, int]) == {"a": 1}
