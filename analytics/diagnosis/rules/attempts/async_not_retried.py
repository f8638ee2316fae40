"""A send was refused with a code that synchronous sends retry, and was not retried."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.code_sets import REPLIES, RETRIED_SINCE

from ....sends.attempts import REFUSED, ObservedAttempt
from ....sends.chains import NOT_RETRIED, remark_shape
from ...context import Context, Need
from ...keys import joined_key, parts_of
from ...messages import ObservedMessage
from ...names import counted_names, was
from ...problem import Case, ProblemSeverity
from ...rule import ALWAYS_RETRIED, DiagnosisRule
from .attempt_words import BUSY, LoneMessageFold

GO: Final = "GO"


class _Fold(LoneMessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.responses: Counter[str] = Counter()

    def count(self, message: ObservedMessage, attempt: ObservedAttempt) -> None:
        """Count an attempt of a message, and its response."""
        super().count(message, attempt)
        self.responses[attempt.send.response_name or str(attempt.send.response_code)] += 1

    def case(self, context: Context) -> Case:
        """Return the case of a group and language."""
        group = parts_of(self.key)[1]
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} of group {group} {was(self.tally.count)} refused"
            f" with {counted_names(self.responses)} and not retried on another broker",
            self.subject(context, group),
        )
        case.details = self.who(context)
        if GO in self.languages:
            case.severity = ProblemSeverity.INFO
            case.details.append("the Go client never retries asynchronous sends")
        case.doubt(
            "packets do not show whether a send was asynchronous, went to a chosen queue, or had"
            " retries set to 0"
        )
        return case


def _key(message: ObservedMessage) -> str | None:
    last = message.last
    if message.rows and message.rows[0].request_code in REPLIES:
        return None  # a reply must go through the broker that knows the client
    retried = message.chain.verdict == NOT_RETRIED
    # The chain has verdicts on Java clients only: those of other languages differ.
    if last.send.language == GO and len(message.attempts) == 1 and last.outcome == REFUSED:
        retried = last.send.response_code in RETRIED_SINCE and not _of_the_message(last.send.remark)
    return joined_key(last.send.language, last.send.group) if retried else None


def _of_the_message(remark: str | None) -> bool:
    shape = (remark_shape(remark) or "").lower()
    return any(word in shape for word in ("acl", "signature", "permission", "accesskey"))


RULE = DiagnosisRule(
    id="async-not-retried",
    severity=ProblemSeverity.WARNING,
    title="Refused asynchronous sends are not retried on another broker",
    searched=(
        "retryTimesWhenSendAsyncFailed not working",
        "async send no retry",
        "sendAsync broker busy",
    ),
    proof=(
        "A send is refused with a code that the client's version retries for synchronous sends. No"
        " further send of that UNIQ_KEY follows, although the capture continues."
    ),
    explanation=(
        "retryTimesWhenSendAsyncFailed applies only to transport failures: no connection, no"
        " response. An error response goes straight to onException of the callback. Synchronous"
        " sends to a chosen queue or with a selector are never retried."
    ),
    advice=(
        "Send again in onException, or send synchronously if another broker can take the message:"
        " retryTimesWhenSendFailed (default 2) then applies to the codes of addRetryResponseCode"
        " (Java, from 4.9.2)."
    ),
    grpc=ALWAYS_RETRIED,
    fold=_Fold,
    messages=_key,
    references=(
        "apache/rocketmq#1588",
        "apache/rocketmq#1781",
        "apache/rocketmq#2198",
        "apache/rocketmq#3556",
    ),
    limits=(
        "The protocol does not show whether a send is asynchronous. Sends with a queue selector, or"
        " with retries set to 0, look the same."
    ),
    needs={Need.SENDS},
    rests_on_absence=True,
    consequence_of=BUSY
    | {
        "disk-full",
        "no-permission",
        "topic-missing-on-broker",
        "isr-not-enough",
        "mapped-file-failed",
        "timer-illegal",
        "async-retry-stale-queue",
    },
)
