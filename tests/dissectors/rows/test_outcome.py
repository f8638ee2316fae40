"""Which answers are failures, and which are only worth a look."""

from __future__ import annotations

import pytest

from dissectors.rows.outcome import is_failure, is_notable


@pytest.mark.parametrize(
    ("name", "notable", "failure"),
    [
        (None, False, False),
        ("SUCCESS", False, False),
        ("PULL_NOT_FOUND", False, False),
        ("FLUSH_DISK_TIMEOUT", True, False),
        ("SLAVE_NOT_AVAILABLE", True, False),
        ("FLUSH_SLAVE_TIMEOUT", True, False),
        ("SYSTEM_BUSY", True, True),
        ("UNKNOWN(9999)", True, True),
    ],
)
def test_a_stored_message_is_no_failure(name: str | None, notable: bool, failure: bool) -> None:
    assert (is_notable(name), is_failure(name)) == (notable, failure)
