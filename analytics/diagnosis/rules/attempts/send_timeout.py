"""A producer gave up sends because no answer came in its time."""

from __future__ import annotations

from collections.abc import Iterable

from ....sends.attempts import LATE, STORED
from ....sends.chains import FAILED, MAYBE, STORED_UNTOLD
from ...context import Context
from ...keys import parts_of
from ...messages import ObservedMessage
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject
from ...refusals import counted, only
from ...rule import DiagnosisRule
from .attempt_words import MessageFold, by_broker_and_topic, length_us, timed_out, waited_us


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.least = self.longest = 0
        self.sure = False
        self.told: dict[str, int] = {}

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message of which an attempt was given up."""
        found = timed_out(message)
        for attempt in found:
            self.count(message, attempt)
            wait = waited_us(attempt)
            if attempt.outcome == LATE and attempt.send.end is not None and not wait:
                wait = attempt.send.end - attempt.begin
            self.least = min(self.least or wait, wait)
            self.longest = max(self.longest, wait)
        if message.timeout_known or len(message.attempts) > 1:
            self.sure = True
        final = message.chain.final
        self.told[final] = self.told.get(final, 0) + 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of a broker and topic."""
        if not self.tally.count:
            return
        broker, topic = parts_of(self.key)
        case = self.tally.case(
            f"{context.broker(broker)} did not answer {counted(self.tally.count, 'send')} to topic"
            f" {topic} in time: the producer gave up after {length_us(self.least)}"
            + (f" to {length_us(self.longest)}" if self._differ() else ""),
            Subject(broker=context.broker(broker), topic=topic or None, group=only(self.groups)),
        )
        case.details = [*_became(self.told), *self.who(context)]
        if not self.sure:
            case.confidence = Confidence.LIKELY
            case.reason = "the client closed the connection, which may have had another reason"
        yield case

    def _differ(self) -> bool:
        return length_us(self.least) != length_us(self.longest)


def _became(told: dict[str, int]) -> list[str]:
    names = {
        STORED: "stored in the end",
        STORED_UNTOLD: "stored, though the application was told of a failure",
        MAYBE: "a failure for the application, and perhaps stored",
        FAILED: "failed",
    }
    return [
        f"{counted(told[one], 'message')}: {name}" for one, name in names.items() if one in told
    ]


def _key(message: ObservedMessage) -> str | None:
    return by_broker_and_topic(timed_out(message))


RULE = DiagnosisRule(
    id="send-timeout",
    severity=ProblemSeverity.ERROR,
    title="A producer gives up on sends because no response comes in time",
    searched=(
        "sendDefaultImpl call timeout",
        "RemotingTooMuchRequestException",
        "RemotingTimeoutException",
        "wait response on the channel",
        "invokeSync call timeout",
    ),
    proof=(
        "A send has no response, and its client closes the connection when its time is over or"
        " sends the same UNIQ_KEY again; or the response comes after that."
    ),
    explanation=(
        "The client waits sendMsgTimeout for all attempts of a send together. When it is over, the"
        " call fails and the client closes the connection. The message may have been stored anyway:"
        " the broker does not know that nobody waits any more."
    ),
    advice=(
        "Find out why the broker was late: see the other problems, and compare the broker's log at"
        " that time. Raise sendMsgTimeout (default 3000 ms) where brokers wait for a disk or slave"
        " (SYNC_FLUSH: syncFlushTimeout, default 5000 ms; SYNC_MASTER: slaveTimeout, default 3000"
        " ms). sendMsgMaxTimeoutPerRequest (5.3.3 and later, default off) leaves time for a second"
        " broker. Make consumers idempotent, because a retry may store the message twice."
    ),
    grpc="`call-given-up` speaks of calls that are not answered in time.",
    fold=_Fold,
    messages=_key,
    references=(
        "apache/rocketmq#2404",
        "apache/rocketmq#7883",
        "apache/rocketmq#2240",
        "apache/rocketmq#568",
        "apache/rocketmq#508",
        "apache/rocketmq#1651",
        "apache/rocketmq#4609",
        "apache/rocketmq#428",
        "apache/rocketmq#409",
        "apache/rocketmq#538",
        "apache/rocketmq#3726",
    ),
    limits=(
        "A send whose connection is still open when the capture ends is not counted. The timeout is"
        " learnt from what the client did; a single one may be the end of the client."
    ),
    needs=frozenset((Need.SENDS, Need.CONNECTIONS)),
    rests_on_absence=True,
    consequence_of=frozenset(
        (
            "broker-hung",
            "packets-unacknowledged",
            "broker-gone",
            "broker-slow",
            "stored-not-durable",
            "broker-slow-vs-network",
        )
    ),
)
