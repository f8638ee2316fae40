"""A broker refuses all waiting sends because a write to its page cache takes too long."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Need
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARK: Final = "[PCBUSY_CLEAN_QUEUE]"


class _Fold(RefusingBroker):
    because = "a write to its page cache took too long"


RULE = DiagnosisRule(
    id="page-cache-busy",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses sends because a write to its page cache takes too long",
    searched=("[PCBUSY_CLEAN_QUEUE]broker busy",),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [PCBUSY_CLEAN_QUEUE].",
    explanation=(
        "None of the refused messages was stored. One write has held the lock of the commit log for"
        " longer than osPageCacheBusyTimeOutMills, and the broker refuses the sends waiting behind"
        " it. The operating system is writing dirty pages or swapping, or the disk is slow."
    ),
    advice=(
        "Check disk latency, swapping, and vm.dirty_* settings. osPageCacheBusyTimeOutMills"
        " defaults to 1000 ms; transientStorePoolEnable moves writes off the page cache."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(MARK, codes=(ResponseCode.SYSTEM_BUSY,)),
    references=("apache/rocketmq#2709",),
    needs={Need.SENDS},
)
