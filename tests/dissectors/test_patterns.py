"""The linear-time patterns of filters and rules, against Python's `re` as the oracle."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dissectors.patterns import (
    MAX_RESULT,
    Effort,
    Pattern,
    PatternError,
    Replacement,
    TooMuchWork,
    bytes_of,
    text_of,
)
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


def _grown_greedily(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """As few as possible, or nothing before something: what follows an empty place differs."""
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?"])).map(lambda one: f"(?:{one[0]}){one[1]}"),
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
    oracle = re.compile(pattern, re.DOTALL | re.ASCII)
    assert Pattern(pattern, over_lines=True).search(text) == bool(oracle.search(text))


@pytest.mark.slow
@examples(10)
@given(
    pattern=st.recursive(_PARTS | st.just("[äö]"), _grown_greedily, max_leaves=6),
    text=st.text("abcA1_ -äöü\n", max_size=12),
)
def test_replaces_as_re_does(pattern: str, text: str) -> None:
    assume("\\" not in pattern)  # word characters: those of ASCII for us, of Unicode in `re`
    oracle = re.compile(pattern.replace("$", r"\Z"))
    assert replaced(pattern, r"<\g<0>>", text) == oracle.sub(r"<\g<0>>", text)


def replaced(pattern: str, template: str, text: str) -> str:
    compiled = Pattern(pattern)
    replacement = Replacement(template, compiled)
    return text_of(compiled.replaced(bytes_of(text), replacement, Effort()))


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
    ("pattern", "position", "says"),
    [
        ("(a", 0, "unclosed"),
        ("a)", 1, "unmatched"),
        (r"[(]\((a", 5, "unclosed"),
        ("[a", 0, "unclosed"),
        ("*a", 0, "nothing to repeat"),
        ("a**", 1, "put a group around"),
        ("ab{3,2}", 2, "repetitions"),
        ("a{9999}", 1, "1000"),
        (r"ab\q", 2, "unknown escape"),
        ("a\\", 1, "after the backslash"),
        (r"(a)\1", 3, "refers back"),
        ("b(?=a)", 1, "look-around"),
        ("b(?<!a)", 1, "look-around"),
        ("b(?P=a)", 1, "not known"),
        ("[b-a]", 1, "range"),
        ("a\ud800", 1, "half a character"),
        (".{1000}", 0, "too large"),
        ("((a{100}){100}){100}", 3, "repetitions"),
        ("(" * 1500 + ")" * 1500, 0, "too large"),
    ],
)
def test_errors_say_where(pattern: str, position: int, says: str) -> None:
    with pytest.raises(PatternError, match=says) as caught:
        Pattern(pattern)
    assert caught.value.position == position
    assert caught.value.backtracks is (says in ("refers back", "look-around"))


@pytest.mark.parametrize(
    ("template", "gives"),
    [
        (r"\2-\g<2>-\g<both>-\g<0>", "[a-a-ab-ab]"),
        (r"\3", "[]"),
        (r"\n\t\\", "[\n\t\\]"),
        (r"\.", r"[\.]"),
        ("ä", "[ä]"),
        ("", "[]"),
    ],
)
def test_templates_are_those_of_python(template: str, gives: str) -> None:
    assert replaced("(?P<both>(a)b)(c)?", f"[{template}]", "ab") == gives
    assert re.sub("(?P<both>(a)b)(c)?", f"[{template}]", "ab") == gives


@pytest.mark.parametrize("template", [r"\2", r"\12", r"\g<x>", r"\g<", r"\g1", r"\q", "a\\", r"\0"])
def test_a_template_that_is_wrong_says_where(template: str) -> None:
    with pytest.raises(PatternError) as caught:
        Replacement(template, Pattern("(a)"))
    assert caught.value.position == template.index("\\")


@pytest.mark.parametrize("data", [b"\xff\x00a\xfe", "aä\ud800".encode("utf-8", "surrogatepass")])
def test_what_is_no_text_stays_as_it_is(data: bytes) -> None:
    pattern = Pattern("a|")
    replacement = Replacement(r"\g<0>", pattern)
    assert pattern.replaced(data, replacement, Effort()) == data
    assert bytes_of(text_of(data)) == data or data[:1] == b"\xff"


HARD = [
    ("(a+)+$", "a" * 200_000 + "b"),
    ("^(a|a)*$", "a" * 200_000 + "b"),
    ("(.*)(.*)(.*)(.*)x$", "y" * 200_000),
    (r"^(\w+\s?)*$", "word " * 40_000 + "!"),
    ("(a|b)*a(a|b){14}c", "ab" * 50_000 + "abbabaaabbabab" * 4000),
    ("(x+x+)+y", "x" * 200_000),
]


@pytest.mark.parametrize(("pattern", "text"), HARD)
def test_what_ruins_a_backtracking_matcher_is_one_search(pattern: str, text: str) -> None:
    started = time.process_time()
    assert Pattern(pattern).search(text) is False
    effort = Effort()
    compiled = Pattern(pattern)
    data = text.encode()
    assert compiled.replaced(data, Replacement("", compiled), effort) == data
    assert effort.searches == 1
    assert time.process_time() - started < 2


def test_the_work_doubles_with_the_text() -> None:
    pattern = Pattern("a")
    counts = []
    for size in (1000, 2000):
        effort = Effort()
        assert pattern.replaced(b"a" * size, Replacement("b", pattern), effort) == b"b" * size
        counts.append(effort.searches)
    assert counts == [1001, 2001]


def test_a_pattern_that_looks_to_the_end_for_each_place_is_given_up() -> None:
    pattern = Pattern("a.*b|a")
    with pytest.raises(TooMuchWork, match=r"0\.1 s of CPU"):
        pattern.replaced(b"a" * 1_000_000, Replacement("c", pattern), Effort(seconds=0.1))


def test_a_text_does_not_grow_without_end() -> None:
    pattern = Pattern("")
    with pytest.raises(TooMuchWork, match="16 MiB"):
        pattern.replaced(b"a" * 100_000, Replacement("x" * 1000, pattern), Effort())
    assert MAX_RESULT == 16 << 20


def test_a_large_pattern_takes_no_large_text() -> None:
    pattern = Pattern("(?:.{0,15}){0,10}zz")
    text = b"y" * 10_000_000
    assert pattern.search("zz")
    with pytest.raises(TooMuchWork, match="10,000,000 bytes"):
        pattern.occurs(text, Effort())
    with pytest.raises(TooMuchWork):
        pattern.replaced(text, Replacement("", pattern), Effort())
