"""Times of messages: what no clock shows is none."""

from __future__ import annotations

import pytest

from dissectors.message_rows.seen_exchange import LAST_MS, MILLI, time_of_ms


@pytest.mark.parametrize("ms", [None, 0, -1, LAST_MS + 1, 1 << 70])
def test_what_no_clock_shows(ms: int | None) -> None:
    assert time_of_ms(ms) is None


@pytest.mark.parametrize("ms", [1, 1_763_632_800_123, LAST_MS])
def test_a_time(ms: int) -> None:
    assert time_of_ms(ms) == ms * MILLI
