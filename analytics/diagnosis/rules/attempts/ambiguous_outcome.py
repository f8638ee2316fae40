"""The outcome of a send is unknown: the message may be stored, or stored twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dissectors.broker_store.evidence import StoreEvidence
from dissectors.quantities import counted

from ....sends.attempts import STORED
from ....sends.chains import MAYBE
from ...context import Context, Need
from ...messages import ObservedMessage
from ...names import only, subject_of
from ...problem import Case, Impact, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
from ...stored import SoughtMessages
from .attempt_words import UNDECIDED, MessageFold, timed_out

SETTLED_ADVICE: Final = (
    "Let the application resend only the messages that were not stored, with the same KEYS."
    " Make consumers idempotent."
)
"""what to do once the stores show what was stored"""


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.maybe = 0
        self.twice = 0
        self.unsure = SoughtMessages(key)

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with an unanswered attempt."""
        self.count(
            message, next(attempt for attempt in message.attempts if attempt.outcome in UNDECIDED)
        )
        self.unsure.add(message, UNDECIDED, message.chain.final == MAYBE)
        if message.chain.final == MAYBE:
            self.maybe += 1
        else:
            self.twice += 1

    def sought(self) -> Mapping[str, str]:
        """Return the messages with an unanswered attempt."""
        return self.unsure.sought()

    def case(self, context: Context) -> Case:
        case = self.tally.case(
            self._title(),
            subject_of(self.brokers, context, self.key or None, only(self.groups), only(self.keys)),
        )
        case.impact = {Impact.MAYBE_STORED: self.maybe, Impact.MAYBE_STORED_TWICE: self.twice}
        case.details = self.who(context)
        if context.store is not None:
            self._settle(case, context.store)
        return case

    def _title(self) -> str:
        parts = []
        if self.maybe:
            parts.append(
                f"{counted(self.maybe, 'message')} to topic {self.key} failed for the producer and"
                " may have been stored anyway"
            )
        if self.twice:
            where = "" if parts else f" to topic {self.key}"
            up_to = "up to " if self.twice > 1 else ""
            parts.append(
                f"{up_to}{counted(self.twice, 'message')}{where} may be stored twice: one attempt"
                " got no response, another one was stored"
            )
        return "; ".join(parts)

    def _settle(self, case: Case, store: StoreEvidence) -> None:
        """Add to a case what the broker stores have of these messages."""
        unsure = self.unsure.messages
        numbers = {key: self.unsure.number_stored(key, store) for key in unsure}
        known = {key: number for key, number in numbers.items() if number is not None}
        unknown = self.tally.count - len(known)
        if not known:
            case.details.append(
                "the stores do not show it: they belong to other brokers, are damaged, or do not"
                " cover the time of these sends"
            )
            return
        once = [key for key, number in known.items() if number == 1]
        more = sum(number > 1 for number in known.values())
        parts = [
            f"{number:,} {how}"
            for number, how in (
                (len(once), "stored once"),
                (more, "stored more than once"),
                (sum(number == 0 for number in known.values()), "not stored"),
                (unknown, "unknown"),
            )
            if number
        ]
        case.title = (
            f"{counted(self.tally.count, 'message')} to topic {self.key} had an attempt without a"
            f" response. According to the broker's store: {', '.join(parts)}"
        )
        case.details += self.unsure.described(store)
        case.advice = SETTLED_ADVICE
        # What the stores do not tell keeps its former doubt.
        failed = sum(message.failed for key, message in unsure.items() if key not in known)
        case.impact = {
            Impact.STORED_TWICE: more,
            Impact.MAYBE_STORED: failed,
            Impact.MAYBE_STORED_TWICE: unknown - failed,
        }
        case.settled = not unknown
        if more:
            case.severity = ProblemSeverity.ERROR
        elif not unknown and not any(unsure[key].failed for key in once):
            case.severity = ProblemSeverity.INFO


def _key(message: ObservedMessage) -> str | None:
    unsure = [attempt for attempt in message.attempts if attempt.outcome in UNDECIDED]
    if not unsure or message.chain.duplicate:
        return None
    first = unsure[0].send
    alone = len(message.attempts) == 1 and first.ended_by == "client" and not first.call
    # A client that closes its connection soon after a send is stopping, and waits for nothing.
    if alone and not timed_out(message):
        return None
    if message.chain.final not in (MAYBE, STORED):
        return None
    return message.attempts[0].send.topic or ""


RULE = DiagnosisRule(
    id="ambiguous-outcome",
    severity=ProblemSeverity.WARNING,
    title="It is unknown whether a message was stored, or stored twice",
    searched=(
        "send failed but message stored",
        "send timeout message consumed",
        "duplicate message after timeout",
    ),
    proof=(
        "The connection or stream of a send ended, or the client gave up, before a response came."
        " Or a proxy's response does not say what the broker did. If a retry was stored, the"
        " message may be stored twice."
    ),
    explanation=(
        "A broker carries out a request that reached it, even if the client stopped waiting. The"
        " producer counts an attempt without a response as failed, although the message may be"
        " stored."
    ),
    advice=(
        "Look the message up by its UNIQ_KEY, in a copy of the broker's store (--store DIR) or with"
        " mqadmin queryMsgByUniqueKey -a -i KEY -t TOPIC. Two results mean that it is stored twice"
        " (mqadmin before 5.1.3 shows only one). Make consumers idempotent; if the application"
        " sends again, it must use the same KEYS."
    ),
    grpc=COVERED,
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#4609", "apache/rocketmq#2735"),
    limits=(
        "This rule does not look for a later delivery, which would prove that the message was"
        " stored; rmqtool trace shows deliveries."
    ),
    needs={Need.SENDS, Need.CONNECTIONS},
    rests_on_absence=True,
    consequence_of={
        "send-timeout",
        "call-given-up",
        "broker-hung",
        "packets-unacknowledged",
        "idle-close",
        "broker-gone",
        "connection-cut",
        "tls-mismatch",
    },
)
