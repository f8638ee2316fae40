"""A broker drops requests that waited too long in its queue (BrokerFastFailure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dissectors.foreign import natural_of
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE, Add, Flow, response_times
from ...names import by_client, counted_names
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule, Exchanges
from ...spells import HOUR

MARK: Final = "[TIMEOUT_CLEAN_QUEUE]"
_SENDERS: Final = "senders"
_WAITED: Final = "waited"
_SIZE: Final = "size"
_PERIOD: Final = re.compile(r"period in queue: (\d{1,12})\s*ms, size of queue: (\d{1,12})")


class _Fold(RefusingBroker):
    """Refusals of one broker, and the send rates of its clients."""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.response_code == ResponseCode.SYSTEM_BUSY:
            super().add_exchange(row)
        else:
            self._count_sends((row,))

    def adder_of(self, flow: Flow) -> Add:
        return self._count_sends  # a refusal has no flow: its remark decides

    def _count_sends(self, rows: Sequence[ExchangeRecord]) -> None:
        """Count sends of one client to one broker."""
        times = response_times(rows)
        ends = [time for time in times if time]
        # A send without a response counts at the time of its request, as in `end_of`.
        if len(ends) < len(rows):
            ends = [row.response_time or row.request_time or 0 for row in rows]
        # Parts are whole hours: all sends of one hour belong to one part.
        if min(ends) // HOUR == max(ends) // HOUR:
            hours = {0: rows}
        else:
            hours = {
                hour: [row for row, end in zip(rows, ends, strict=True) if end // HOUR == hour]
                for hour in {end // HOUR for end in ends}
            }
        for several in hours.values():
            part = self.part(several[0])
            if part is not None:
                part.note_name(_SENDERS, several[0].client_address, len(several))

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if senders := by_client(self.named(_SENDERS), context):
            lines.append(f"sends to this broker, including refused ones: {counted_names(senders)}")
        return lines

    def take(self, row: ExchangeRecord) -> None:
        # Sends that were not refused are counted by `_count_sends`.
        if row.request_code in SENDS:
            self.note_name(_SENDERS, row.client_address)
        match = _PERIOD.search(row.remark or "")
        if match is not None:
            self.note_figure(_WAITED, natural_of(match[1]))
            self.note_figure(_SIZE, natural_of(match[2]))

    def why(self) -> str:
        if _WAITED not in self.figures:
            return "they waited too long in its queue"
        (least, most), (_, size) = self.figures[_WAITED], self.figures[_SIZE]
        waited = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        who, them = ("it", "it") if self.tally.count == 1 else ("they", "them")
        others = f", with up to {counted(size, 'other request')} behind {them}" if size else ""
        return f"{who} waited {waited} ms in its queue{others}"


def _other_send(row: ExchangeRecord) -> str | None:
    """Return the key of a send that was not refused for this reason; None for `refused_with`."""
    return None if row.response_code == ResponseCode.SYSTEM_BUSY else WHOLE


RULE = DiagnosisRule(
    id="send-queue-timeout",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses requests that waited too long in its queue",
    searched=("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while", "CODE: 2"),
    proof="Response code 2 (SYSTEM_BUSY) whose remark contains [TIMEOUT_CLEAN_QUEUE].",
    explanation=(
        "A refused message was not stored. Requests wait in a queue for a free broker thread. Every"
        " 10 ms, the broker removes requests that have waited too long and refuses them. The broker"
        " is overloaded, or its disk, a lock, or garbage collection paused it."
    ),
    advice=(
        "Look for slow disks, long garbage collections, and bursts of sends at that time. Limits:"
        " waitTimeMillsInSendQueue (default 200 ms) for sends, waitTimeMillsInPullQueue 5 s,"
        " waitTimeMillsInAckQueue 3 s, waitTimeMillsInTransactionQueue 3 s,"
        " waitTimeMillsInHeartbeatQueue 31 s. sendMessageThreadPoolNums adds threads. Raising the"
        " limit hides the cause."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        *refused_with(MARK, codes=(ResponseCode.SYSTEM_BUSY,)),
        Exchanges(_other_send, requests=SENDS, of_flow=True),
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
    limits="Oneway sends get no response, so their removal is not visible.",
)
