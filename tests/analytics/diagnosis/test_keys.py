"""Keys of several names: whatever a name has in it, as many come back."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.keys import (
    WHOLE,
    Flow,
    FlowRows,
    by_group,
    by_server,
    by_topic,
    is_own_topic,
    joined_key,
    latencies_of,
    message_keys,
    parts_of,
    request_times,
    response_times,
    slowest_of,
)
from analytics.diagnosis.keys import whole as of_all
from analytics.diagnosis.registry import rules
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from .made_rows import BROKER, CLIENT, exchange


@given(st.lists(st.none() | st.text() | st.sampled_from(["\n", "\0", "a\0b"]), min_size=1))
def test_names_come_back(names: list[str | None]) -> None:
    assert parts_of(joined_key(*names)) == [(name or "").replace("\0", "\ufffd") for name in names]


def test_keys_of_rows() -> None:
    row = exchange(0, 10, topic="Orders", group="shop")
    assert (by_server(row), by_topic(row), by_group(row)) == (BROKER, "Orders", "shop")
    assert (by_topic(exchange(0, 10)), by_group(exchange(0, 10))) == ("", "")
    assert of_all(row) == WHOLE


@pytest.mark.parametrize(
    "topic", [None, "Orders", "%RETRY%shop", "%DLQ%shop", "RMQ_SYS_TRACE_TOPIC"]
)
def test_keys_of_a_flow_need_nothing_else(topic: str | None) -> None:
    code = int(RequestCode.SEND_MESSAGE_V2)
    flow = Flow(code, 0, "answered", True, CLIENT, BROKER, topic, "shop")
    row = exchange(0, code, topic=topic, group="shop")
    for rule in rules():
        for one in rule.exchanges:
            if one.of_flow:
                assert one.key(cast(ExchangeRecord, flow)) == one.key(row), rule.id


def test_columns_are_those_of_the_rows() -> None:
    rows = [exchange(0, 310, 0, 3, unique_key="A"), exchange(1, 310, None), exchange(2, 310, 0, 5)]
    flow = FlowRows()
    flow.extend(rows)
    for column in (response_times, request_times, latencies_of, message_keys, slowest_of):
        assert column(flow) == column(rows)
    assert message_keys(flow) is message_keys(flow)
    assert slowest_of(rows) is None
    assert slowest_of([rows[0], rows[2]]) == 5000
    assert slowest_of([]) is None


@pytest.mark.parametrize(
    "topic",
    ["%RETRY%g", "%DLQ%g", "TBW102", "rmq_sys_x", "RMQ_SYS_TRACE_TOPIC", "c_REPLY_TOPIC", "", None],
)
def test_own_topics(topic: str | None) -> None:
    assert is_own_topic(topic)


@pytest.mark.parametrize("topic", ["Orders", "ns%Orders", "TBW1020", "retry"])
def test_topics_of_users(topic: str) -> None:
    assert not is_own_topic(topic)
