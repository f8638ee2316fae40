"""Text made safe to show, and which answers are failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissectors.grpc.names import OPERATIONS, RESPONSES
from dissectors.printable import MOST_SHOWN, printable, shortened
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.outcome import LONG_POLLS, NORMAL_RESPONSES, is_failure


@given(st.text(st.characters()))
def test_any_text_becomes_printable_and_printable_text_stays(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_escapes() -> None:
    assert printable("a\x1b\n\t\r\x9b\u2028\U000e0001") == r"a\x1b\n\t\r\x9b\u2028\U000e0001"


def test_the_names_of_outcomes_are_names_of_codes() -> None:
    assert {*ResponseCode.__members__, *RESPONSES} >= NORMAL_RESPONSES
    assert {*RequestCode.__members__, *OPERATIONS} >= LONG_POLLS
    assert is_failure("SYSTEM_BUSY")
    assert not is_failure("PULL_NOT_FOUND")
    assert not is_failure(None)


def test_a_long_text_is_cut_and_the_rest_counted() -> None:
    assert shortened("x" * MOST_SHOWN) == "x" * MOST_SHOWN
    assert shortened(shortened("x" * 2000)) == shortened("x" * 2000)
    assert shortened("x" * 10_000_000) == "x" * MOST_SHOWN + "… 9,999,000 more"
