"""Nobody can say whether a message is stored, or whether it is stored twice."""

from __future__ import annotations

from collections.abc import Iterable

from ....sends.attempts import STORED
from ....sends.chains import MAYBE
from ...context import Context
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import counted, only
from ...rule import DiagnosisRule
from .attempt_words import WITHOUT_ANSWER, MessageFold, timed_out


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.maybe = 0
        self.twice = 0

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message with an attempt without answer."""
        self.count(message, next(one for one in message.attempts if one.outcome in WITHOUT_ANSWER))
        if message.chain.final == MAYBE:
            self.maybe += 1
        else:
            self.twice += 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a topic."""
        if not self.tally.count:
            return
        said = []
        if self.maybe:
            said.append(
                f"{counted(self.maybe, 'message')} to topic {self.key} failed for the producer and"
                " may have been stored anyway"
            )
        if self.twice:
            where = "" if said else f" to topic {self.key}"
            said.append(
                f"up to {counted(self.twice, 'message')}{where} may be stored twice: the first"
                " attempt had no answer, a retry was stored"
            )
        case = self.tally.case(
            "; ".join(said),
            Subject(
                broker=only(context.broker(one) for one in self.brokers),
                topic=self.key or None,
                group=only(self.groups),
                message=only(self.keys),
            ),
        )
        case.details = self.who(context)
        yield case


def _key(message: ObservedMessage) -> str | None:
    unsure = [one for one in message.attempts if one.outcome in WITHOUT_ANSWER]
    if not unsure or message.chain.duplicate:
        return None
    alone = len(message.attempts) == 1 and unsure[0].send.ended_by == "client"
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
        "A send whose connection ended, or that was given up, before a response came; no response"
        " says what the broker did. With a retry that was stored there may be two copies."
    ),
    explanation=(
        "A request that reached the broker is carried out whether or not its client still waits. An"
        " attempt without answer is a failure for the producer and perhaps a stored message."
    ),
    advice=(
        "Look the message up by its UNIQ_KEY: mqadmin queryMsgByUniqueKey -i KEY -t TOPIC. Two"
        " results are two copies. Make consumers idempotent; let the application send again only"
        " with the same KEYS."
    ),
    grpc="`call-given-up` says that such a message may have been stored.",
    fold=_Fold,
    messages=_key,
    references=("apache/rocketmq#4609", "apache/rocketmq#2735"),
    limits=(
        "Rows of pulls do not name the messages in them, so that a later delivery is not taken as a"
        " proof."
    ),
    needs=frozenset((Need.SENDS, Need.CONNECTIONS)),
    rests_on_absence=True,
    consequence_of=frozenset(
        (
            "send-timeout",
            "broker-hung",
            "packets-unacknowledged",
            "broker-gone",
            "connection-cut",
            "tls-mismatch",
        )
    ),
)
