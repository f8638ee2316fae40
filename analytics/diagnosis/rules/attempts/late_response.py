"""The answer to a send comes when its client has given it up."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.remoting.versions import V4_9_0

from ....sends.attempts import ObservedAttempt
from ...context import Context
from ...keys import parts_of
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject
from ...refusals import counted, only
from ...rule import DiagnosisRule
from .attempt_words import MessageFold, by_broker_and_topic, came_late, length_us


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.longest = 0
        self.sure = False
        self.retried = 0

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message with an answer that came too late."""
        for attempt in _late(message):
            self.count(message, attempt)
            send = attempt.send
            self.longest = max(self.longest, (send.end or send.begin) - send.begin)
            self.sure = self.sure or attempt.certain
        if len(message.attempts) > 1:
            self.retried += 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a broker and topic."""
        if not self.tally.count:
            return
        broker, topic = parts_of(self.key)
        case = self.tally.case(
            f"{context.broker(broker)} answered {counted(self.tally.count, 'send')} to topic"
            f" {topic} after up to {length_us(self.longest)}, when the producer had given up:"
            " stored, but taken for a failure",
            Subject(broker=context.broker(broker), topic=topic or None, group=only(self.groups)),
        )
        case.details = self.who(context)
        if self.retried:
            case.details.append(f"{counted(self.retried, 'message')} had been sent again by then")
        if not self.sure:
            case.confidence = Confidence.LIKELY
            case.reason = "sendMsgTimeout is not known; the default of 3000 ms was assumed"
        yield case


def _late(message: ObservedMessage) -> list[ObservedAttempt]:
    """Return the attempts whose answer came too late.

    A newer client closes the connection of a send that it gives up: one that goes on using it was
    still waiting, with a longer timeout than the default.
    """
    return [
        one
        for one in message.attempts
        if came_late(one) and (one.certain or (one.send.version or 0) < V4_9_0)
    ]


def _key(message: ObservedMessage) -> str | None:
    return by_broker_and_topic(_late(message))


RULE = DiagnosisRule(
    id="late-response",
    severity=ProblemSeverity.WARNING,
    title="The response to a send arrives after the client has given up",
    searched=(
        "receive response, but not matched any request",
        "message stored but send failed",
        "late response",
    ),
    proof=(
        "A send is answered as stored after its client sent the message again, closed the"
        " connection, or after sendMsgTimeout."
    ),
    explanation=(
        "The client forgets a request when its time is over. A response that comes later matches no"
        " request and is only logged. The message is stored, while the application was told of a"
        " failure and may send it once more."
    ),
    advice=(
        "Raise sendMsgTimeout (default 3000 ms) above what the broker needs at its worst, or find"
        " out what held it up. Make consumers idempotent. Old clients keep the connection after a"
        " timeout, so that late responses are seen on it; 4.9.8 and 5.x close it"
        " (com.rocketmq.remoting.client.closeSocketIfTimeout, default true there)."
    ),
    grpc=(
        "The client resets the stream of a call at its deadline, so t"
        "hat no response comes after it."
    ),
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#10575",),
    limits=("Where the client closed the connection, a response after that may not be captured."),
    needs=frozenset((Need.SENDS,)),
    consequence_of=frozenset(
        (
            "broker-hung",
            "packets-unacknowledged",
            "broker-slow",
            "send-timeout",
            "stored-not-durable",
        )
    ),
)
