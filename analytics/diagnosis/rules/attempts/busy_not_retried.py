"""A busy broker refused sends, and the client is too old to try another one."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.retries import RETRIED_SINCE
from dissectors.remoting.versions import release_of

from ....sends.chains import OLD_CLIENT
from ...context import Context
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import counted, counted_names, only
from ...rule import PROXY_CHOOSES, DiagnosisRule
from .attempt_words import MAX_KEYS, MessageFold, alone
from .causes import BUSY

_BUSY = int(ResponseCode.SYSTEM_BUSY)
SINCE = release_of(RETRIED_SINCE[_BUSY])
"""first client that tries another broker after SYSTEM_BUSY"""


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: list[ObservedMessage] = []

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message that a busy broker refused."""
        if len(self._messages) < MAX_KEYS:
            self._messages.append(message)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a producer group."""
        counted_here = _Fold(self.key)
        for message in self._messages:
            if alone(message, context):
                counted_here.count(message, message.last)
        yield from counted_here._said(context)

    def _said(self, context: Context) -> Iterable[Case]:
        if not self.tally.count:
            return
        verb = "was" if self.tally.count == 1 else "were"
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} of group {self.key} {verb} refused by a busy"
            f" broker and not tried at another one: clients do that from {SINCE} on",
            Subject(
                broker=only(context.broker(one) for one in self.brokers),
                topic=only(self.topics),
                group=self.key or None,
            ),
        )
        case.details = [f"client versions: {counted_names(self.versions)}", *self.who(context)]
        yield case


def _key(message: ObservedMessage) -> str | None:
    if message.chain.verdict != OLD_CLIENT or message.last.send.response_code != _BUSY:
        return None
    return message.last.send.group or ""


RULE = DiagnosisRule(
    id="busy-not-retried",
    severity=ProblemSeverity.WARNING,
    title="A busy broker refuses sends, and the client is too old to try another one",
    searched=("broker busy no retry", "CODE: 2 DESC: [TIMEOUT_CLEAN_QUEUE]broker busy"),
    proof=(
        f"A send answered with SYSTEM_BUSY (2) by a Java client older than {SINCE}, with no further"
        " send of that UNIQ_KEY."
    ),
    explanation=(
        "A busy broker refuses a send without storing it, so that another broker may take it"
        f" safely. Java clients have SYSTEM_BUSY among retryResponseCodes only from {SINCE} on;"
        " before, the call fails at once with MQBrokerException, code 2."
    ),
    advice=(
        f"Update the client to {SINCE} or later, or call"
        " producer.addRetryResponseCode(ResponseCode.SYSTEM_BUSY) (from 4.9). Find out why the"
        " broker is busy."
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#5838", "apache/rocketmq#2542", "apache/rocketmq#5845"),
    limits=(
        "Asynchronous sends are not retried by any version after a response with an error code."
    ),
    needs=frozenset((Need.SENDS,)),
    rests_on_absence=True,
    consequence_of=BUSY,
)
