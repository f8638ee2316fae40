"""When send-queue-timeout speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.send_queue_timeout import MARK, RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order
from ...refusal_checks import check_recorded

BUSY = int(ResponseCode.SYSTEM_BUSY)


def refused(at_ms: float, waited: int, size: int) -> ExchangeRecord:
    remark = (
        f"{MARK}broker busy, start flow control for a while, period in queue: {waited}ms,"
        f" size of queue: {size}"
    )
    return exchange(
        at_ms,
        int(RequestCode.SEND_MESSAGE_V2),
        BUSY,
        remark=remark,
        topic="Orders",
        group="shop",
        broker_name="broker-a",
    )


def test_says_how_long_requests_waited() -> None:
    rows = [refused(0, 205, 12), refused(5, 431, 30), refused(9, 200, 0)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a refused 3 sends: they waited 200 to 431 ms in its queue, with up to 30 other"
        " requests behind them"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 3
    assert one.details == [
        "topics: Orders (3)",
        "groups: shop (3)",
        "clients: 10.0.0.9 (3)",
        "sends to this broker, including refused ones: 10.0.0.9 (3)",
    ]
    assert same_in_any_order(RULE, rows)


def test_says_who_sends_how_much() -> None:
    """To the broker that refuses; who only sends to another one has no part in it."""
    send, stored = int(RequestCode.SEND_MESSAGE_V2), int(ResponseCode.SUCCESS)
    rows = [
        refused(0, 205, 12),
        *(exchange(number, send, stored, client_address="10.0.0.7:1234") for number in range(5)),
        exchange(9, send, stored, client_address="10.0.0.8:1234", server_address="10.0.0.2:10911"),
    ]
    (one,) = problems(RULE, rows)
    assert "sends to this broker, including refused ones: 10.0.0.7 (5), 10.0.0.9 (1)" in one.details
    assert same_in_any_order(RULE, rows)


def test_one_send_that_waited_alone() -> None:
    (one,) = problems(RULE, [refused(0, 205, 0)])
    assert one.title == "broker-a refused 1 send: it waited 205 ms in its queue"


def test_a_remark_of_an_unknown_form_is_enough() -> None:
    row = exchange(0, int(RequestCode.PULL_MESSAGE), BUSY, remark=f"{MARK}busy")
    (one,) = problems(RULE, [row])
    assert one.title == "10.0.0.1:10911 refused 1 pull: they waited too long in its queue"


def test_other_flow_control_is_not_its_matter() -> None:
    row = exchange(0, int(RequestCode.SEND_MESSAGE_V2), BUSY, remark="[REJECTREQUEST]system busy")
    assert not problems(RULE, [row])


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "busy-send-queue-4x.pcap",
            9,
            "broker-a refused 9 sends: they waited 200 to 217 ms in its queue, with up to 3"
            " other requests behind them",
        ),
        (
            "busy-send-queue-5x.pcap",
            20,
            "broker-a refused 20 sends: they waited 200 to 324 ms in its queue, with up to 3"
            " other requests behind them",
        ),
    ],
)
def test_recorded_on_real_brokers(name: str, count: int, title: str) -> None:
    check_recorded(
        RULE, name, title, count, Subject(broker="broker-a", topic="BusyTopic", group="busy_group")
    )
