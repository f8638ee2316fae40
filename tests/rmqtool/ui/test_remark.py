"""Remarks: the cause comes first, what is always the same is left out."""

from __future__ import annotations

import time

import pytest

from rmqtool.ui.remark import LONGEST, cause_of


@pytest.mark.parametrize(
    ("remark", "cause"),
    [
        (None, ""),
        ("", ""),
        ("check signature failed.", "check signature failed."),
        (
            "service not available now. It may be caused by one of the following reasons: the"
            " broker's disk is full [CL:  0.06 CQ:  0.06 INDEX:  0.06], messages are put to the"
            " slave, message store has been shut down, etc.",
            "one of: the broker's disk is full [CL: 0.06 CQ: 0.06 INDEX: 0.06], messages are put"
            " to the slave, message store has been shut down",
        ),
        (
            "org.apache.rocketmq.acl.common.AclException: No acl config for nobody,"
            " org.apache.rocketmq.acl.plain.PlainPermissionManager.validate"
            "(PlainPermissionManager.java:427)",
            "No acl config for nobody",
        ),
        (
            "No topic route info in name server for the topic: Orders\nSee"
            " https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.",
            "No topic route info in name server for the topic: Orders",
        ),
        (
            "it failed\nFor more information, please visit the url,"
            " https://rocketmq.apache.org/docs/bestPractice/06FAQ",
            "it failed",
        ),
        ("java.lang.IllegalStateException: ", "java.lang.IllegalStateException: "),
        ("a\x1b[2Jb\n\nc", "a\\x1b[2Jb\\n\\nc"),
    ],
)
def test_the_cause(remark: str | None, cause: str) -> None:
    assert cause_of(remark) == cause


@pytest.mark.parametrize("part", ["a.", ", a.b.", "See http://x ", "$.$.$.", "x" * 50, ", etc"])
def test_a_long_remark_takes_little_time(part: str) -> None:
    begin = time.process_time()
    assert len(cause_of(part * 1_000_000)) <= LONGEST + 1
    assert time.process_time() - begin < 1
