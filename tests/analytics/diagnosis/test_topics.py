"""Which topics are RocketMQ's own."""

from __future__ import annotations

import pytest

from analytics.diagnosis.topics import is_own_topic


@pytest.mark.parametrize(
    "topic",
    ["%RETRY%g", "%DLQ%g", "TBW102", "rmq_sys_x", "RMQ_SYS_TRACE_TOPIC", "c_REPLY_TOPIC", "", None],
)
def test_own_topics(topic: str | None) -> None:
    assert is_own_topic(topic)


@pytest.mark.parametrize("topic", ["Orders", "ns%Orders", "TBW1020", "retry"])
def test_topics_of_users(topic: str) -> None:
    assert not is_own_topic(topic)
