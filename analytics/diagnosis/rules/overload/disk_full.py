"""A broker accepts no messages because its disk is full, or because its store cannot write."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import real_of
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...problem import Case, ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARKS: Final = ("disk is full", "maybe disk full")
"""SendMessageProcessor.handlePutMessageResult, SERVICE_NOT_AVAILABLE: brokers since 4.8, and
earlier ones"""
STOPS_AT: Final = 90
"""diskSpaceWarningLevelRatio in percent: MessageStoreConfig, DefaultMessageStore"""
_RATIOS: Final = re.compile(
    r"[\[,]\s*CL:\s*(-?[\d.]{1,9})\s*CQ:\s*(-?[\d.]{1,9})\s*INDEX:\s*(-?[\d.]{1,9})\s*[\],]"
)
"""AbstractSendMessageProcessor.diskUtil: used shares of the disks"""
_PLACES: Final = ("commit log", "consume queues", "index")


class _Fold(RefusingBroker):
    def take(self, row: ExchangeRecord) -> None:
        match = _RATIOS.search(row.remark or "")
        if match is None:
            return
        for place, text in zip(_PLACES, match.groups(), strict=True):
            if (share := _percent(text)) is not None:
                self.note_figure(place, share)

    @property
    def fullest(self) -> int | None:
        """Percent of the fullest disk; None: not in the remark."""
        return max((most for _, most in self.figures.values()), default=None)

    def why(self) -> str:
        used = ", ".join(f"{place} {most} %" for place, (_, most) in self.figures.items())
        shares = f" (in use: {used})" if used else ""
        if self.fullest is not None and self.fullest < STOPS_AT:
            return f"its disk is full{shares} or its store is not writable"
        return f"its disk is full{shares}"

    def details(self, context: Context) -> list[str]:
        lines = [*super().details(context), *self.again_lines(context)]
        for topic in sorted(self.topics):
            if others := _others(context, topic, context.broker(self.key)):
                lines.append(f"sends of {topic} can go to {others}")
        return lines

    def judge(self, case: Case, context: Context) -> None:
        if self.fullest is not None and self.fullest < STOPS_AT:
            case.doubt(
                f"the remark says that only {self.fullest} % is in use, so the limit is below"
                f" {STOPS_AT} %, or the store cannot write for another reason (a slave, a store"
                " that was shut down, a disk error)"
            )


def _percent(text: str) -> int | None:
    share = real_of(text)
    return round(share * 100) if share is not None and 0 <= share <= 1 else None


def _others(context: Context, topic: str, refusing: str) -> str:
    names = [broker.name for broker in context.brokers_of(topic) if broker.name != refusing]
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
        "service not available now. It may be caused by one of the following reasons",
    ),
    proof=(
        "Response code 14 (SERVICE_NOT_AVAILABLE) to a send. Its remark says `disk is full` (`maybe"
        " disk full` in 4.7 and earlier) and how full the disks are."
    ),
    explanation=(
        "The broker watches the disks of its commit log and consume queues. Above 90 %, it"
        " accepts no more messages, but consumers keep working. The producer tries another broker"
        " of the topic, if there is one. A slave, or a store that is shutting down, sends the same"
        " response."
    ),
    advice=(
        "Free space on that disk or make it larger. Messages are kept for fileReservedTime (default"
        " 72 h). They are deleted at the hour in deleteWhen (default 04), or as soon as the disk is"
        " fuller than diskMaxUsedSpaceRatio (default 75 %). Sends stop at"
        " diskSpaceWarningLevelRatio (default and maximum 90 %; in 4.x, the system property"
        " rocketmq.broker.diskSpaceWarningLevelRatio, default 0.90). Check for other programs that"
        " fill the disk."
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
    limits=(
        "Only the percentages in the remark distinguish a full disk from a store that was shut"
        " down."
    ),
    needs={Need.SENDS},
)
