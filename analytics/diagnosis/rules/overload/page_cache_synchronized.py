"""A broker refuses a send at once because an earlier write has held the commit log for too long."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Need
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARK: Final = "[PC_SYNCHRONIZED]"
"""SendMessageProcessor.handlePutMessageResult, OS_PAGE_CACHE_BUSY."""
_CODES: Final = (ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR)
"""2; 1 from brokers before 5.3"""


class _Fold(RefusingBroker):
    because = "another write held its commit log for too long"


RULE = DiagnosisRule(
    id="page-cache-synchronized",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses sends while another write holds its commit log",
    searched=("[PC_SYNCHRONIZED]broker busy, start flow control for a while",),
    proof="Response code 2 (1 from brokers before 5.3) whose remark contains [PC_SYNCHRONIZED].",
    explanation=(
        "A refused message was not stored. The broker writes one message at a time. Before each"
        " write, it checks how long the write in progress has held the lock of the commit log. If"
        " that exceeds osPageCacheBusyTimeOutMills, the page cache or the disk cannot keep up, and"
        " the broker refuses the send."
    ),
    advice=(
        "Check disk latency, swapping, and vm.dirty_* settings of that host."
        " osPageCacheBusyTimeOutMills defaults to 1000 ms. Java clients before 5.3.0 do not try"
        " another broker after code 2."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(MARK, codes=_CODES),
    references=("apache/rocketmq#1285", "apache/rocketmq-externals#308"),
    needs={Need.SENDS},
    consequence_of={"page-cache-busy"},
)
