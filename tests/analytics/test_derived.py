"""The address of a client in SQL."""

from __future__ import annotations

import pytest

from tests.analytics.rows import evaluated, row


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [("10.0.0.9:40000", "10.0.0.9"), ("[fe80::1]:9876", "fe80::1"), ("[::1]:1", "::1")],
)
def test_an_address_has_no_port(endpoint: str, expected: str) -> None:
    from analytics.derived import address_of

    expression = f"{address_of('client_address')} as a"
    assert evaluated([row(client_address=endpoint)], expression) == [{"a": expected}]
