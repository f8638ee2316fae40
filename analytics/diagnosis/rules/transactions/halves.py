"""Half messages (transactions): what their producers decided, and how often the broker checked.

Rules: a half message is known by its UNIQ_KEY, also in 37 and 39; where a relay passes a request
on, its hops are one. A 37 that was refused decides nothing. Numbers are bounded.
RocketMQ: EndTransactionProcessor, AbstractTransactionalMessageCheckListener, TransactionState.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import (
    CHECKED,
    DECISION,
    TRANSACTION,
    TRANSACTION_ID,
    fact_in,
)
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE
from ...problem import Evidence, Subject, Tally, asked, place_of, shown
from ...refusals import only
from ...rule import Exchanges, Fold

END: Final = int(RequestCode.END_TRANSACTION)
CHECK: Final = int(RequestCode.CHECK_TRANSACTION_STATE)
COMMIT: Final = "commit"
ROLLBACK: Final = "rollback"
UNKNOWN: Final = "unknown"
TIMEOUT_NS: Final = 6_000_000_000
"""transactionTimeOut: the broker does not check back before"""
MANY_CHECKS: Final = 3
MAX_MESSAGES: Final = 20_000
MAX_ASKERS: Final = 8
_SUCCESS: Final = int(ResponseCode.SUCCESS)


@dataclass(frozen=True, slots=True)
class HalfEnd:
    """A commit or rollback of a half message (37)."""

    decision: str
    evidence: Evidence
    by_check: bool
    """it answered a check"""
    client: str
    """`address:port` that sent it"""


@dataclass(slots=True)
class ObservedHalf:
    """One half message, as far as the capture shows it."""

    key: str
    """UNIQ_KEY"""
    stored: Evidence | None = None
    """the send; None: it was not captured"""
    topic: str | None = None
    group: str | None = None
    """producer group"""
    client: str | None = None
    """`address:port` of the producer"""
    broker: str | None = None
    """`address:port` of the broker"""
    ends: dict[str, HalfEnd] = field(default_factory=dict)
    """the first commit and the first rollback"""
    unknown: Tally = field(default_factory=Tally)
    """37 that said unknown"""
    checks: Tally = field(default_factory=Tally)
    askers: Counter[str] = field(default_factory=Counter)
    """39 by capture and who asked; a broker may ask another producer each time"""
    answerers: set[str] = field(default_factory=set)
    """`address:port` of those that were asked"""

    @property
    def checked(self) -> int:
        """How often the broker checked back: where a relay passes a check on, both ask."""
        return max(self.askers.values(), default=0)

    @property
    def first_end(self) -> HalfEnd | None:
        """The first commit or rollback."""
        return min(self.ends.values(), key=lambda end: place_of(end.evidence), default=None)

    @property
    def decided(self) -> Evidence | None:
        """The packet of the first commit or rollback."""
        return None if self.first_end is None else self.first_end.evidence

    @property
    def decision(self) -> str | None:
        """The first decision: the broker takes no later one."""
        return None if self.first_end is None else self.first_end.decision

    @property
    def by_check(self) -> bool:
        """Whether the first decision answered a check."""
        return self.first_end is not None and self.first_end.by_check

    @property
    def contradicts(self) -> bool:
        """Whether the message was both committed and rolled back."""
        return len(self.ends) > 1


class Halves:
    """All half messages of a capture."""

    def __init__(self) -> None:
        self.messages: dict[str, ObservedHalf] = {}
        self.left_out = 0
        """rows of further messages"""

    def add(self, row: ExchangeRecord) -> None:
        """Take a half message that was stored, its end, or a check."""
        code = row.request_code
        key = row.unique_key
        if code == CHECK:
            key = fact_in(row.facts, TRANSACTION_ID)
        if key is None:
            return
        one = self.messages.get(key)
        if one is None:
            if len(self.messages) >= MAX_MESSAGES:
                self.left_out += 1
                return
            one = self.messages[key] = ObservedHalf(key)
        if code == CHECK:
            _take_check(one, row)
        elif code == END:
            _take_end(one, row)
        else:
            evidence = shown(row, f"half message {key} stored by {row.responder}")
            if one.stored is None or place_of(evidence) < place_of(one.stored):
                one.stored = evidence
                one.topic, one.group = row.topic, row.group
                one.client, one.broker = row.requester, row.responder

    def ordered(self) -> list[ObservedHalf]:
        """Return the messages by time, those without a send last."""
        return sorted(
            self.messages.values(),
            key=lambda one: (one.stored is None, one.stored.time if one.stored else 0, one.key),
        )


def _take_check(one: ObservedHalf, row: ExchangeRecord) -> None:
    asker = f"{row.capture} {row.requester}"
    if asker in one.askers or len(one.askers) < MAX_ASKERS:
        one.askers[asker] += 1
    if len(one.answerers) < MAX_ASKERS:
        one.answerers.add(row.responder)
    one.checks.add(asked(row, f"{row.requester} checks back at {row.responder} for {one.key}"))
    if one.stored is None:
        # The one that asks is the broker.
        one.broker = min(filter(None, (one.broker, row.requester)), default="")
        one.client = min(filter(None, (one.client, row.responder)), default="")


def _take_end(one: ObservedHalf, row: ExchangeRecord) -> None:
    if row.response_code not in (None, _SUCCESS):
        return
    if one.group is None:
        one.group = row.group
    decision = fact_in(row.facts, DECISION)
    checked = fact_in(row.facts, CHECKED) is not None
    what = f"{decision} of {one.key}{', asked by the broker' if checked else ''}"
    evidence = asked(row, what)
    if decision not in (COMMIT, ROLLBACK):
        one.unknown.add(evidence)
        return
    before = one.ends.get(decision)
    if before is None or place_of(evidence) < place_of(before.evidence):
        one.ends[decision] = HalfEnd(decision, evidence, checked, row.requester)


class HalvesFold(Fold):
    """All half messages: a check (39) names neither group nor topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.halves = Halves()

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take a row of a half message."""
        self.halves.add(row)


def transactional(row: ExchangeRecord) -> str | None:
    """Return the one key of rules about half messages, for rows of such."""
    code = row.request_code
    if code in SENDS and (not row.facts or fact_in(row.facts, TRANSACTION) is None):
        return None
    return WHOLE


def by_group_and_topic(
    messages: Iterable[ObservedHalf],
) -> dict[tuple[str, str], list[ObservedHalf]]:
    """Return messages by producer group and topic; empty texts where they are not known."""
    found: dict[tuple[str, str], list[ObservedHalf]] = {}
    for one in messages:
        found.setdefault((one.group or "", one.topic or ""), []).append(one)
    return found


def subject_of(
    several: Sequence[ObservedHalf], context: Context, message: str | None = None
) -> Subject:
    """Return what messages of one group and topic have in common."""
    return Subject(
        broker=only(context.broker(one.broker) for one in several if one.broker),
        topic=several[0].topic or None,
        group=several[0].group or None,
        client=only(context.client(one.client) for one in several if one.client),
        message=message,
    )


def age_of(one: ObservedHalf, until: int | None) -> int:
    """Return the ns from the send to the end of the capture."""
    return until - time if until is not None and (time := stored_time(one)) else 0


def stored_time(one: ObservedHalf) -> int:
    """Return when a half message was stored; 0: it was not captured."""
    return one.stored.time if one.stored is not None else 0


OF_HALVES: Final = (
    Exchanges(key=transactional, requests=SENDS, responses=frozenset((_SUCCESS,)), with_facts=True),
    Exchanges(key=transactional, requests=frozenset((END, CHECK))),
)
"""the exchanges that rules about half messages take"""
