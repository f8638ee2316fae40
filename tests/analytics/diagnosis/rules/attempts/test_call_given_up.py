"""When call-given-up speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.attempts.call_given_up import RULE

from ...made_rows import problems, sample


def test_a_proxy_that_drops_calls_is_named() -> None:
    rows = sample("grpc-too-many-5x.pcap")
    (one,) = problems(RULE, rows.exchanges, rows.connections, rows.findings)
    unanswered = [row for row in rows.exchanges if row.request_name == "SendMessage"]
    assert one.count == sum(row.status == "unanswered" for row in unanswered) == 16
    assert one.title == "127.77.0.71:18081 did not answer 16 requests in time: they were given up"


@pytest.mark.parametrize("name", ["grpc-send-5x", "grpc-consume-53", "grpc-proxy-killed-5x"])
def test_answered_calls_and_long_polls_are_none(name: str) -> None:
    rows = sample(f"{name}.pcap")
    assert problems(RULE, rows.exchanges, rows.connections, rows.findings) == []
