"""Which topics are those of traces."""

from __future__ import annotations

from dissectors.remoting.trace_topics import is_trace_topic


def test_topics() -> None:
    assert is_trace_topic("RMQ_SYS_TRACE_TOPIC")
    assert is_trace_topic("rmq_sys_TRACE_DATA_cn-hangzhou")
    assert not is_trace_topic("T")
