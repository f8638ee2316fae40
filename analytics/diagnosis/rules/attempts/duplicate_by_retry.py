"""A retried message is stored more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dissectors.quantities import counted
from dissectors.remoting.code_sets import STORED

from ...context import Context, Need
from ...messages import ObservedMessage
from ...names import first_of, listed, only, subject_of
from ...problem import Case, Evidence, Impact, ProblemSeverity, end_of, shown, time_of
from ...rule import COVERED, DiagnosisRule, TallyFold
from ...stored import SoughtMessages


class _Fold(TallyFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.brokers: set[str] = set()
        self.groups: set[str] = set()
        self.messages: list[str] = []
        self.stored = SoughtMessages(key)
        self.copies = 0
        self.responses: Counter[str] = Counter()
        """responses after which producers retried, by name"""
        self.remoting = False
        """the producer of a message does not use gRPC"""

    def add_message(self, message: ObservedMessage) -> None:
        stored = [attempt for attempt in message.attempts if attempt.stored]
        self.stored.add(message, (), failed=False)
        self.copies += message.chain.copies
        self.messages.append(message.key)
        self.remoting = self.remoting or not message.attempts[0].send.call
        self.brokers.update(one.send.broker for one in stored)
        if stored[0].send.group:
            self.groups.add(stored[0].send.group)
        if (response := _response_before(message)) is not None:
            self.responses[response] += 1
        first, last = _evidence(message)
        self.tally.add(first, last=last.time)

    def sought(self) -> Mapping[str, str]:
        """Return the messages that were stored more than once."""
        return self.stored.sought()

    def case(self, context: Context) -> Case:
        count = self.tally.count
        had_none = "timed out"
        # If each got a response in time, the producer resent because of what it said.
        if self.responses.total() == count:
            had_none = f"got {listed(self.responses)}"
        subject_text = f"message {self.messages[0]} is" if count == 1 else f"{count:,} messages are"
        case = self.tally.case(
            f"{subject_text} stored more than once in topic {self.key}: the producer resent after"
            f" an attempt that {had_none} ({self.copies:,} copies in all)",
            subject_of(
                self.brokers,
                context,
                self.key,
                only(self.groups),
                self.messages[0] if count == 1 else None,
            ),
        )
        case.details = [f"messages: {first_of(self.messages)}"]
        case.grpc = not self.remoting
        if context.store is not None:
            copies = [context.store.copies_of(key, self.key) for key in self.stored.messages]
            number, found = sum(map(len, copies)), sum(map(bool, copies))
            case.details.insert(
                0,
                f"the broker's store has {counted(number, 'copy', 'copies')} of {found:,} of these"
                " messages",
            )
            case.details += self.stored.described(context.store)
            # Fewer copies in the stores prove nothing: they may be of another time or broker.
            case.settled = number >= self.copies
        return case


def _response_before(message: ObservedMessage) -> str | None:
    """Return the response to the first send that arrived before the second send, or None."""
    first, second = message.rows[0], message.rows[1]
    in_time = first.response_time is not None and first.response_time <= time_of(second)
    return first.response_name if in_time else None


def _evidence(message: ObservedMessage) -> tuple[Evidence, Evidence]:
    answered = [row for row in message.rows if row.response_code is not None]
    stored = [row for row in answered if row.response_code in STORED]
    answered = stored if len(stored) > 1 else answered
    # By their responses: that to the first send often comes last.
    first, last = min(answered, key=end_of), max(answered, key=end_of)
    what = " and ".join(
        f"{row.offset_msg_id or row.response_name} at {row.server_address}" for row in answered[:3]
    )
    return shown(first, f"{message.key} stored: {what}"), shown(last)


RULE = DiagnosisRule(
    id="duplicate-by-retry",
    severity=ProblemSeverity.ERROR,
    title="A message is stored more than once because the producer sent it again",
    searched=("duplicate messages", "repeated message", "message consumed twice"),
    proof="Two or more sends with one UNIQ_KEY were stored, with different offset message ids.",
    explanation=(
        "The producer got no response in time and resent the message, usually to another broker."
        " Both brokers stored it. RocketMQ delivers at least once: consumers get both copies, with"
        " the same UNIQ_KEY and different offset message ids."
    ),
    advice=(
        "Make consumers idempotent: remember the KEYS or UNIQ_KEY of processed messages. Find out"
        " why the first response was late. A longer sendMsgTimeout (default 3000 ms) causes fewer"
        " retries. Setting retryTimesWhenSendFailed (default 2) to 0 prevents these duplicates, but"
        " loses messages instead."
    ),
    grpc_explanation=(
        "The producer resent the message because it got no response in time, or because the message"
        " was stored, but not on disk or on a slave in time. Each attempt stored it. RocketMQ"
        " delivers at least once: consumers get all copies, with the same message id."
    ),
    grpc_advice=(
        "Make consumers idempotent: remember the keys or message ids of processed messages. Find"
        " out why the first attempt was late. A longer setRequestTimeout (default 3 s) causes fewer"
        " retries. Setting the producer's setMaxAttempts (default 3) to 1 prevents these"
        " duplicates, but loses messages instead."
    ),
    grpc=COVERED,
    impact=Impact.STORED_TWICE,
    fold=_Fold,
    messages=lambda message: (
        message.attempts[0].send.topic or "" if message.chain.duplicate else None
    ),
    references=(
        "apache/rocketmq#2735",
        "apache/rocketmq#4933",
        "apache/rocketmq#6919",
        "apache/rocketmq#9909",
        "apache/rocketmq#1192",
    ),
    needs={Need.SENDS},
    consequence_of={
        "send-timeout",
        "call-given-up",
        "stored-not-durable",
        "first-attempt-ate-the-budget",
        "broker-hung",
        "packets-unacknowledged",
        "idle-close",
        "broker-gone",
    },
)
