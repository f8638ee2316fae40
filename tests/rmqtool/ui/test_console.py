"""Terminals: what a stream is, and text that fits into cells."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.ui.console import UNLIMITED, When, cells, cut, one_line, padded, terminal_of

_PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))).map(one_line)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "when", "environment", "colour"),
    [
        (Screen(), When.auto, {}, True),
        (Screen(), When.auto, {"NO_COLOR": "1"}, False),
        (Screen(), When.auto, {"TERM": "dumb"}, False),
        (Screen(), When.never, {}, False),
        (Screen(), When.always, {"NO_COLOR": "1"}, True),
        (io.StringIO(), When.auto, {}, False),
        (io.StringIO(), When.auto, {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), When.auto, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (io.StringIO(), When.never, {"FORCE_COLOR": "1"}, False),
        (Screen(), When.auto, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        (io.StringIO(), When.always, {}, True),
    ],
)
def test_colour(stream: io.StringIO, when: When, environment: dict[str, str], colour: bool) -> None:
    assert terminal_of(stream, when, environment).colour is colour


def test_width_without_a_terminal_is_unlimited() -> None:
    assert terminal_of(io.StringIO(), environment={}).width == UNLIMITED


def test_width_of_wide_and_combined_characters() -> None:
    assert cells("abc") == 3
    assert cells("订单") == 4
    assert cells("a\u0301") == 1
    assert padded("订单", 6) == "订单  "
    assert padded("ab", 4, right=True) == "  ab"
    assert cut("订单主题", 5) == "订单…"
    assert cut("10.0.0.1:10911", 8, keep_end=True) == "…1:10911"
    assert cut("订单主题", 5, keep_end=True) == "…主题"
    assert cut("a❤️b", 3) == "a…", "an emoji of two characters is not taken apart"


@given(_PRINTABLE, st.integers(1, 20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= max(width, 1)
    if cells(text) <= width:
        assert cut(text, width) == text
        assert cells(padded(text, width)) == width


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()


def test_one_line_shows_what_it_hides() -> None:
    assert one_line("a\x1b[31m\n\t\u202e\U000e0001") == r"a\x1b[31m\n\t\u202e\U000e0001"
    assert one_line(None) == ""
