"""A half message is neither committed nor rolled back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.broker_store.half_messages import ENDED
from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.message_record import COMMITTED, ROLLED_BACK

from ...context import Context, Need
from ...keys import keep, with_commands
from ...names import times
from ...problem import Case, Confidence, Impact, ProblemSeverity, duration
from ...rule import COVERED, DiagnosisRule
from ...stored import half_words
from .halves import (
    MANY_CHECKS,
    MOST_NAMED,
    OF_HALVES,
    TIMEOUT_NS,
    HalvesFold,
    ObservedHalf,
    age_of,
    by_group_and_topic,
    keys_text,
    stored_half,
    subject_of,
    tally_of_stored,
)

MAX_CONNECTIONS: Final = 50_000


class _Fold(HalvesFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.connections: dict[tuple[str, int], tuple[int, bool]] = {}
        """capture and number -> last packet, and whether it was closed or reset"""
        self.holed: set[tuple[str, int]] = set()
        """those with missing bytes, which may contain a 37"""

    def add_connection(self, row: ConversationRecord) -> None:
        if row.gaps or row.directions != tcp.BOTH:
            keep(self.holed, (row.capture, row.conversation), MAX_CONNECTIONS)
        elif len(self.connections) < MAX_CONNECTIONS:
            ended = row.end in (tcp.FIN, tcp.RESET)
            self.connections[row.capture, row.conversation] = (row.end_time, ended)

    def cases(self, context: Context) -> Iterable[Case]:
        undecided = [
            half
            for half in self.halves.ordered()
            if half.stored is not None
            and (half.stored.capture, half.stored.conversation) not in self.holed
            and half.decision is None
            # From then on, `check-back-loop` reports it.
            and half.checked < MANY_CHECKS
            and not _ended_before(half, context)
        ]
        old = {half.key for half in undecided if age_of(half, context.last_time) >= TIMEOUT_NS}
        # A message that its producer abandoned need not be old.
        left = {
            half.key
            for half in undecided
            if not half.unknown.count
            and (seen := self._connection_of(half)) is not None
            and seen[1]
        }
        # Its connection may be idle, or no longer captured.
        unseen = {
            half.key
            for half in undecided
            if (seen := self._connection_of(half)) is not None
            and not seen[1]
            and age_of(half, seen[0]) < TIMEOUT_NS
        }
        reported = [half for half in undecided if half.key in old or half.key in left]
        for group, topic, several in by_group_and_topic(reported):
            case = _case(group, topic, several, context)
            gone = sum(half.key in left for half in several)
            if gone:
                case.details.append(f"the producer's connection ended before it decided {gone}")
            # Abandoned, but younger than the broker's first check, which may still be answered.
            if not any(half.key in old for half in several):
                case.doubt("a producer that is still running may decide over another connection")
            elif all(half.key in unseen for half in several):
                case.doubt(
                    "the capture may have missed the decision: the producer's connection shows no"
                    " more packets"
                )
            _settle(case, several, context)
            yield case

    def _connection_of(self, half: ObservedHalf) -> tuple[int, bool] | None:
        """Return the state of the connection on which a half message was sent."""
        if half.stored is None:
            return None
        return self.connections.get((half.stored.capture, half.stored.conversation))


def _ended_before(message: ObservedHalf, context: Context) -> bool:
    """Return whether a broker's store shows that a half message ended within the capture."""
    half = stored_half(message, context)
    if half is None or half.outcome not in (COMMITTED, ROLLED_BACK, ENDED):
        return False
    return half.time is None or context.last_time is None or half.time <= context.last_time


def _settle(case: Case, halves: list[ObservedHalf], context: Context) -> None:
    """Add to a case what a broker's store has of these messages."""
    stored = {
        message.key: half
        for message in halves
        if (half := stored_half(message, context)) is not None
    }
    if not stored:
        return
    if len(stored) == len(halves):
        # The broker's store knows of every decision that it took.
        case.confidence, case.reason, case.settled = Confidence.CERTAIN, None, True
    case.details += [
        f"store: {key}: {half_words(half)}" for key, half in list(stored.items())[:MOST_NAMED]
    ]


def _case(group: str, topic: str, halves: list[ObservedHalf], context: Context) -> Case:
    tally = tally_of_stored(halves)
    until = context.last_time or tally.last
    # It is undecided until the end of the capture, not only when it was sent.
    tally.last = until
    count = len(halves)
    neither = "is neither" if count == 1 else "are neither"
    unknown = sum(half.unknown.count > 0 for half in halves)
    checks = sum(half.checked for half in halves)
    case = tally.case(
        f"{counted(count, 'half message')} of {group} to {topic} {neither} committed nor rolled"
        f" back after {duration(until - tally.first)}: consumers do not see"
        f" {'it' if count == 1 else 'them'}",
        subject_of(halves, context),
    )
    if unknown:
        case.details.append(
            f"for {counted(unknown, 'message')}, the producer sent the state unknown"
        )
    if unknown < count:
        case.details.append(
            f"for {counted(count - unknown, 'message')}, it sent no END_TRANSACTION (37)"
        )
    checked = f"checked back {times(checks)}" if checks else "did not check back"
    case.details.append(f"the broker {checked} in the capture")
    case.details.append(keys_text(halves))
    return case


RULE = DiagnosisRule(
    id="half-message-unresolved",
    severity=ProblemSeverity.WARNING,
    title="A half message is neither committed nor rolled back",
    searched=(
        "half message",
        "transaction message not consumed",
        "check back",
        "LocalTransactionState.UNKNOW",
    ),
    proof=(
        "The broker stored a send as a half message (sysFlag 4). For six seconds or more, or until"
        " its connection ended, no END_TRANSACTION (37) committed it or rolled it back: there was"
        " none, or only with the state unknown."
    ),
    explanation=(
        "A transactional producer first stores a half message, which consumers do not see, runs its"
        " local transaction, and then sends commit or rollback. Here it sent neither: the local"
        " transaction is still running, returned UNKNOW, threw an exception, or the process died."
        " The broker checks half messages older than 6 s with a producer of the group, in rounds"
        " every 30 s (before 5.1.1: 60 s), up to 15 times. After that, the message is set aside and"
        " never delivered."
    ),
    advice=(
        "Check executeLocalTransaction of the named producer at that time. checkLocalTransaction"
        " must be able to determine the state of a transaction that another process started. At"
        " least one producer of the group must be running to respond to checks. transactionTimeOut"
        " defaults to 6 s, transactionCheckInterval to 30 s (before 5.1.1: 60 s),"
        " transactionCheckMax to 15."
    ),
    grpc=COVERED,
    impact=Impact.INVISIBLE,
    fold=_Fold,
    exchanges=OF_HALVES,
    connections=with_commands,
    references=(
        "apache/rocketmq#1517",
        "apache/rocketmq#8158",
        "apache/rocketmq#8316",
        "apache/rocketmq#1789",
        "apache/rocketmq#2265",
    ),
    limits=(
        "An END_TRANSACTION (37) on a connection that was not captured, or after the capture, is"
        " unknown. A copy of the broker's store shows how the transaction ended (--store DIR)."
    ),
    needs={Need.SENDS},
    rests_on_absence=True,
    consequence_of={
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "end-transaction-refused",
    },
    lasts=None,
)
