"""One attempt used up the whole timeout: no retry was made, although retries are on."""

from __future__ import annotations

from dissectors.quantities import counted, plain_duration

from ....sends.chains import NO_TIME
from ...context import Context, Need
from ...messages import ObservedMessage
from ...names import was
from ...problem import Case, ProblemSeverity
from ...rule import DiagnosisRule
from .attempt_words import MessageFold, timed_out


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.timeout_us = 0
        self.sure = True

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with a single, failed attempt."""
        self.count(message, message.attempts[0])
        self.timeout_us = max(self.timeout_us, message.timeout_us)
        self.sure = self.sure and message.timeout_known

    def case(self, context: Context) -> Case | None:
        if context.quality.with_gaps:
            return None  # the retry may be missing in the capture
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} of group {self.key} {was(self.tally.count)} not"
            " retried: the first attempt used up the whole timeout"
            f" ({plain_duration(self.timeout_us)})",
            self.subject(context, self.key),
        )
        case.details = self.who(context)
        if not self.sure:
            case.doubt("sendMsgTimeout is not known; the default of 3000 ms was assumed")
        return case


def _key(message: ObservedMessage) -> str | None:
    # Also seen to time out: a client that was stopped makes no retry, either.
    if message.chain.verdict != NO_TIME or not timed_out(message):
        return None
    return message.attempts[0].send.group or ""


RULE = DiagnosisRule(
    id="first-attempt-ate-the-budget",
    severity=ProblemSeverity.WARNING,
    title="The first attempt uses up the whole timeout, so no retry follows",
    searched=(
        "retryTimesWhenSendFailed not working",
        "send timeout but no retry",
        "sendMsgMaxTimeoutPerRequest",
    ),
    proof=(
        "A message has only one attempt, which its client gave up when (or shortly before)"
        " sendMsgTimeout expired."
    ),
    explanation=(
        "sendMsgTimeout covers all attempts together. An attempt without a response uses all of it,"
        " so no time is left for a retry, whatever retryTimesWhenSendFailed says. Only fast"
        " failures are retried: refused connection attempts, resets, error responses."
    ),
    advice=(
        "Set sendMsgMaxTimeoutPerRequest (5.3.3 and later, default off) to a part of sendMsgTimeout"
        " (default 3000 ms), for example a third with the default retryTimesWhenSendFailed of 2."
        " With older clients, raise sendMsgTimeout and retry in the application. A retry after a"
        " timeout may store the message twice."
    ),
    grpc="Not covered: the deadline of a call covers one attempt.",
    fold=_Fold,
    messages=_key,
    references=(
        "apache/rocketmq#4720",
        "apache/rocketmq#1921",
        "apache/rocketmq#3929",
        "apache/rocketmq#7295",
        "apache/rocketmq#8990",
        "apache/rocketmq#9137",
    ),
    limits=(
        "Synchronous sends to a chosen queue, and sends with retries set to 0, look the same: they"
        " are never retried."
    ),
    needs={Need.SENDS, Need.CONNECTIONS},
    rests_on_absence=True,
    consequence_of={
        "send-timeout",
        "broker-hung",
        "packets-unacknowledged",
        "idle-close",
        "broker-gone",
    },
)
