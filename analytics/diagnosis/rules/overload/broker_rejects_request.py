"""A broker rejects requests before processing them, because it can take none of that kind."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import plain_duration
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import ProblemSeverity
from ...refusals import Refusals, refused_with
from ...rule import COVERED, DiagnosisRule

MARK: Final = "[REJECTREQUEST]"
"""NettyRemotingAbstract.processRequestCommand, NettyRequestProcessor.rejectRequest."""
_LATENCY: Final = "latency"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        if row.latency_us is not None:
            self.note_figure(_LATENCY, row.latency_us)

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        return f"{broker} refused {self.what} immediately: it was overloaded, or it is a slave"

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if _LATENCY in self.figures:
            least, most = self.figures[_LATENCY]
            lines.append(f"answered after {plain_duration(least)} to {plain_duration(most)}")
        return lines


RULE = DiagnosisRule(
    id="broker-rejects-request",
    severity=ProblemSeverity.ERROR,
    title="The broker rejects requests immediately: it is overloaded or a slave",
    searched=("[REJECTREQUEST]system busy, start flow control for a while",),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [REJECTREQUEST].",
    explanation=(
        "A refused message was not stored. Before it queues a send, the broker checks whether it"
        " can write at all. It cannot if a write to the page cache takes too long, if its transient"
        " store pool has no free buffer, or (5.x) if it is a slave. It then refuses each send"
        " within milliseconds. In 5.x, a slave refuses pulls the same way unless"
        " slaveReadEnable=true (default false)."
    ),
    advice=(
        "Check the broker's log at that time. If it is a slave, find out why clients use it:"
        " their route may be outdated. If transientStorePoolEnable (default false) is on,"
        " transientStorePoolSize (default 5) may be too small or the disk too slow. Otherwise,"
        " check the disk: osPageCacheBusyTimeOutMills defaults to 1000 ms."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(MARK, codes=(ResponseCode.SYSTEM_BUSY,)),
    references=(
        "apache/rocketmq#593",
        "apache/rocketmq#285",
        "apache/rocketmq#303",
        "apache/rocketmq#1635",
        "apache/rocketmq#8451",
    ),
    limits="The response does not say which of the reasons applies.",
    consequence_of={"page-cache-busy"},
)
