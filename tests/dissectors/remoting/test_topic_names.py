"""Which topics are RocketMQ's own, and which are those of traces."""

from __future__ import annotations

import pytest

from dissectors.remoting.topic_names import (
    NOT_FOR_SENDS,
    SYSTEM_TOPICS,
    is_internal_topic,
    is_system_topic,
    is_trace_topic,
)


def test_topics_of_traces() -> None:
    assert is_trace_topic("RMQ_SYS_TRACE_TOPIC")
    assert is_trace_topic("rmq_sys_TRACE_DATA_cn-hangzhou")
    assert not is_trace_topic("T")


@pytest.mark.parametrize("topic", [*sorted(SYSTEM_TOPICS), "rmq_sys_wheel_timer"])
def test_a_topic_of_the_system_is_of_no_application(topic: str) -> None:
    assert is_system_topic(topic)
    assert is_internal_topic(topic)


@pytest.mark.parametrize(
    "topic", ["DefaultHeartBeatSyncerTopic", "RMQ_SYS_ROCKSDB_OFFSET_TOPIC", "%LMQ%$Orders$one"]
)
def test_what_brokers_and_proxies_made_since(topic: str) -> None:
    assert not is_system_topic(topic)
    assert is_internal_topic(topic)


@pytest.mark.parametrize("topic", ["Orders", "ns%Orders", "%RETRY%g", "c_REPLY_TOPIC", ""])
def test_other_topics(topic: str) -> None:
    assert not is_system_topic(topic)
    assert not is_internal_topic(topic)


def test_what_nobody_sends_to_is_of_the_system() -> None:
    assert NOT_FOR_SENDS < SYSTEM_TOPICS
