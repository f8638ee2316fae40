"""frame-too-long: a length over 16 MiB on a RocketMQ connection."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.network.frame_too_long import RULE

from ...made_rows import connection, problems, problems_of_sample, same_in_any_order, sample


def test_a_send_of_16_mib() -> None:
    (one,) = problems_of_sample(RULE, "frame-too-long-5x.pcap")
    assert one.title == (
        "broker-a (127.77.0.11:10911) received 1 frame over its limit: 16,777,513"
        " bytes (limit 16,777,216)"
    )
    assert (one.count, one.confidence) == (1, Confidence.CERTAIN)
    assert one.subject == Subject(broker="broker-a")


@pytest.mark.parametrize("name", ["foreign-5x.pcap", "big-bodies-5x.pcap", "removed-5x.pcap"])
def test_silent_where_no_message_is_too_long(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_an_absurd_length_is_something_else() -> None:
    absurd = connection(0, 9, facts=["frame_length=2147483647"])
    assert problems(RULE, [], [absurd]) == []
    likely = connection(0, 9, facts=["frame_length=20000000"])
    assert [one.confidence for one in problems(RULE, [], [likely])] == [Confidence.LIKELY]


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("frame-too-long-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)
