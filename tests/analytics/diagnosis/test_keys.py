"""Keys of several names: whatever a name has in it, as many come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.keys import WHOLE, by_group, by_responder, by_topic, joined_key, parts_of
from analytics.diagnosis.keys import whole as of_all

from .made_rows import BROKER, exchange


@given(st.lists(st.none() | st.text() | st.sampled_from(["\n", "\0", "a\0b"]), min_size=1))
def test_names_come_back(names: list[str | None]) -> None:
    assert parts_of(joined_key(*names)) == [(name or "").replace("\0", "\ufffd") for name in names]


def test_keys_of_rows() -> None:
    row = exchange(0, 10, topic="Orders", group="shop")
    assert (by_responder(row), by_topic(row), by_group(row)) == (BROKER, "Orders", "shop")
    assert (by_topic(exchange(0, 10)), by_group(exchange(0, 10))) == ("", "")
    assert of_all(row) == WHOLE
