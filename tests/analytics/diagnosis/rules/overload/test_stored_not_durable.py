"""When stored-not-durable speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.stored_not_durable import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample


@pytest.mark.parametrize(
    ("name", "topic", "count", "said"),
    [
        ("ha-replication-5x.pcap", "ReplicaTopic", 2, "FLUSH_SLAVE_TIMEOUT after 3.07 s"),
        ("ha-replication-4x.pcap", "ReplicaTopic", 2, "SLAVE_NOT_AVAILABLE"),
        (
            "namesrv-gone-4x.pcap",
            "TwoTopic",
            2,
            "FLUSH_SLAVE_TIMEOUT after 3.01 s, SLAVE_NOT_AVAILABLE",
        ),
        ("registration-4x.pcap", "FreshTopic", 1, "SLAVE_NOT_AVAILABLE"),
    ],
)
def test_recorded(name: str, topic: str, count: int, said: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    messages = "1 message that was" if count == 1 else f"{count} messages that were"
    assert one.title == f"broker-a stored {messages} not copied to a slave in time ({said})"
    assert one.subject == Subject(broker="broker-a", topic=topic, group="sample_group")
    assert one.count == count


def test_the_disk() -> None:
    code = int(ResponseCode.FLUSH_DISK_TIMEOUT)
    row = exchange(0, int(RequestCode.SEND_MESSAGE_V2), code, 5002, broker_name="broker-a")
    (one,) = problems(RULE, [row])
    assert one.title == (
        "broker-a stored 1 message that was not on disk in time (FLUSH_DISK_TIMEOUT after 5 s)"
    )


def test_any_order() -> None:
    assert same_in_any_order(RULE, sample("namesrv-gone-4x.pcap").exchanges)


def test_a_healthy_master_with_a_slave_is_silent() -> None:
    assert not problems_of_sample(RULE, "namesrv-gone-5x.pcap")


def test_a_recall_without_broker_is_another_matter() -> None:
    code = int(ResponseCode.SLAVE_NOT_AVAILABLE)
    assert not problems(RULE, [exchange(0, int(RequestCode.RECALL_MESSAGE), code)])


def test_what_a_proxy_says_of_its_broker() -> None:
    rows = sample("grpc-flush-late-5x.pcap.gz")
    (one,) = problems(RULE, [row for row in rows.exchanges if row.request_code is None])
    assert one.title.startswith("a broker behind proxy 127.77.0.71:18081 stored 9 messages")
    assert one.advice.startswith("Look for a slow or busy disk")
