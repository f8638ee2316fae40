"""A server has so many waiting requests that its queue is full."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Context
from ...names import counted_names
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARKS: Final = ("[OVERLOAD]", "too many requests and system thread pool busy")
"""NettyRemotingAbstract.processRequestCommand, RejectedExecutionException: servers of 4.x and 5.x,
and those of 3.x"""


class _Fold(RefusingBroker):
    because = "its thread pool queue was full"

    def details(self, context: Context) -> list[str]:
        return [f"requests: {counted_names(self.requests)}", *super().details(context)]


RULE = DiagnosisRule(
    id="thread-pool-overload",
    severity=ProblemSeverity.ERROR,
    title="A server's thread pool queue is full",
    searched=(
        "[OVERLOAD]system busy, start flow control for a while",
        "too many requests and system thread pool busy, please try another server",
        "RejectedExecutionException",
    ),
    proof=(
        "Response code 2 (SYSTEM_BUSY) whose remark contains [OVERLOAD], or `system thread pool"
        " busy` from 3.x servers."
    ),
    explanation=(
        "Each kind of request has its own threads and a queue in front of them. The queue was full,"
        " so the server refused the request without reading it. Far more requests arrive than the"
        " threads can process."
    ),
    advice=(
        "Find out which clients send so many requests, and why the threads are slow: disk, locks,"
        " garbage collection. sendThreadPoolQueueCapacity defaults to 10000,"
        " pullThreadPoolQueueCapacity to 100000, clientRequestThreadPoolQueueCapacity of a"
        " NameServer to 50000. A larger queue only makes clients wait longer."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_BUSY,)),
    limits="Oneway requests get no response, so their refusal is not visible.",
)
