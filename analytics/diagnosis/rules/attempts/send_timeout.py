"""A producer's sends timed out."""

from __future__ import annotations

from dissectors.quantities import counted, plain_duration

from ....sends.attempts import LATE, STORED, STORED_UNCONFIRMED
from ....sends.chains import FAILED, MAYBE
from ...context import Context, Need
from ...keys import parts_of
from ...messages import ObservedMessage
from ...names import only
from ...problem import Case, Impact, ProblemSeverity, Subject
from ...rule import DiagnosisRule
from .attempt_words import MessageFold, by_broker_and_topic, timed_out, waited_us


class _Fold(MessageFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.least = self.longest = 0
        self.sure = False
        self.outcomes: dict[str, int] = {}

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with an attempt that timed out."""
        attempts = timed_out(message)
        for attempt in attempts:
            self.count(message, attempt)
            wait = waited_us(attempt)
            # It has no end of its own: the late response shows how long the wait was at most.
            if attempt.outcome == LATE and attempt.send.end is not None and not wait:
                wait = attempt.send.end - attempt.begin
            self.least = min(self.least or wait, wait)
            self.longest = max(self.longest, wait)
        if message.timeout_known or len(message.attempts) > 1:
            self.sure = True
        final = message.chain.final
        self.outcomes[final] = self.outcomes.get(final, 0) + 1

    def case(self, context: Context) -> Case:
        broker, topic = parts_of(self.key)
        case = self.tally.case(
            f"{context.broker(broker)} did not respond to {counted(self.tally.count, 'send')} to"
            f" topic {topic} in time: the producer timed out after {self._waited()}",
            Subject(broker=context.broker(broker), topic=topic or None, group=only(self.groups)),
        )
        case.details = [*_became(self.outcomes), *self.who(context)]
        if self._left_over():
            case.details.append(
                f"the shortest wait was {plain_duration(self.least)}: a retry has only the time"
                " that earlier attempts left"
            )
        if not self.sure:
            case.doubt("the client closed the connection, which may have had another reason")
        return case

    def _left_over(self) -> bool:
        return self.longest > 2 * self.least

    def _waited(self) -> str:
        least, longest = plain_duration(self.least), plain_duration(self.longest)
        if self._left_over():
            return f"at most {longest}"
        return longest if least == longest else f"{least} to {longest}"


def _became(outcomes: dict[str, int]) -> list[str]:
    names = {
        STORED: "stored in the end",
        STORED_UNCONFIRMED: "stored, but reported as failed",
        MAYBE: "reported as failed, and possibly stored",
        FAILED: "failed",
    }
    return [
        f"{counted(outcomes[prefix], 'message')}: {name}"
        for prefix, name in names.items()
        if prefix in outcomes
    ]


def _key(message: ObservedMessage) -> str | None:
    # A gRPC call past its deadline is reset: `call-given-up` reports it.
    if message.attempts[0].send.call:
        return None
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
        "Send [N] times, still failed",
        "sendKernelImpl call timeout",
        "sendSelectImpl call timeout",
        "sendMessage call timeout",
        "wait response timeout",
        "CODE: 10002",
        "request timeout",
        "invokeAsyncImpl call timeout",
        "invokeSync: wait response timeout exception",
        "close socket because of timeout",
    ),
    proof=(
        "A send has no response, and its client closes the connection after its timeout or sends"
        " the same UNIQ_KEY again; or the response comes after that."
    ),
    explanation=(
        "sendMsgTimeout covers all attempts of a send together. When it expires, the application's"
        " send fails, and current clients close the connection. If only one attempt times out, the"
        " producer can retry. The message may have been stored anyway: the broker does not know"
        " that the client stopped waiting."
    ),
    advice=(
        "Find out why the broker was late: see the other problems, and check the broker's log for"
        " that time. Raise sendMsgTimeout (default 3000 ms) if brokers wait for a disk or slave"
        " (SYNC_FLUSH: syncFlushTimeout, default 5000 ms; SYNC_MASTER: slaveTimeout, default 3000"
        " ms). sendMsgMaxTimeoutPerRequest (5.3.3 and later, default off) leaves time for a second"
        " broker. Make consumers idempotent, because a retry may store the message twice."
    ),
    grpc="`call-given-up` covers calls that get no response in time.",
    impact=Impact.SENDS_FAILED,
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
        " inferred from the client's behavior; a single case may be a client that exited."
    ),
    needs={Need.SENDS, Need.CONNECTIONS},
    rests_on_absence=True,
    consequence_of={
        "broker-hung",
        "packets-unacknowledged",
        "idle-close",
        "broker-gone",
        "broker-slow",
        "stored-not-durable",
        "broker-slow-vs-network",
    },
)
