"""A broker refuses requests before it looks at them, because it can take none of that kind."""

from __future__ import annotations

from typing import Final

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
        return f"{broker} refused {self.what} at once: it takes none at the moment"

    def details(self, context: Context) -> list[str]:
        said = super().details(context)
        if _LATENCY in self.figures:
            least, most = self.figures[_LATENCY]
            said.append(f"answered after {least / 1000:.1f} to {most / 1000:.1f} ms")
        return said


RULE = DiagnosisRule(
    id="broker-rejects-request",
    severity=ProblemSeverity.ERROR,
    title="The broker rejects requests immediately because it is overloaded",
    searched=("[REJECTREQUEST]system busy, start flow control for a while",),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [REJECTREQUEST].",
    explanation=(
        "Before a send gets into the queue the broker asks itself whether it can write at all. It"
        " cannot while a write to the page cache takes too long, while its transient store pool has"
        " no free buffer, or while it is a slave. Then it refuses each send within milliseconds."
        " Nothing was stored."
    ),
    advice=(
        "Look in the broker's log of that time. If it is a slave, find out why clients send to it:"
        " their route may be old. If transientStorePoolEnable (default false) is on,"
        " transientStorePoolSize (default 5) may be too small or the disk too slow. Otherwise check"
        " the disk: osPageCacheBusyTimeOutMills has the default 1000 ms."
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
    limits="The response does not say which of the three reasons it was.",
    consequence_of=frozenset(("page-cache-busy",)),
)
