"""The response to a send arrives after the client's timeout."""

from __future__ import annotations

from dissectors.quantities import counted, plain_duration
from dissectors.remoting.versions import V4_9_0

from ....sends.attempts import ObservedAttempt
from ...context import Context, Need
from ...keys import parts_of
from ...messages import ObservedMessage
from ...names import only, subject_of
from ...problem import Case, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
from .attempt_words import MessageFold, by_broker_and_topic, came_late


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.longest = 0
        self.sure = False
        self.retried = 0

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with a late response."""
        for attempt in _late(message):
            self.count(message, attempt)
            send = attempt.send
            self.longest = max(self.longest, (send.end or send.begin) - send.begin)
            self.sure = self.sure or attempt.certain
        if len(message.attempts) > 1:
            self.retried += 1

    def case(self, context: Context) -> Case:
        broker, topic = parts_of(self.key)
        case = self.tally.case(
            f"{context.server(broker)} responded to {counted(self.tally.count, 'send')} to topic"
            f" {topic} after up to {plain_duration(self.longest)}, when the producer had timed out:"
            " stored, but reported as failed",
            subject_of([broker], context, topic or None, only(self.groups)),
        )
        case.details = self.who(context)
        if self.retried:
            case.details.append(f"{counted(self.retried, 'message')} had been retried by then")
        if not self.sure:
            case.doubt("sendMsgTimeout is not known; the default of 3000 ms was assumed")
        return case


def _late(message: ObservedMessage) -> list[ObservedAttempt]:
    """Return the attempts with a late response."""
    return [
        attempt
        for attempt in message.attempts
        # A newer client closes the connection of a send that times out. If it keeps using the
        # connection, it was still waiting, with a timeout above the default.
        if came_late(attempt) and (attempt.certain or (attempt.send.version or 0) <= V4_9_0)
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
        "A send is stored, but its response comes after the client sent the message again, closed"
        " the connection, or reached sendMsgTimeout."
    ),
    explanation=(
        "The client forgets a request after its timeout. A later response matches no request and is"
        " only logged. The message is stored, but the application got an error and may send it"
        " again."
    ),
    advice=(
        "Raise sendMsgTimeout (default 3000 ms) above the broker's worst case, or find out what"
        " delayed it. Make consumers idempotent. Clients before 4.9.1 keep the connection after"
        " a timeout, so late responses are visible; later ones close it"
        " (com.rocketmq.remoting.client.closeSocketIfTimeout, default true)."
    ),
    grpc=COVERED,
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#10575",),
    limits="If the client closed the connection, a later response may not be captured.",
    needs={Need.SENDS},
    consequence_of={
        "broker-hung",
        "packets-unacknowledged",
        "idle-close",
        "broker-slow",
        "send-timeout",
        "call-given-up",
        "stored-not-durable",
    },
)
