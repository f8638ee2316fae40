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
MAX_WAYS: Final = 8
_SUCCESS: Final = int(ResponseCode.SUCCESS)


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
    decided: Evidence | None = None
    """the first commit or rollback"""
    decision: str | None = None
    by_check: bool = False
    """that answered a check"""
    unknown: Tally = field(default_factory=Tally)
    """37 that said unknown"""
    checks: Tally = field(default_factory=Tally)
    ways: Counter[str] = field(default_factory=Counter)
    """39 by who asked whom"""

    @property
    def checked(self) -> int:
        """How often the broker checked back."""
        return max(self.ways.values(), default=0)


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
    way = f"{row.capture} {row.requester} {row.responder}"
    if way in one.ways or len(one.ways) < MAX_WAYS:
        one.ways[way] += 1
    one.checks.add(asked(row, f"{row.requester} asks {row.responder} what became of {one.key}"))
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
    elif one.decided is None or place_of(evidence) < place_of(one.decided):
        one.decided, one.decision, one.by_check = evidence, decision, checked


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
