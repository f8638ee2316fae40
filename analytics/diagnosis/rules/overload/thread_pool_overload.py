"""A server has so many requests waiting that its queue takes no more."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Context
from ...problem import ProblemSeverity
from ...refusals import counted_names, refused_with
from ...rule import COVERED, DiagnosisRule
from .refusing_broker import RefusingBroker

MARKS: Final = ("[OVERLOAD]", "too many requests and system thread pool busy")
"""NettyRemotingAbstract.processRequestCommand, RejectedExecutionException: servers of 4.x and 5.x,
and those of 3.x."""


class _Fold(RefusingBroker):
    because = "the queue of its threads was full"

    def details(self, context: Context) -> list[str]:
        return [f"requests: {counted_names(self.requests)}", *super().details(context)]


RULE = DiagnosisRule(
    id="thread-pool-overload",
    severity=ProblemSeverity.ERROR,
    title="The queue of a server's threads is full",
    searched=(
        "[OVERLOAD]system busy, start flow control for a while",
        "too many requests and system thread pool busy, please try another server",
        "RejectedExecutionException",
    ),
    proof=(
        "Response code 2 (SYSTEM_BUSY) whose remark contains [OVERLOAD], of servers of 3.x"
        " `system thread pool busy`."
    ),
    explanation=(
        "Each kind of request has its threads and a queue before them. The queue was full, so the"
        " server refused the request without looking at it. Far more requests come than its threads"
        " can do."
    ),
    advice=(
        "Find out which clients send so much, and why the threads are slow: disk, locks, garbage"
        " collection. sendThreadPoolQueueCapacity has the default 10000,"
        " pullThreadPoolQueueCapacity 100000, clientRequestThreadPoolQueueCapacity of a NameServer"
        " 50000. A larger queue only makes clients wait longer."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_BUSY,)),
    limits="One-way requests that were refused get no response and are not seen.",
)
