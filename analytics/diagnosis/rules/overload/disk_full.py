"""A broker takes no messages because its disk is full, or because its store does not write."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import real_of
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity
from ...refusals import counted, refused_with, times
from ...rule import COVERED, DiagnosisRule
from .refusing_broker import RefusingBroker

MARKS: Final = ("disk is full", "maybe disk full")
"""SendMessageProcessor.handlePutMessageResult, SERVICE_NOT_AVAILABLE: brokers of 4.9 and 5.x,
and those of 4.6 and before."""
STOPS_AT: Final = 90
"""diskSpaceWarningLevelRatio in percent: MessageStoreConfig, DefaultMessageStore"""
_RATIOS: Final = re.compile(
    r"[\[,]\s*CL:\s*(-?[\d.]{1,9})\s*CQ:\s*(-?[\d.]{1,9})\s*INDEX:\s*(-?[\d.]{1,9})\s*[\],]"
)
"""AbstractSendMessageProcessor.diskUtil: shares of the disks that are in use."""
_PLACES: Final = ("commit log", "consume queues", "index")


class _Fold(RefusingBroker):
    def take(self, row: ExchangeRecord) -> None:
        found = _RATIOS.search(row.remark or "")
        if found is None:
            return
        for place, text in zip(_PLACES, found.groups(), strict=True):
            if (share := _percent(text)) is not None:
                self.note_figure(place, share)

    @property
    def fullest(self) -> int | None:
        """Percent of the fullest disk; None: the remark does not say."""
        return max((most for _, most in self.figures.values()), default=None)

    def why(self) -> str:
        used = ", ".join(f"{place} {most} %" for place, (_, most) in self.figures.items())
        shares = f" (in use: {used})" if used else ""
        if self.fullest is not None and self.fullest < STOPS_AT:
            return f"by its answer its disk is full{shares} or its store cannot write"
        return f"its disk is full{shares}"

    def details(self, context: Context) -> list[str]:
        said = super().details(context)
        messages, most = self.sent_again()
        if messages:
            said.append(f"{counted(messages, 'message')} refused up to {times(most)}")
        for topic in sorted(self.topics):
            if others := _others(context, topic, context.broker(self.key)):
                said.append(f"sends of {topic} can go to {others}")
        return said

    def judge(self, case: Case, context: Context) -> None:
        if self.fullest is not None and self.fullest < STOPS_AT:
            case.confidence = Confidence.LIKELY
            case.reason = (
                f"the remark says that {self.fullest} % are in use: the limit is set below"
                f" {STOPS_AT} %, or the store cannot write for another reason (a slave, a store"
                " that was shut down, an error of the disk)"
            )


def _percent(text: str) -> int | None:
    share = real_of(text)
    return round(share * 100) if share is not None and 0 <= share <= 1 else None


def _others(context: Context, topic: str, refusing: str) -> str:
    names = [one.name for one in context.brokers_of(topic) if one.name != refusing]
    return ", ".join(names[:3])


RULE = DiagnosisRule(
    id="disk-full",
    severity=ProblemSeverity.ERROR,
    title="The broker accepts no messages because its disk is full",
    searched=(
        "service not available now",
        "the broker's disk is full [CL: CQ: INDEX: ]",
        "maybe disk full, CL: CQ: INDEX:, maybe your broker machine memory too small",
        "messages are put to the slave, message store has been shut down",
        "CODE: 14",
    ),
    proof=(
        "Response code 14 (SERVICE_NOT_AVAILABLE) to a send, whose remark says `disk is full`,"
        " of brokers of 4.6 and before `maybe disk full`, and how much of the disks is in use."
    ),
    explanation=(
        "The broker watches the disks of its commit log, consume queues and index. From 90 % on it"
        " takes no more messages, but consumers can go on. The producer tries another broker of the"
        " topic, if there is one. The same response comes from a slave and from a store that shuts"
        " down."
    ),
    advice=(
        "Free space on that disk or make it larger. Messages are kept for fileReservedTime (default"
        " 72 h) and deleted at deleteWhen (04 h) or from diskMaxUsedSpaceRatio (75 %) on. Sends"
        " stop at diskSpaceWarningLevelRatio (90 %, never more; in 4.x the system property"
        " rocketmq.broker.diskSpaceWarningLevelRatio, 0.90). Look out for other programs that fill"
        " the disk."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SERVICE_NOT_AVAILABLE,)),
    references=(
        "apache/rocketmq#3750",
        "apache/rocketmq#4831",
        "apache/rocketmq#2138",
        "apache/rocketmq#573",
        "apache/rocketmq#4826",
        "alibaba/rocketmq#134",
    ),
    limits="Only the figures in the remark tell a full disk from a store that was shut down.",
    needs=frozenset((Need.SENDS,)),
)
