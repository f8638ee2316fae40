"""Rules that differ only in the remark: when each of them speaks, and when it must not."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rule import DiagnosisRule
from analytics.diagnosis.rules.overload import (
    broker_rejects_request,
    mapped_file_failed,
    page_cache_busy,
    page_cache_synchronized,
    thread_pool_overload,
)
from dissectors.remoting.codes import ResponseCode

from ...made_rows import problems
from ...refusal_checks import check_made, check_recorded, refusals


class Case(NamedTuple):
    """What one rule is told by, and where real brokers showed it."""

    rule: DiagnosisRule
    answer: ResponseCode
    remark: str
    said: str
    """how the title goes on behind the refused sends"""
    other: str
    """a remark that another rule is for"""
    topic: str
    """topic of the samples"""
    counts: dict[str, int]
    """sample -> refused sends"""


CASES = (
    Case(
        page_cache_busy.RULE,
        ResponseCode.SYSTEM_BUSY,
        "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in "
        "queue: 3ms, size of queue: 4",
        ": a write to its page cache took too long",
        "[TIMEOUT_CLEAN_QUEUE]broker busy",
        "CacheTopic",
        {"busy-page-cache-4x.pcap": 5, "busy-page-cache-5x.pcap": 5},
    ),
    Case(
        broker_rejects_request.RULE,
        ResponseCode.SYSTEM_BUSY,
        "[REJECTREQUEST]system busy, start flow control for a while",
        " immediately: it was overloaded, or it is a slave",
        "[OVERLOAD]system busy",
        "CacheTopic",
        {"busy-page-cache-4x.pcap": 2, "busy-page-cache-5x.pcap": 6},
    ),
    Case(
        mapped_file_failed.RULE,
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
        ": it cannot create the next file of its commit log",
        "UNKNOWN_ERROR",
        "FileTopic",
        {"file-not-made-4x.pcap": 9, "file-not-made-5x.pcap": 9},
    ),
    Case(
        page_cache_synchronized.RULE,
        ResponseCode.SYSTEM_ERROR,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
        ": another write held its commit log for too long",
        "[PCBUSY_CLEAN_QUEUE]broker busy",
        "CacheTopic",
        {"busy-page-cache-4x.pcap": 1, "busy-page-cache-5x.pcap": 1},
    ),
    Case(
        thread_pool_overload.RULE,
        ResponseCode.SYSTEM_BUSY,
        "[OVERLOAD]system busy, start flow control for a while",
        ": its thread pool queue was full",
        "[REJECTREQUEST]system busy",
        "OverloadTopic",
        {"busy-overload-4x.pcap": 5, "busy-overload-5x.pcap": 5},
    ),
)
each_rule = pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.id)


@each_rule
def test_names_the_broker_and_counts(case: Case) -> None:
    refused = refusals(case.answer, case.remark, broker_name="broker-a")
    check_made(case.rule, [refused(0), refused(9)], f"broker-a refused 2 sends{case.said}")


@each_rule
def test_another_remark_is_another_matter(case: Case) -> None:
    other = refusals(case.answer, case.other, broker_name="broker-a")
    assert not problems(case.rule, [other(0)])


@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param(case, name, id=f"{case.rule.id}-{name}")
        for case in CASES
        for name in case.counts
    ],
)
def test_recorded_on_real_brokers(case: Case, name: str) -> None:
    count = case.counts[name]
    sends = "1 send" if count == 1 else f"{count} sends"
    subject = Subject(broker="broker-a", topic=case.topic, group="sample_group")
    check_recorded(case.rule, name, f"broker-a refused {sends}{case.said}", count, subject)
