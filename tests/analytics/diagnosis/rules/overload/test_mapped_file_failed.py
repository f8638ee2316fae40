"""When mapped-file-failed speaks for old servers too."""

from __future__ import annotations

import pytest

from analytics.diagnosis.rules.overload.mapped_file_failed import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...made_rows import exchange, problems


@pytest.mark.parametrize(
    "remark",
    [
        "create mapped file failed, server is busy or broken.",
        "create maped file failed, please make sure OS and JDK both 64bit.",
    ],
)
def test_servers_of_each_generation(remark: str) -> None:
    send = exchange(
        0,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SYSTEM_ERROR),
        remark=remark,
        topic="Orders",
        broker_name="broker-a",
    )
    (one,) = problems(RULE, [send])
    assert one.title == "broker-a refused 1 send: it cannot create the next file of its commit log"
