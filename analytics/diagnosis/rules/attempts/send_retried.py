"""Sends that failed at one broker were stored by a retry."""

from __future__ import annotations

from collections import Counter

from dissectors.quantities import counted

from ....sends.attempts import FAILURES, STORED
from ...context import Context, Need
from ...messages import ObservedMessage
from ...names import counted_names, only, subject_of, was
from ...problem import Case, Impact, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
from .attempt_words import BUSY, NO_RESPONSE, MessageFold


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.causes: Counter[str] = Counter()
        self.stored_on: Counter[str] = Counter()
        self.calls = False
        """the server is a proxy, and its clients use gRPC"""

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message that failed and was then stored."""
        failed = next(attempt for attempt in message.attempts if attempt.outcome in FAILURES)
        self.count(message, failed)
        self.calls = failed.send.call
        self.causes[failed.send.response_name or failed.outcome] += 1
        self.stored_on[
            next(attempt for attempt in message.attempts if attempt.stored).send.broker
        ] += 1

    def case(self, context: Context) -> Case:
        where = Counter[str]()
        for address, number in self.stored_on.items():
            where[context.server(address)] += number
        broker = context.server(self.key)
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} that failed on {broker} {was(self.tally.count)}"
            f" retried and stored {_where(where, broker)}",
            subject_of([self.key], context, only(self.topics), only(self.groups)),
        )
        case.details = [f"first failures: {counted_names(self.causes)}", *self.who(context)]
        case.grpc = self.calls
        return case


def _where(where: Counter[str], broker: str) -> str:
    one = only(where)
    if one == broker:
        return "there later"
    return f"on {one or counted_names(where)}"


def _key(message: ObservedMessage) -> str | None:
    if message.chain.final != STORED:
        return None
    failed = next((attempt for attempt in message.attempts if attempt.outcome in FAILURES), None)
    if failed is None or any(attempt.stored for attempt in message.attempts[: failed.number]):
        return None  # the retried attempt had been stored
    return failed.send.broker


RULE = DiagnosisRule(
    id="send-retried",
    severity=ProblemSeverity.INFO,
    title="Sends that failed at one broker were stored by a retry",
    searched=("retryTimesWhenSendFailed", "retry another broker", "send message retry"),
    proof=(
        "Several sends have one UNIQ_KEY: the first was refused or got no response, or a"
        " connection attempt failed right before; a later one was stored."
    ),
    explanation=(
        "A synchronous send is tried up to 1 + retryTimesWhenSendFailed times, each time on another"
        " broker if there is one. The application only sees a longer latency."
    ),
    advice=(
        "Find out what failed at the first broker. retryTimesWhenSendFailed defaults to 2. (These"
        " messages need no action: a later attempt stored them.)"
    ),
    grpc_explanation=(
        "A gRPC producer makes up to maxAttempts attempts per message, each on another proxy if"
        " there is one. It retries immediately, unless the proxy throttled it. The application only"
        " sees a longer latency."
    ),
    grpc_advice=(
        "Find out what failed at the first attempt. The producer's setMaxAttempts defaults to 3."
        " (These messages need no action: a later attempt stored them.)"
    ),
    grpc=COVERED,
    impact=Impact.RETRIED,
    fold=_Fold,
    messages=_key,
    limits="Retries by the application itself are new messages with other UNIQ_KEYs.",
    needs={Need.SENDS},
    consequence_of=NO_RESPONSE
    | BUSY
    | {
        "call-given-up",
        "stored-not-durable",
        "queues-reduced",
        "vip-port-unreachable",
        "disk-full",
        "no-permission",
        "topic-missing-on-broker",
        "go-away",
        "idle-close",
    },
)
