"""An asynchronous retry goes to another broker with the queue chosen for the first one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dissectors.foreign import natural_of
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import by_topic, with_remark
from ...messages import ObservedMessage
from ...names import listed, only
from ...problem import Case, ProblemSeverity, Subject, Tally, shown
from ...refusals import Refusals
from ...rule import PROXY_CHOOSES, DiagnosisRule, Exchanges

MARK: Final = "request queueId["
"""AbstractSendMessageProcessor.msgCheck"""
_CODES: Final = frozenset((int(ResponseCode.SYSTEM_ERROR), int(ResponseCode.INVALID_PARAMETER)))
"""1 up to 5.3.1, 29 from 5.3.2 on"""
_QUEUE: Final = re.compile(r"request queueId\[(\d{1,9})\]")
_WRITABLE: Final = re.compile(r"writeQueueNums=(\d{1,9})")
_ASKED: Final = "asked"
_IDS: Final = "queue"
_QUEUES: Final = "queues"


class _Fold(Refusals):
    per_broker = True

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.stale = Tally()
        self.first_brokers: set[str] = set()
        self.later_brokers: set[str] = set()
        self.producers: set[str] = set()

    def take(self, row: ExchangeRecord) -> None:
        self.note_name(_ASKED, row.broker_name)
        remark = row.remark or ""
        for name, pattern in ((_IDS, _QUEUE), (_QUEUES, _WRITABLE)):
            if (match := pattern.search(remark)) is not None:
                self.note_figure(name, natural_of(match[1]))

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        least, most = self.figures.get(_IDS, (0, 0))
        queue = f"queue {most}" if least == most else f"queues {_from_to(least, most)}"
        has = self.figures.get(_QUEUES)
        queues = f" ({_queues_text(has[1])})" if has is not None else ""
        asked = self._meant(context)
        meant = f"; the queue was chosen for {listed(asked)}" if asked else ""
        topic = only(self.topics)
        return (
            f"{broker} refused {self.what} to {queue}"
            f"{f' of topic {topic}' if topic else ''}{queues}{meant}"
        )

    def subject(self, context: Context) -> Subject:
        """Return topic and group; the broker too, unless the first failure was at another one."""
        subject = super().subject(context)
        return (
            Subject(topic=subject.topic, group=subject.group) if self._meant(context) else subject
        )

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if not self._meant(context):
            lines.append("the requests name no other broker: the client's route may be outdated")
        return lines

    def add_message(self, message: ObservedMessage) -> None:
        for row in stale_rows(message):
            self.stale.add(shown(row, f"{message.key} sent with the queue of {row.broker_name}"))
            self.first_brokers.add(row.broker_name or "")
            self.later_brokers.add(row.server_address)
            if row.group:
                self.producers.add(row.group)

    def cases(self, context: Context) -> Iterable[Case]:
        yield from super().cases(context)
        if self.stale.count:
            later = {context.broker(address) for address in self.later_brokers}
            case = self.stale.case(
                f"{counted(self.stale.count, 'retry', 'retries')} of topic"
                f" {self.key} went to {listed(later)} with the queue number that was chosen for"
                f" {listed(self.first_brokers)}",
                Subject(topic=self.key, group=only(self.producers)),
            )
            case.severity = ProblemSeverity.INFO
            yield case

    def _meant(self, context: Context) -> set[str]:
        """Return the intended brokers of the requests, other than the one that refused."""
        return {name for name in self.named(_ASKED) if name != context.broker(self.key)}


def stale_rows(message: ObservedMessage) -> list[ExchangeRecord]:
    """Return the retries of a message that went to another broker with an unchanged header."""
    first = message.attempts[0]
    rows = []
    for attempt in message.attempts[1:]:
        send = attempt.send
        same = (send.asked_broker, send.queue_id) == (
            first.send.asked_broker,
            first.send.queue_id,
        )
        if (
            attempt.stale_queue
            and same
            # A first attempt with the name of another broker is no retry: the route was old.
            and not first.stale_queue
            and send.broker != first.send.broker
        ):
            place = (send.client_address, send.server_address, send.opaque)
            rows += [
                row
                for row in message.rows
                if (row.client_address, row.server_address, row.opaque) == place
                # Those are refusals, which the exchanges of the rule count.
                and MARK not in (row.remark or "")
            ][:1]
    return rows


def _from_to(first: int, last: int) -> str:
    """Return a range of queues: ``0 and 1``, ``0 to 7``."""
    return f"{first} and {last}" if last == first + 1 else f"{first} to {last}"


def _queues_text(number: int) -> str:
    """Return the queues to which a broker accepts messages of a topic."""
    if number < 2:
        return "its only queue is 0" if number else "it has no queues"
    return f"its queues are {_from_to(0, number - 1)}"


RULE = DiagnosisRule(
    id="async-retry-stale-queue",
    severity=ProblemSeverity.ERROR,
    title="A send names a queue that the broker does not have, usually in an asynchronous retry",
    searched=("request queueId[N] is illegal",),
    proof=(
        "Response code 29 (1 from brokers before 5.3.2) to a send, with the remark `request"
        " queueId[N] is illegal`. Or an attempt goes to another broker with the broker name and"
        " queue of the previous attempt (same UNIQ_KEY)."
    ),
    explanation=(
        "When an asynchronous send fails, the Java client repeats the request, usually to another"
        " broker, but keeps the broker name and queue id of the first broker in it. If the second"
        " broker has fewer queues of the topic, it refuses the message; otherwise it stores the"
        " message in the queue with that id. The same refusal happens after the number of queues"
        " was lowered, while the client still has the old route."
    ),
    advice=(
        "Give the topic the same number of queues on all brokers (mqadmin updateTopic -w -r)."
        " Setting retryTimesWhenSendAsyncFailed (default 2) to 0 turns these retries off; the"
        " application must then retry. After lowering the number of queues, wait until all clients"
        " have the new route (pollNameServerInterval, default 30 s)."
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    exchanges=(Exchanges(key=with_remark(MARK, key=by_topic), requests=SENDS, responses=_CODES),),
    messages=lambda message: message.attempts[0].send.topic or "" if stale_rows(message) else None,
    references=("apache/rocketmq#1497",),
    needs={Need.SENDS},
    consequence_of={
        "send-timeout",
        "broker-gone",
        "broker-hung",
        "broker-name-twice",
        "packets-unacknowledged",
        "queues-reduced",
    },
)
