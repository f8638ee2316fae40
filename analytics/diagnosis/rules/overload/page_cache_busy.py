"""A broker refuses all waiting sends because a write to its page cache takes too long."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import Refusals, with_remark
from ...rule import DiagnosisRule, Exchanges

MARK: Final = "[PCBUSY_CLEAN_QUEUE]"


class _Fold(Refusals):
    per_broker = True

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        return f"{broker} refused {self.what}: a write to its page cache took too long"


RULE = DiagnosisRule(
    id="page-cache-busy",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses sends because a write to its page cache takes too long",
    searched=("[PCBUSY_CLEAN_QUEUE]broker busy",),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [PCBUSY_CLEAN_QUEUE].",
    explanation=(
        "One write of a message has held the lock of the commit log for longer than"
        " osPageCacheBusyTimeOutMills. The broker then refuses the sends that wait behind it."
        " None of them was stored. The operating system is writing dirty pages, swapping, or the"
        " disk is slow."
    ),
    advice=(
        "Check disk latency, swapping and vm.dirty_* settings. osPageCacheBusyTimeOutMills has the"
        " default 1000 ms; transientStorePoolEnable moves writes off the page cache."
    ),
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(MARK, key=whole),
            responses=frozenset((int(ResponseCode.SYSTEM_BUSY),)),
        ),
    ),
    references=("apache/rocketmq#2709",),
    needs=frozenset((Need.SENDS,)),
)
