"""A message that was sent again is stored more than once."""

from __future__ import annotations

from collections.abc import Iterable

from ...context import Context
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, shown
from ...refusals import only
from ...rule import BEHIND_PROXY, DiagnosisRule, Fold


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.brokers: set[str] = set()
        self.groups: set[str] = set()
        self.messages: list[str] = []
        self.copies = 0

    def add_message(self, message: ObservedMessage) -> None:
        stored = [one for one in message.attempts if one.stored]
        self.copies += message.chain.copies
        self.messages.append(message.key)
        self.brokers.update(one.send.broker for one in stored)
        if stored[0].send.group:
            self.groups.add(stored[0].send.group)
        first, last = _evidence(message)
        self.tally.add(first, last=last.time)

    def cases(self, context: Context) -> Iterable[Case]:
        count = self.tally.count
        if not count:
            return
        what = f"message {self.messages[0]} is" if count == 1 else f"{count:,} messages are"
        case = self.tally.case(
            f"{what} stored more than once in topic {self.key}: the producer sent again after it"
            f" had no answer in time ({self.copies:,} copies in all)",
            Subject(
                broker=only(self.brokers),
                topic=self.key,
                group=only(self.groups),
                message=self.messages[0] if count == 1 else None,
            ),
        )
        case.details = [f"messages: {', '.join(sorted(self.messages)[:5])}"]
        yield case


def _evidence(message: ObservedMessage) -> tuple[Evidence, Evidence]:
    answered = [row for row in message.rows if row.response_code is not None]
    first, last = answered[0], answered[-1]
    what = " and ".join(f"{row.offset_msg_id} at {row.responder}" for row in answered[:3])
    return shown(first, f"{message.key} stored as {what}"), shown(last)


RULE = DiagnosisRule(
    id="duplicate-by-retry",
    severity=ProblemSeverity.ERROR,
    title="A message is stored more than once because the producer sent it again",
    searched=("duplicate messages", "repeated message", "message consumed twice"),
    proof=(
        "Two or more sends with one UNIQ_KEY, each answered as stored, with different offset"
        " message ids."
    ),
    explanation=(
        "The producer got no response in time and sent the message again, mostly to another broker."
        " Both brokers stored it. RocketMQ delivers at least once: consumers get both copies, with"
        " the same UNIQ_KEY and different offset message ids."
    ),
    advice=(
        "Make consumers idempotent: keep the message's KEYS or UNIQ_KEY of what was processed."
        " Find out why the first answer was late. A longer sendMsgTimeout (default 3000 ms) gives"
        " fewer retries; retryTimesWhenSendFailed (default 2) set to 0 gives none, and lost"
        " messages instead."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    messages=lambda message: (
        message.attempts[0].send.topic or "" if message.chain.duplicate else None
    ),
    references=(
        "apache/rocketmq#2735",
        "apache/rocketmq#4933",
        "apache/rocketmq#6919",
        "apache/rocketmq#9909",
        "apache/rocketmq#1192",
    ),
    needs=frozenset((Need.SENDS,)),
    consequence_of=frozenset(
        (
            "send-timeout",
            "first-attempt-ate-the-budget",
            "broker-hung",
            "packets-unacknowledged",
            "broker-gone",
        )
    ),
)
