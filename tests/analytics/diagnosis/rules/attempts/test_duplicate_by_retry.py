"""duplicate-by-retry: a message that was sent again is stored more than once."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.attempts.duplicate_by_retry import RULE
from dissectors.remoting.codes import ResponseCode

from ...made_rows import (
    START,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)

GRPC = "grpc-flush-late-5x.pcap.gz"


def test_calls_of_one_message_are_its_attempts() -> None:
    """The proxy's own sends are seen, too, and are no attempts of the client."""
    (one,) = problems_of_sample(RULE, GRPC)
    assert one.title == (
        "3 messages are stored more than once in topic GrpcNormal: the producer resent after an"
        " attempt that got MASTER_PERSISTENCE_TIMEOUT (9 copies in all)"
    )
    assert one.subject == Subject(topic="GrpcNormal", server="127.77.0.71:18081")
    assert one.count == 3
    assert "MASTER_PERSISTENCE_TIMEOUT at 127.77.0.71:18081 and" in one.evidence[0].what


def test_what_proxies_store_for_calls_is_no_copy() -> None:
    for name in ("grpc-send-5x.pcap", "grpc-consume-53.pcap", "grpc-too-many-5x.pcap"):
        assert problems_of_sample(RULE, name) == []


@pytest.mark.parametrize("name", [GRPC, "stored-by-retry-5x.pcap"])
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    rows = sample(name)
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_a_response_to_the_first_send_may_come_last() -> None:
    send = {"topic": "Orders", "unique_key": f"{1:032X}", "message_count": 1}
    rows = [
        exchange(0, 310, latency_ms=3500, offset_msg_id="A", **send),
        exchange(3000, 310, latency_ms=2, offset_msg_id="B", **send),
    ]
    (one,) = problems(RULE, rows)
    assert (one.first_time, one.last_time) == (START + 3_002_000_000, START + 3_500_000_000)
    assert one.evidence[0].time == one.first_time
    # A refusal stores nothing.
    refused = exchange(-1000, 310, int(ResponseCode.SYSTEM_BUSY), latency_ms=1, **send)
    (one,) = problems(RULE, [refused, *rows])
    assert (one.first_time, one.last_time) == (START + 3_002_000_000, START + 3_500_000_000)
