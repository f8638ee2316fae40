"""Who a client is, and which answers are failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analytics.rows import exchanges, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [("10.0.0.9:40000", "10.0.0.9"), ("[fe80::1]:9876", "fe80::1"), ("[::1]:1", "::1")],
)
def test_an_address_has_no_port(spark: SparkSession, endpoint: str, expected: str) -> None:
    from analytics.derived import address_of

    expression = f"{address_of('requester')} as a"
    frame = exchanges(spark, [row(requester=endpoint)]).selectExpr(expression)
    assert [one.a for one in frame.collect()] == [expected]


def test_what_is_a_failure(spark: SparkSession) -> None:
    from analytics.derived import IS_FAILURE

    rows = [
        row(opaque=1),
        row(opaque=2, response_code=2, response_name="SYSTEM_BUSY"),
        row(opaque=3, request_name="PULL_MESSAGE", response_name="PULL_NOT_FOUND"),
        row(opaque=4, latency_us=None),
        row(opaque=5, status="orphan", request_name=None, response_name="SYSTEM_BUSY"),
    ]
    frame = exchanges(spark, rows).selectExpr("opaque", f"{IS_FAILURE} as failed")
    found = {one.opaque: one.failed for one in frame.collect()}
    assert found == {1: False, 2: True, 3: False, 4: False, 5: False}
