"""A busy broker refused sends, and the client is too old to try another one."""

from __future__ import annotations

from dissectors.quantities import counted
from dissectors.remoting.code_sets import RETRIED_SINCE
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.versions import release_of

from ....sends.chains import OLD_CLIENT
from ...context import Context, Need
from ...messages import ObservedMessage
from ...names import counted_names, was
from ...problem import Case, ProblemSeverity
from ...rule import ALWAYS_RETRIED, DiagnosisRule
from .attempt_words import BUSY, LoneMessageFold

_BUSY = int(ResponseCode.SYSTEM_BUSY)
SINCE = release_of(RETRIED_SINCE[_BUSY])
"""first client version that tries another broker after SYSTEM_BUSY"""


class _Fold(LoneMessageFold):
    def case(self, context: Context) -> Case:
        """Return the case of a producer group."""
        case = self.tally.case(
            f"{counted(self.tally.count, 'send')} of group {self.key} {was(self.tally.count)}"
            f" refused by a busy broker and not retried on another one: only clients since {SINCE}"
            " do that",
            self.subject(context, self.key),
        )
        case.details = [f"client versions: {counted_names(self.versions)}", *self.who(context)]
        return case


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
        f"A Java client older than {SINCE} gets SYSTEM_BUSY (2) for a send, and no further send of"
        " that UNIQ_KEY follows."
    ),
    explanation=(
        "A busy broker refuses a send without storing it, so it is safe to try another broker. Java"
        f" clients have SYSTEM_BUSY among retryResponseCodes only since {SINCE}; before, the call"
        " fails immediately with MQBrokerException, code 2."
    ),
    advice=(
        f"Update the client to {SINCE} or later, or call"
        " producer.addRetryResponseCode(ResponseCode.SYSTEM_BUSY) (from 4.9.2). Find out why the"
        " broker is busy."
    ),
    grpc=ALWAYS_RETRIED,
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#5838", "apache/rocketmq#2542", "apache/rocketmq#5845"),
    limits="No version retries asynchronous sends after an error response.",
    needs={Need.SENDS},
    rests_on_absence=True,
    consequence_of=BUSY,
)
