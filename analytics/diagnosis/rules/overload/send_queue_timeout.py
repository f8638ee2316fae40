"""A broker gives up requests that waited too long in its queue (BrokerFastFailure)."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import by_responder
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import Refusals, with_remark
from ...rule import DiagnosisRule, Exchanges

MARK: Final = "[TIMEOUT_CLEAN_QUEUE]"
_PERIOD: Final = re.compile(r"period in queue: (\d{1,12})\s*ms, size of queue: (\d{1,12})")


class _Fold(Refusals):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.longest_ms = 0
        self.shortest_ms: int | None = None
        self.most_waiting = 0

    def take(self, row: ExchangeRecord) -> None:
        found = _PERIOD.search(row.remark or "")
        if found is not None:
            waited, size = int(found[1]), int(found[2])
            self.longest_ms = max(self.longest_ms, waited)
            self.shortest_ms = waited if self.shortest_ms is None else min(self.shortest_ms, waited)
            self.most_waiting = max(self.most_waiting, size)

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        if self.shortest_ms is None:
            return f"{broker} refuses requests: they waited too long in its queue"
        return (
            f"{broker} refuses requests: they waited {self.shortest_ms} to {self.longest_ms} ms in"
            f" its queue, with up to {self.most_waiting} others"
        )


RULE = DiagnosisRule(
    id="send-queue-timeout",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses requests that waited too long in its queue",
    searched=("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while", "CODE: 2"),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [TIMEOUT_CLEAN_QUEUE].",
    explanation=(
        "A request waits in a queue until a thread of the broker takes it. Every 10 ms the broker"
        " removes requests that have waited longer than a limit and refuses them. The message was"
        " not stored. The broker is overloaded, or was stopped for a moment by its disk, by a"
        " lock or by garbage collection."
    ),
    advice=(
        "Look for slow disks, long garbage collections and bursts of sends at that time."
        " waitTimeMillsInSendQueue (default 200 ms) is the limit for sends,"
        " waitTimeMillsInPullQueue 5 s, waitTimeMillsInAckQueue 3 s,"
        " waitTimeMillsInTransactionQueue 3 s, waitTimeMillsInHeartbeatQueue 31 s."
        " sendMessageThreadPoolNums adds threads. Raising the limit hides the cause."
    ),
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(MARK, key=by_responder),
            responses=frozenset((int(ResponseCode.SYSTEM_BUSY),)),
        ),
    ),
    references=(
        "apache/rocketmq#4425",
        "apache/rocketmq#2471",
        "apache/rocketmq#3169",
        "apache/rocketmq#1494",
        "apache/rocketmq#5088",
        "apache/rocketmq#2945",
        "alibaba/rocketmq#455",
        "alibaba/spring-cloud-alibaba#1797",
    ),
    limits="One-way sends that were removed get no answer and are not seen.",
    needs=frozenset((Need.SENDS,)),
)
