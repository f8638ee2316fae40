"""Java's hash of texts."""

from __future__ import annotations

import pytest

from dissectors.remoting.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("a", 97), ("order-17", 1234255109), ("polygenelubricants", -2147483648)],
)
def test_hash_is_javas(text: str, number: int) -> None:
    assert java_hash(text) == number
    assert java_hash("😀") == 31 * 0xD83D + 0xDE00
