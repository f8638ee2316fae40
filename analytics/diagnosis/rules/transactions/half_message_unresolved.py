"""A half message is neither committed nor rolled back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...keys import WHOLE
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Tally
from ...refusals import times
from ...rule import TELEMETRY, DiagnosisRule
from .halves import (
    MANY_CHECKS,
    OF_HALVES,
    TIMEOUT_NS,
    HalvesFold,
    ObservedHalf,
    age_of,
    by_group_and_topic,
    subject_of,
)

MOST_NAMED: Final = 5
MAX_CONNECTIONS: Final = 50_000
SECOND: Final = 1_000_000_000


class _Fold(HalvesFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.connections: dict[tuple[str, int], tuple[int, bool]] = {}
        """capture and number -> when it was seen last, and whether it was closed or reset"""
        self.holed: set[tuple[str, int]] = set()
        """those of which bytes are missing: a 37 may be among them"""

    def add_connection(self, row: ConversationRecord) -> None:
        if row.gaps or row.directions != tcp.BOTH:
            if len(self.holed) < MAX_CONNECTIONS:
                self.holed.add((row.capture, row.conversation))
        elif len(self.connections) < MAX_CONNECTIONS:
            ended = row.end in (tcp.FIN, tcp.RESET)
            self.connections[row.capture, row.conversation] = (row.end_time, ended)

    def cases(self, context: Context) -> Iterable[Case]:
        undecided = [
            one
            for one in self.halves.ordered()
            if one.stored is not None
            and (one.stored.capture, one.stored.conversation) not in self.holed
            and one.decision is None
            and one.checked < MANY_CHECKS
        ]
        old = {one.key for one in undecided if age_of(one, context.last_time) >= TIMEOUT_NS}
        # One that a producer left behind without a word need not be old.
        left = {
            one.key
            for one in undecided
            if not one.unknown.count and (seen := self._connection_of(one)) is not None and seen[1]
        }
        # Its connection may be idle, and may also be where the capture was not made later on.
        unseen = {
            one.key
            for one in undecided
            if (seen := self._connection_of(one)) is not None
            and not seen[1]
            and age_of(one, seen[0]) < TIMEOUT_NS
        }
        told = [one for one in undecided if one.key in old or one.key in left]
        for (group, topic), several in sorted(by_group_and_topic(told).items()):
            case = _case(group, topic, several, context)
            gone = sum(one.key in left for one in several)
            if gone:
                case.details.append(f"the producer's connection ended before it spoke of {gone}")
            if not any(one.key in old for one in several):
                case.confidence = Confidence.LIKELY
                case.reason = "a producer that lives on may decide over another connection"
            elif all(one.key in unseen for one in several):
                case.confidence = Confidence.LIKELY
                case.reason = "nothing was seen on the producer's connection any more"
            yield case

    def _connection_of(self, one: ObservedHalf) -> tuple[int, bool] | None:
        """Return what is known of the connection that a half message was sent on."""
        if one.stored is None:
            return None
        return self.connections.get((one.stored.capture, one.stored.conversation))


def _case(group: str, topic: str, several: list[ObservedHalf], context: Context) -> Case:
    tally = Tally()
    for one in several:
        if one.stored is not None:
            tally.add(one.stored)
    until = context.last_time or tally.last
    tally.last = until
    seconds = (until - tally.first) // SECOND
    count = len(several)
    what = "1 half message" if count == 1 else f"{count:,} half messages"
    neither = "is neither" if count == 1 else "are neither"
    unknown = sum(one.unknown.count > 0 for one in several)
    checks = sum(one.checked for one in several)
    case = tally.case(
        f"{what} of {group} to {topic} {neither} committed nor rolled back after {seconds} s:"
        f" consumers do not see {'it' if count == 1 else 'them'}",
        subject_of(several, context, several[0].key if count == 1 else None),
    )
    if unknown:
        case.details.append(f"for {unknown} of them the producer said that it does not know")
    if unknown < count:
        case.details.append(f"for {count - unknown} of them it sent nothing (37)")
    checked = f"checked back {times(checks)}" if checks else "did not check back"
    case.details.append(f"the broker {checked} in the capture")
    case.details.append(f"messages: {', '.join(one.key for one in several[:MOST_NAMED])}")
    return case


def _connection(row: ConversationRecord) -> str | None:
    """Return the one key for connections with commands."""
    return WHOLE if row.commands else None


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
        " its connection ended, no END_TRANSACTION (37) commits it or rolls it back: there is none,"
        " or only unknown ones."
    ),
    explanation=(
        "A transactional producer first stores a half message, which consumers do not see, runs its"
        " local transaction, and then says commit or rollback. Here it said neither: the local"
        " transaction still runs, returned UNKNOW, threw, or the process died. The broker asks a"
        " producer of the group after 6 s and then every 30 s, 15 times at most. After that the"
        " message is set aside and never delivered."
    ),
    advice=(
        "Look at executeLocalTransaction of the named producer at that time. checkLocalTransaction"
        " must find out the state of a transaction that another process began. At least one"
        " producer of the group must run, or nobody can be asked. transactionTimeOut has the"
        " default 6 s, transactionCheckInterval 30 s, transactionCheckMax 15."
    ),
    grpc=TELEMETRY,
    fold=_Fold,
    exchanges=OF_HALVES,
    connections=_connection,
    references=(
        "apache/rocketmq#1517",
        "apache/rocketmq#8158",
        "apache/rocketmq#8316",
        "apache/rocketmq#1789",
        "apache/rocketmq#2265",
    ),
    limits="A 37 on a connection that was not captured, or after its end, is not known.",
    needs=frozenset((Need.SENDS,)),
    rests_on_absence=True,
    consequence_of=frozenset(
        ("broker-gone", "broker-hung", "packets-unacknowledged", "end-transaction-refused")
    ),
    lasts=None,
)
