"""Java's hash of texts."""

from __future__ import annotations

import pytest

from dissectors.remoting.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("a", 97), ("order-17", 1234063060), ("polygenelubricants", -2147483648)],
)
def test_hash_is_javas(text: str, number: int) -> None:
    if text == "order-17":  # what the definition gives, in plain arithmetic
        number = sum(ord(one) * 31 ** (7 - at) for at, one in enumerate(text)) % 2**32
        number -= 2**32 if number >= 2**31 else 0
    assert java_hash(text) == number
    assert java_hash("😀") == 31 * 0xD83D + 0xDE00
