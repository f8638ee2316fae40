"""The members of a consumer group change repeatedly, so its queues move all the time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import MEMBER, facts_in
from dissectors.remoting.row_facts.names import MEMBERS as MEMBER_COUNT
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import keep_least
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, duration, time_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import spells

CHANGED: Final = int(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
MEMBERS: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
WINDOW_NS: Final = 300_000_000_000
FEWEST: Final = 15
"""changes in that window: three a minute for five minutes"""
TOGETHER_NS: Final = 50_000_000
"""a broker notifies all members of one change within this time (ConsumerManager)"""
MAX_CHANGES: Final = 20_000
MAX_CLIENTS: Final = 4096
MOST_NAMED: Final = 5


class _Fold(Fold):
    """Changes and clients of one group, as reported by all brokers."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.notified: dict[str, dict[int, Evidence]] = {}
        """broker address -> time in units of TOGETHER_NS -> the first notification in it"""
        self.clients: dict[str, tuple[int, str, int, int]] = {}
        """client -> when a list of members first named it, and its place there"""
        self.members = 0
        """the most members that a list had; it names only the first ones"""
        self.seen = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code != CHANGED:
            self.members = max(self.members, number_in(row.facts, MEMBER_COUNT) or 0)
            where = _place(asked(row, ""))
            for number, name in enumerate(facts_in(row.facts, MEMBER)):
                keep_least(self.clients, name, (*where, number), MAX_CLIENTS)
            return
        # The broker sends this request, so it is the client here.
        notices = self.notified.setdefault(row.client_address, {})
        at = time_of(row) // TOGETHER_NS
        before = notices.get(at)
        if before is None and self.seen >= MAX_CHANGES:
            return
        evidence = asked(
            row, f"{row.client_address} notifies {row.server_address}: its group changed"
        )
        if before is None:
            self.seen += 1
            notices[at] = evidence
        elif _place(evidence) < _place(before):
            notices[at] = evidence

    def cases(self, context: Context) -> Iterable[Case]:
        changes = [
            (broker, event)
            for broker, notified in sorted(self.notified.items())
            for event in _events(notified)
        ]
        for spell in spells(changes, _span, self.lasts):
            yield from self._cases_of(spell, context)

    def _cases_of(self, changes: list[tuple[str, Evidence]], context: Context) -> Iterable[Case]:
        best: list[Evidence] = []
        of = ""
        for broker in sorted({broker for broker, _ in changes}):
            most = _busiest([change for other, change in changes if other == broker])
            if len(most) > len(best):
                # The busiest broker alone: every broker notifies of the same changes.
                best, of = most, broker
        # A deployment stops and starts each client once: such changes are intended.
        hosts = {name.partition("@")[0] for name in self.clients}
        wanted = max(2 * len(hosts), len(self.clients), self.members)
        if len(best) < FEWEST or len(best) <= wanted:
            return
        tally = Tally.of(best)
        case = tally.case(
            f"the members of {self.key} changed {len(best)} times in"
            f" {duration(tally.last - tally.first)}, according to notices from"
            f" {context.broker(of)}: each change causes a rebalance",
            Subject(group=self.key),
        )
        if self.clients:
            names = ", ".join(
                sorted(self.clients, key=lambda name: self.clients[name])[:MOST_NAMED]
            )
            more = len(self.clients) - MOST_NAMED
            case.details.append(f"clients: {names}{f' and {more} more' if more > 0 else ''}")
        yield case


def _span(change: tuple[str, Evidence]) -> tuple[int, int]:
    return change[1].time, change[1].time


def _place(evidence: Evidence) -> tuple[int, str, int]:
    return evidence.time, evidence.capture, evidence.packet or 0


def _events(notified: dict[int, Evidence]) -> list[Evidence]:
    """Return the first notification of each change; adjoining units belong to one change."""
    return [notified[at] for at in sorted(notified) if at - 1 not in notified]


def _busiest(events: list[Evidence]) -> list[Evidence]:
    """Return the events of the window that has the most."""
    best: list[Evidence] = []
    start = 0
    for end, event in enumerate(events):
        while event.time - events[start].time > WINDOW_NS:
            start += 1
        if end + 1 - start > len(best):
            best = events[start : end + 1]
    return best


def _group(row: ExchangeRecord) -> str | None:
    return row.group or None


RULE = DiagnosisRule(
    id="rebalance-storm",
    severity=ProblemSeverity.WARNING,
    title="The members of a consumer group change repeatedly",
    searched=("rebalance frequently", "consumer ids changed", "doRebalance"),
    proof=(
        "15 or more NOTIFY_CONSUMER_IDS_CHANGED (40) of one broker for one group within five"
        " minutes (simultaneous notices count once). That is more than deploying all members in the"
        " group's member list (38) would cause."
    ),
    explanation=(
        "The broker notifies all members of a group when one of them joins, leaves, or changes its"
        " subscription. Each member then requests the list of members and assigns the queues again."
        " Queues that change owner are dropped and pulled again: messages wait, and some are"
        " consumed twice. This repeats if consumers restart, lose their connection, or are so busy"
        " that heartbeats fail."
    ),
    advice=(
        "Find out which client joins and leaves: the heartbeats (34) and unregister requests (35)"
        " of the group around these times. Look for restarts, garbage collections, and connections"
        " that a firewall closes. Members with different subscriptions cause it, too. Heartbeats"
        " are sent every heartbeatBrokerInterval (default 30 s); the broker drops a client after"
        " 120 s without one. The group's setting notifyConsumerIdsChangedEnable (default true)"
        " turns the notices off; members then notice changes after 20 s."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_group, requests={CHANGED, MEMBERS}),),
    references=(
        "apache/rocketmq#9115",
        "apache/rocketmq#3513",
        "apache/rocketmq#7870",
        "apache/rocketmq#1467",
        "apache/rocketmq-client-cpp#137",
    ),
    limits="Changes are visible only at members whose connections were captured.",
    needs={Need.GROUPS},
    consequence_of={
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "inconsistent-subscription",
        "duplicate-client-id",
    },
)
