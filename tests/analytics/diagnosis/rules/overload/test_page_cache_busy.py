"""When page-cache-busy speaks, and when it must not."""

from __future__ import annotations

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.page_cache_busy import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order

REMARK = (
    "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in "
    "queue: 3ms, size of queue: 4"
)


def refused(at_ms: float, remark: str = REMARK) -> ExchangeRecord:
    return exchange(
        at_ms,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SYSTEM_BUSY),
        remark=remark,
        topic="Orders",
        group="shop",
        broker_name="broker-a",
    )


def test_names_the_broker_and_counts() -> None:
    rows = [refused(0), refused(9)]
    (one,) = problems(RULE, rows)
    assert one.title == "broker-a refused 2 sends: a write to its page cache took too long"
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="shop")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_another_remark_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "[TIMEOUT_CLEAN_QUEUE]broker busy")])
