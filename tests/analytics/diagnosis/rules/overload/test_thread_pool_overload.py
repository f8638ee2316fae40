"""When thread-pool-overload speaks for old servers too."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.overload.thread_pool_overload import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import exchange, problems


@pytest.mark.parametrize(
    "remark",
    [
        "[OVERLOAD]system busy, start flow control for a while",
        "too many requests and system thread pool busy, please try another server",
    ],
)
def test_servers_of_each_generation(remark: str) -> None:
    send = exchange(
        0,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SYSTEM_BUSY),
        remark=remark,
        topic="Orders",
        broker_name="broker-a",
    )
    (one,) = problems(RULE, [send])
    assert one.title == "broker-a refused 1 send: its thread pool queue was full"
