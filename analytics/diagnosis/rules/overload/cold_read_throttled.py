"""A broker throttles a consumer group that reads messages which are no longer in memory."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import ResponseCode

from ...context import Context, Need
from ...keys import by_group, with_remark
from ...names import listed
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges

MARK: Final = "reading cold data"
"""PullMessageProcessor.processRequest."""


class _Fold(Refusals):
    def title(self, context: Context) -> str:
        brokers = listed(map(context.broker, self.brokers))
        return (
            f"{brokers} refused {self.what} of group {self.key}:"
            " it reads old messages, which are no longer in memory"
        )


RULE = DiagnosisRule(
    id="cold-read-throttled",
    severity=ProblemSeverity.WARNING,
    title="The broker slows down a consumer group that reads old messages from disk",
    searched=("This consumer group is reading cold data. It has been flow control",),
    proof="Response code 2 to a pull, with a remark that contains `reading cold data`.",
    explanation=(
        "The group is so far behind that the broker must read its messages from disk. Such reads"
        " slow down all other requests. So the broker limits the bytes that a group may read from"
        " disk, and refuses pulls above the limit for some time. No message is lost; the group only"
        " catches up slowly."
    ),
    advice=(
        "Find out why the group fell behind, or whether its offset was reset to an old time. The"
        " limits are cgColdReadThreshold (default 3 MB per group) and globalColdReadThreshold (100"
        " MB); coldDataFlowControlEnable (default false) turns them on. mqadmin"
        " updateColdDataFlowCtrGroupConfig sets the limit of one group."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(MARK, key=by_group),
            requests=FETCHES,
            responses={ResponseCode.SYSTEM_BUSY},
        ),
    ),
    needs={Need.PULLS},
    consequence_of={"consumer-lag"},
)
