"""Half messages (transactions): decisions of their producers, and checks by the broker.

Rules: a half message is identified by its UNIQ_KEY, also in 37 and 39; hops of a relay count once.
A 37 that was refused decides nothing. Numbers are bounded.
RocketMQ: EndTransactionProcessor, AbstractTransactionalMessageCheckListener, TransactionState.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from dissectors.broker_store.evidence import StoredHalfState
from dissectors.grpc.names import CODES
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import (
    CHECKED,
    DECISION,
    TRANSACTION,
    TRANSACTION_ID,
    fact_in,
)
from dissectors.rows.outcome import SEND_CALLS
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import SUCCESS, WHOLE, has_room, keep, state_in
from ...names import only
from ...problem import Evidence, Subject, Tally, asked, shown, time_of
from ...rule import Exchanges, Fold
from ...stored import half_words

END: Final = int(RequestCode.END_TRANSACTION)
CHECK: Final = int(RequestCode.CHECK_TRANSACTION_STATE)
COMMIT: Final = "commit"
ROLLBACK: Final = "rollback"
TIMEOUT_NS: Final = 6_000_000_000
"""transactionTimeOut: the broker does not check earlier"""
MANY_CHECKS: Final = 3
MAX_MESSAGES: Final = 20_000
MAX_CLIENTS: Final = 8
MOST_NAMED: Final = 5
"""maximum messages in one sentence"""
_DONE: Final = frozenset((None, SUCCESS, CODES["OK"]))
END_CALL: Final = "EndTransaction"
CHECK_CALL: Final = "RecoverOrphanedTransaction"
"""command of a proxy over the telemetry stream that forwards the broker's check"""
_CALLS: Final = SEND_CALLS | {END_CALL, CHECK_CALL}


@dataclass(frozen=True, slots=True)
class HalfEnd:
    """A commit or rollback of a half message (37)."""

    decision: str
    evidence: Evidence
    by_check: bool
    """it responds to a check"""
    client: str
    """`address:port` of its sender"""


@dataclass(slots=True)
class ObservedHalf:
    """One half message, as far as captured."""

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
    sent: int = 0
    """first send, ns: by the producer if a proxy forwards it"""
    ends: dict[str, HalfEnd] = field(default_factory=dict)
    """the first commit and the first rollback"""
    unknown: Tally = field(default_factory=Tally)
    """37 with an unknown outcome"""
    checks: Tally = field(default_factory=Tally)
    clients: Counter[str] = field(default_factory=Counter)
    """39 by capture and sender; a broker may check with another producer each time"""
    responders: set[str] = field(default_factory=set)
    """`address:port` of checked producers"""
    proxied: set[str] = field(default_factory=set)
    """producers checked by a proxy: if there are any, the others are proxies"""

    @property
    def checked(self) -> int:
        """Number of checks by the broker; hops of a relay count once."""
        return max(self.clients.values(), default=0)

    @property
    def ordered_ends(self) -> list[HalfEnd]:
        """The first commit and the first rollback, by time."""
        return sorted(self.ends.values(), key=attrgetter("evidence"))

    @property
    def first_end(self) -> HalfEnd | None:
        """The first commit or rollback."""
        return next(iter(self.ordered_ends), None)

    @property
    def decision(self) -> str | None:
        """The first decision."""
        return None if self.first_end is None else self.first_end.decision

    @property
    def contradicts(self) -> bool:
        """Whether the message was both committed and rolled back."""
        return len(self.ends) > 1


class Halves:
    """All half messages of a capture."""

    def __init__(self) -> None:
        self.messages: dict[str, ObservedHalf] = {}

    def add(self, row: ExchangeRecord) -> None:
        """Add a stored half message, its end, or a check."""
        is_check = row.request_code == CHECK or row.request_name == CHECK_CALL
        key = fact_in(row.facts, TRANSACTION_ID) if is_check else row.unique_key
        if key is None:
            return
        one = state_in(self.messages, key, lambda: ObservedHalf(key), MAX_MESSAGES)
        if one is None:
            return
        if is_check:
            _take_check(one, row)
        elif row.request_code == END or row.request_name == END_CALL:
            _take_end(one, row)
        else:
            _take_send(one, row)

    def ordered(self) -> list[ObservedHalf]:
        """Return the messages by time, those without a send last."""
        return sorted(
            self.messages.values(),
            key=lambda half: (
                half.stored is None,
                half.stored.time if half.stored else 0,
                half.key,
            ),
        )


def _take_send(half: ObservedHalf, row: ExchangeRecord) -> None:
    evidence = shown(row, f"half message {half.key} stored by {row.server_address}")
    # The client's own send is the earliest: a proxy sends it on.
    if half.stored is None or time_of(row) < half.sent:
        half.sent, half.client = time_of(row), row.client_address
    if half.stored is None or evidence < half.stored:
        half.stored = evidence
        half.topic, half.group, half.broker = row.topic, row.group, row.server_address


def _take_check(half: ObservedHalf, row: ExchangeRecord) -> None:
    client = f"{row.capture} {row.client_address}"
    if has_room(half.clients, client, MAX_CLIENTS):
        half.clients[client] += 1
    keep(half.responders, row.server_address, MAX_CLIENTS)
    if row.request_name == CHECK_CALL:
        keep(half.proxied, row.server_address, MAX_CLIENTS)
    half.checks.add(
        asked(row, f"{row.client_address} checks back with {row.server_address} about {half.key}")
    )
    if half.stored is None:
        # The sender of the check is the broker; of several, whatever the order, the smallest.
        half.broker = min(filter(None, (half.broker, row.client_address)), default="")
        half.client = min(filter(None, (half.client, row.server_address)), default="")


def _take_end(half: ObservedHalf, row: ExchangeRecord) -> None:
    # None: it was sent oneway, as Java clients do.
    if row.response_code not in _DONE:
        return
    if half.group is None:
        half.group = row.group
    decision = fact_in(row.facts, DECISION)
    checked = fact_in(row.facts, CHECKED) is not None
    what = f"{decision} of {half.key}{', asked by the broker' if checked else ''}"
    evidence = asked(row, what)
    if decision not in (COMMIT, ROLLBACK):
        half.unknown.add(evidence)
        return
    before = half.ends.get(decision)
    if before is None or evidence < before.evidence:
        half.ends[decision] = HalfEnd(decision, evidence, checked, row.client_address)


class HalvesFold(Fold):
    """All half messages: a check (39) names neither group nor topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.halves = Halves()

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add a row of a half message."""
        self.halves.add(row)

    def sought(self) -> Mapping[str, str]:
        """Return all half messages, as UNIQ_KEY → topic."""
        return {half.key: half.topic or "" for half in self.halves.messages.values()}


def transactional(row: ExchangeRecord) -> str | None:
    """Return the only key of rules about half messages, for their rows."""
    if row.request_code in (END, CHECK) or row.request_name in (END_CALL, CHECK_CALL):
        return WHOLE
    return WHOLE if row.facts and fact_in(row.facts, TRANSACTION) is not None else None


def _by_call(row: ExchangeRecord) -> str | None:
    return transactional(row) if row.request_name in _CALLS and row.response_code in _DONE else None


def by_group_and_topic(
    messages: Iterable[ObservedHalf],
) -> list[tuple[str, str, list[ObservedHalf]]]:
    """Return messages by producer group and topic, sorted; empty texts if unknown."""
    groups: dict[tuple[str, str], list[ObservedHalf]] = {}
    for half in messages:
        groups.setdefault((half.group or "", half.topic or ""), []).append(half)
    return [(group, topic, several) for (group, topic), several in sorted(groups.items())]


def subject_of(
    several: Sequence[ObservedHalf], context: Context, *, with_message: bool = True
) -> Subject:
    """Return the subject of messages of one group and topic, with the message if there is one."""
    return Subject(
        broker=only(context.broker(half.broker) for half in several if half.broker),
        topic=several[0].topic or None,
        group=several[0].group or None,
        client=only(context.client(half.client) for half in several if half.client),
        message=several[0].key if with_message and len(several) == 1 else None,
    )


def named_halves(halves: Sequence[ObservedHalf]) -> str:
    """Return a message by its key, or the number of several messages."""
    return f"half message {halves[0].key}" if len(halves) == 1 else f"{len(halves):,} half messages"


def of_and_to(group: str, topic: str) -> str:
    """Return the known ones of group and topic for a title: `` of group to topic``."""
    return f"{f' of {group}' if group else ''}{f' to {topic}' if topic else ''}"


def tally_of_stored(halves: Iterable[ObservedHalf]) -> Tally:
    """Return a tally of the captured sends of half messages."""
    return Tally.of(half.stored for half in halves if half.stored is not None)


def keys_text(halves: Sequence[ObservedHalf]) -> str:
    """Return a sentence with the first keys."""
    return f"messages: {', '.join(half.key for half in halves[:MOST_NAMED])}"


def stored_half(half: ObservedHalf, context: Context) -> StoredHalfState | None:
    """Return the state of a half message in a broker's store, or None."""
    return None if context.store is None else context.store.halves.get(half.key)


def in_store(half: ObservedHalf, context: Context) -> str:
    """Return how a half message ended according to a store, as the end of a sentence, or empty."""
    stored = stored_half(half, context)
    return "" if stored is None else f"; {half_words(stored)} according to the broker's store"


def age_of(half: ObservedHalf, until: int | None) -> int:
    """Return the ns from the send to the end of the capture."""
    return until - time if until is not None and (time := stored_time(half)) else 0


def stored_time(half: ObservedHalf) -> int:
    """Return when a half message was stored; 0: not captured."""
    return half.stored.time if half.stored is not None else 0


OF_HALVES: Final = (
    Exchanges(key=transactional, requests=SENDS, responses={SUCCESS}, with_facts=True),
    Exchanges(key=transactional, requests={END, CHECK}),
    Exchanges(key=_by_call, with_facts=True),
)
"""the exchanges that rules about half messages take"""
