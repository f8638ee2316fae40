"""Sends that failed at one broker were stored by a retry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ....sends.attempts import FAILURES, STORED
from ...context import Context
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import counted, counted_names, only
from ...rule import BEHIND_PROXY, DiagnosisRule
from .attempt_words import MessageFold
from .causes import BUSY, NO_ANSWER


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.causes: Counter[str] = Counter()
        self.stored_on: Counter[str] = Counter()

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message that failed and was stored."""
        failed = next(one for one in message.attempts if one.outcome in FAILURES)
        self.count(message, failed)
        self.causes[failed.send.response_name or failed.outcome] += 1
        self.stored_on[next(one for one in message.attempts if one.stored).send.broker] += 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a broker."""
        if not self.tally.count:
            return
        where = Counter[str]()
        for address, number in self.stored_on.items():
            where[context.broker(address)] += number
        broker = context.broker(self.key)
        verb = "was" if self.tally.count == 1 else "were"
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} that failed at {broker} {verb} tried again and"
            f" stored {_where(where, broker)}",
            Subject(broker=broker, topic=only(self.topics), group=only(self.groups)),
        )
        case.details = [f"first failures: {counted_names(self.causes)}", *self.who(context)]
        yield case


def _where(where: Counter[str], broker: str) -> str:
    one = only(where)
    if one == broker:
        return "there later"
    return f"on {one or counted_names(where)}"


def _key(message: ObservedMessage) -> str | None:
    if message.chain.final != STORED:
        return None
    failed = next((one for one in message.attempts if one.outcome in FAILURES), None)
    return failed.send.broker if failed is not None else None


RULE = DiagnosisRule(
    id="send-retried",
    severity=ProblemSeverity.INFO,
    title="Sends that failed at one broker were stored by a retry",
    searched=("retryTimesWhenSendFailed", "retry another broker", "send message retry"),
    proof=(
        "Several sends with one UNIQ_KEY: the first refused, without answer, or a connect that"
        " failed right before; a later one answered as stored."
    ),
    explanation=(
        "A synchronous send is tried up to 1 + retryTimesWhenSendFailed times, each time at another"
        " broker where there is one. The application notices only the time that it takes."
    ),
    advice=(
        "Find out what failed at the first broker. retryTimesWhenSendFailed has the default 2."
        " (These messages need no action: a later attempt stored them.)"
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    messages=_key,
    limits="Retries that an application makes itself are new messages with other UNIQ_KEYs.",
    needs=frozenset((Need.SENDS,)),
    consequence_of=NO_ANSWER
    | BUSY
    | {
        "queues-reduced",
        "vip-port-unreachable",
        "disk-full",
        "no-permission",
        "topic-missing-on-broker",
        "go-away",
    },
)
