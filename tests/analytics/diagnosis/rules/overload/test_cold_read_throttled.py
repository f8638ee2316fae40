"""When cold-read-throttled speaks, and when it must not."""

from __future__ import annotations

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.overload.cold_read_throttled import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order

COLD = "This consumer group is reading cold data. It has been flow control"


def refused(at_ms: float, remark: str) -> ExchangeRecord:
    return exchange(
        at_ms,
        int(RequestCode.PULL_MESSAGE),
        int(ResponseCode.SYSTEM_BUSY),
        remark=remark,
        topic="Orders",
        group="late_group",
        broker_name="broker-a",
    )


def test_names_the_group() -> None:
    rows = [refused(0, COLD), refused(1000, COLD)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a refused 2 pulls of group late_group: it reads old messages, which are no longer"
        " in memory"
    )
    assert one.subject == Subject(broker="broker-a", topic="Orders", group="late_group")
    assert one.count == 2
    assert same_in_any_order(RULE, rows)


def test_a_pull_that_waited_too_long_is_another_matter() -> None:
    assert not problems(RULE, [refused(0, "[TIMEOUT_CLEAN_QUEUE]broker busy")])
