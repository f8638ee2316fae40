"""The linear-time patterns of filters, against Python's `re` as the oracle."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dissectors.patterns import MAX_TEXT, Pattern, PatternError
from tests.profiles import examples

_PARTS = st.sampled_from(
    ["a", "b", "c", ".", "[ab]", "[^a]", r"\d", r"\W", r"\w", "^", "$", r"\b", r"\B", "[a-c0-9_]"]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantifier = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, quantifier).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda part: f"({part})"),
    )


@pytest.mark.slow
@examples(10)
@given(
    pattern=st.recursive(_PARTS, _grown, max_leaves=8),
    text=st.text("abcA1_ -", max_size=12),
    ignore_case=st.booleans(),
)
def test_agrees_with_re(pattern: str, text: str, ignore_case: bool) -> None:
    assume(text or "\\B" not in pattern)  # re before 3.14: no \B in the empty text
    pattern = "(?i)" + pattern if ignore_case else pattern
    assert Pattern(pattern).search(text) == bool(re.search(pattern, text, re.DOTALL))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^Order", "OrderTopic", True),
        ("^Order", "MyOrder", False),
        ("Topic$", "OrderTopic", True),
        (r"^%RETRY%", "%RETRY%group", True),
        (r"10\.0\.0\.[12]:", "10.0.0.2:10911", True),
        (r"10\.0\.0\.[12]:", "10.0.0.3:10911", False),
        ("(?i)timeout", "Send TIMEOUT", True),
        ("", "", True),
        ("^$", "", True),
        ("[]x]", "]", True),
        ("[^]x]", "]", False),
        (r"[\d.-]+", "-", True),
        ("ä|ö", "schön", True),
        (r"\.", "a", False),
        ("a{2,3}$", "aaaa", True),
        ("^a{2,3}$", "aaaa", False),
    ],
)
def test_known_answers(pattern: str, text: str, found: bool) -> None:
    assert Pattern(pattern).search(text) is found


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("(a", 0),
        ("a)", 1),
        ("[a", 0),
        ("*a", 0),
        ("a**", 0),
        ("a{3", 1),
        ("a{3,2}", 1),
        ("a{9999}", 1),
        (r"\q", 0),
        ("\\", 0),
        (r"(a)\1", 3),
        ("(?=a)", 0),
        ("[b-a]", 0),
        ("(" * 60 + ")" * 60, 40),
    ],
)
def test_errors_say_where(pattern: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(pattern)
    assert caught.value.position == position


def test_a_pattern_that_is_too_large_is_refused() -> None:
    with pytest.raises(PatternError, match="too large"):
        Pattern("((a{100}){100}){100}")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * MAX_TEXT + "b"),
        ("^(a|a)*$", "a" * (MAX_TEXT - 1) + "b"),
        ("(.*)(.*)(.*)(.*)x$", "y" * (MAX_TEXT - 1)),
        ("(a|aa)+$", "a" * (MAX_TEXT - 1) + "b"),
        (r"^(\w+\s?)*$", "word " * (MAX_TEXT // 5) + "!"),
        ("(a|b)*a(a|b){14}c", "ab" * 1000 + "abbabaaabbabab" * 400),
    ],
)
def test_time_is_linear_for_what_ruins_a_backtracking_matcher(pattern: str, text: str) -> None:
    started = time.process_time()
    assert Pattern(pattern).search(text) is False
    assert time.process_time() - started < 2


def test_text_beyond_the_limit_is_not_looked_at() -> None:
    assert not Pattern("x").search("a" * MAX_TEXT + "x")
    assert not Pattern("a$").search("a" * (MAX_TEXT + 1))
    assert Pattern("a$").search("a" * MAX_TEXT)


def test_memory_stays_bounded_when_every_character_is_new() -> None:
    pattern = Pattern("(?:a|b)*a(?:a|b){10}$")
    for start in range(0, 0x8000, 0x400):
        pattern.search("".join(map(chr, range(start, start + 0x400))) + "ab" * 20)
    assert len(pattern._states) <= 20_001
