"""A send was refused by a code that synchronous sends retry, and not sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.remoting.code_sets import REPLIES
from dissectors.remoting.retries import RETRIED_SINCE

from ....sends.attempts import REFUSED
from ....sends.chains import NOT_RETRIED, remark_shape
from ...context import Context
from ...keys import joined_key, parts_of
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject
from ...refusals import counted, counted_names, only
from ...rule import PROXY_CHOOSES, DiagnosisRule
from .attempt_words import MAX_KEYS, MessageFold, alone
from .causes import BUSY

GO: Final = "GO"


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.answers: Counter[str] = Counter()
        self.remarks: Counter[str] = Counter()
        self._messages: list[ObservedMessage] = []

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message that was refused once."""
        if len(self._messages) < MAX_KEYS:
            self._messages.append(message)

    def _take(self, message: ObservedMessage) -> None:
        last = message.last
        self.count(message, last)
        self.answers[last.send.response_name or str(last.send.response_code)] += 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a group and language."""
        counted_here = _Fold(self.key)
        for message in self._messages:
            if alone(message, context):
                counted_here._take(message)
        yield from counted_here._said(context)

    def _said(self, context: Context) -> Iterable[Case]:
        if not self.tally.count:
            return
        group = parts_of(self.key)[1]
        verb = "was" if self.tally.count == 1 else "were"
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} of group {group} {verb} refused with"
            f" {counted_names(self.answers)} and not tried at another broker",
            Subject(
                broker=only(context.broker(one) for one in self.brokers),
                topic=only(self.topics),
                group=group or None,
            ),
        )
        case.details = self.who(context)
        if GO in self.languages:
            case.severity = ProblemSeverity.INFO
            case.details.append("the Go client never tries asynchronous sends again")
        case.confidence = Confidence.LIKELY
        case.reason = (
            "the wire does not say whether it was asynchronous, to a chosen queue, or with retries"
            " set to 0"
        )
        yield case


def _key(message: ObservedMessage) -> str | None:
    last = message.last
    if message.rows and message.rows[0].request_code in REPLIES:
        return None  # a reply goes through the broker that knows its asker
    retried = message.chain.verdict == NOT_RETRIED
    if last.send.language == GO and len(message.attempts) == 1 and last.outcome == REFUSED:
        retried = last.send.response_code in RETRIED_SINCE and not _of_the_message(last.send.remark)
    return joined_key(last.send.language, last.send.group) if retried else None


def _of_the_message(remark: str | None) -> bool:
    shape = (remark_shape(remark) or "").lower()
    return any(word in shape for word in ("acl", "signature", "permission", "accesskey"))


RULE = DiagnosisRule(
    id="async-not-retried",
    severity=ProblemSeverity.WARNING,
    title="Refused asynchronous sends are not retried at another broker",
    searched=(
        "retryTimesWhenSendAsyncFailed not working",
        "async send no retry",
        "sendAsync broker busy",
    ),
    proof=(
        "A send refused by a code that the client's version retries in synchronous sends, with no"
        " further send of that UNIQ_KEY, while the capture goes on."
    ),
    explanation=(
        "retryTimesWhenSendAsyncFailed counts only failures of the transport: no connection, no"
        " response. A response with an error code goes straight to onException of the callback."
        " Sends to a chosen queue or by a selector are not retried either."
    ),
    advice=(
        "Send again in onException, or send synchronously where another broker may take the"
        " message: retryTimesWhenSendFailed (default 2) then applies, for the codes of"
        " addRetryResponseCode (Java, from 4.9)."
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    messages=_key,
    references=(
        "apache/rocketmq#1588",
        "apache/rocketmq#1781",
        "apache/rocketmq#2198",
        "apache/rocketmq#3556",
    ),
    limits=(
        "Whether a send is asynchronous is not on the wire; sends with a queue selector, or with"
        " retries set to 0, look the same."
    ),
    needs=frozenset((Need.SENDS,)),
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
