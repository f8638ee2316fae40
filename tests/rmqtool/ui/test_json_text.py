"""JSON that a terminal may show."""

from __future__ import annotations

import json

import pytest

from rmqtool.ui.json_text import json_line, visible_json
from tests.rmqtool.command import EVIL

TEXTS = [
    *(EVIL, "\x7f", "\u061c", "\U000e0041", "ü 漢字 \U0001f600", "\u3000", "\ufffa"),
    *("a\\u0041", '"'),
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_says_the_same_and_steers_nothing(text: str) -> None:
    line = json_line({text: [text]})
    assert json.loads(line) == {text: [text]}
    shown = line.decode()
    assert shown[:-1].isprintable()
    assert shown.count("\n") == 1
    assert "ü" not in text or "ü" in shown


def test_half_a_surrogate_pair_is_an_escape() -> None:
    assert json.loads(json_line(["\ud800"])) == ["\ud800"]


def test_line_ends_between_rows_stay() -> None:
    assert visible_json('"\u202e"\n"a"\n'.encode()) == b'"\\u202e"\n"a"\n'
