"""The address of a client, and the outcome class in SQL."""

from __future__ import annotations

import pytest

from dissectors.rows.outcome import (
    NO_TOPIC,
    OUTCOME_CLASSES,
    ROUTE_REQUEST,
    STATUSES,
    outcome_class_of,
)
from tests.analytics.rows import evaluated, row


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [("10.0.0.9:40000", "10.0.0.9"), ("[fe80::1]:9876", "fe80::1"), ("[::1]:1", "::1")],
)
def test_an_address_has_no_port(endpoint: str, expected: str) -> None:
    from analytics.derived import address_of

    expression = f"{address_of('requester')} as a"
    assert evaluated([row(requester=endpoint)], expression) == [{"a": expected}]


def test_the_outcome_class_is_the_same_in_sql() -> None:
    """Rows of older logs lack the column: SQL gives what the decoder stores."""
    from analytics.derived import OUTCOME_CLASS

    names = (None, "SUCCESS", "SYSTEM_BUSY", "PULL_NOT_FOUND", "FLUSH_DISK_TIMEOUT", NO_TOPIC)
    rows = [
        row(status=status, request_name=request, response_name=response, topic=topic)
        for status in STATUSES
        for request in (None, "PULL_MESSAGE", ROUTE_REQUEST)
        for response in names
        for topic in (None, "Orders", "%RETRY%Orders", "ns%%RETRY%Orders")
    ]
    found = evaluated(rows, f"{OUTCOME_CLASS} as made")
    expected = [
        outcome_class_of(one["status"], one["request_name"], one["response_name"], one["topic"])
        for one in rows
    ]
    assert [one["made"] for one in found] == expected
    assert set(expected) == set(OUTCOME_CLASSES)
