"""The members of a consumer group change again and again, so that its queues move all the time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import MEMBER, facts_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, time_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import spells

CHANGED: Final = int(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
MEMBERS: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
WINDOW_NS: Final = 300_000_000_000
FEWEST: Final = 15
"""changes in that window: three a minute for five minutes"""
TOGETHER_NS: Final = 50_000_000
"""a broker tells all members of one change within that time (ConsumerManager)"""
MAX_CHANGES: Final = 20_000
MAX_CLIENTS: Final = 4096
MOST_NAMED: Final = 5


class _Fold(Fold):
    """Changes and clients of one group, as seen by all brokers."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.told: dict[str, dict[int, Evidence]] = {}
        """address of the broker -> time in units of TOGETHER_NS -> the first notice then"""
        self.clients: set[str] = set()
        self.seen = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code != CHANGED:
            for name in facts_in(row.facts, MEMBER):
                if len(self.clients) < MAX_CLIENTS:
                    self.clients.add(name)
            return
        told = self.told.setdefault(row.requester, {})
        at = time_of(row) // TOGETHER_NS
        before = told.get(at)
        if before is None and self.seen >= MAX_CHANGES:
            return
        one = asked(row, f"{row.requester} tells {row.responder} that its group changed")
        if before is None:
            self.seen += 1
            told[at] = one
        elif _place(one) < _place(before):
            told[at] = one

    def cases(self, context: Context) -> Iterable[Case]:
        changes = [
            (broker, one) for broker, told in sorted(self.told.items()) for one in _events(told)
        ]
        for spell in spells(changes, _span, self.lasts):
            yield from self._cases_of(spell, context)

    def _cases_of(self, changes: list[tuple[str, Evidence]], context: Context) -> Iterable[Case]:
        best: list[Evidence] = []
        of = ""
        for broker in sorted({broker for broker, _ in changes}):
            most = _busiest([one for other, one in changes if other == broker])
            if len(most) > len(best):
                best, of = most, broker
        # A deployment stops each client once and starts each once: such changes are wanted.
        hosts = {name.partition("@")[0] for name in self.clients}
        wanted = max(2 * len(hosts), len(self.clients))
        if len(best) < FEWEST or len(best) <= wanted:
            return
        tally = Tally.of(best)
        seconds = (tally.last - tally.first) / 1_000_000_000
        case = tally.case(
            f"the members of {self.key} changed {len(best)} times in {seconds:.0f} s, as"
            f" {context.broker(of)} told them: each time its consumers rebalance",
            Subject(group=self.key),
        )
        if self.clients:
            names = ", ".join(sorted(self.clients)[:MOST_NAMED])
            more = len(self.clients) - MOST_NAMED
            case.details.append(f"clients: {names}{f' and {more} more' if more > 0 else ''}")
        yield case


def _span(change: tuple[str, Evidence]) -> tuple[int, int]:
    return change[1].time, change[1].time


def _place(one: Evidence) -> tuple[int, str, int]:
    return one.time, one.capture, one.packet or 0


def _events(told: dict[int, Evidence]) -> list[Evidence]:
    """Return the first notice of each change: notices in adjoining units are of one change."""
    return [told[at] for at in sorted(told) if at - 1 not in told]


def _busiest(events: list[Evidence]) -> list[Evidence]:
    """Return the events of the window with the most of them."""
    best: list[Evidence] = []
    start = 0
    for end, one in enumerate(events):
        while one.time - events[start].time > WINDOW_NS:
            start += 1
        if end + 1 - start > len(best):
            best = events[start : end + 1]
    return best


def _group(row: ExchangeRecord) -> str | None:
    return row.group or None


RULE = DiagnosisRule(
    id="rebalance-storm",
    severity=ProblemSeverity.WARNING,
    title="The members of a consumer group change again and again",
    searched=("rebalance frequently", "consumer ids changed", "doRebalance"),
    proof=(
        "NOTIFY_CONSUMER_IDS_CHANGED (40) of one broker for one group, 15 times or more within five"
        " minutes (notices at one time count once). That is more than a deployment of the members"
        " that 38 lists would cause."
    ),
    explanation=(
        "The broker tells all members of a group when one of them comes, goes, or changes its"
        " subscription. Each member then asks for the list of members and assigns the queues again."
        " Queues that change hands are dropped and pulled again: messages wait, and some are"
        " consumed twice. Consumers that restart, lose their connection, or are so busy that"
        " heartbeats fail make it happen all the time."
    ),
    advice=(
        "Find out which client comes and goes: the heartbeats (34) and leaves (35) of the group"
        " around these times. Look for restarts, for garbage collections, and for connections that"
        " a firewall cuts. Members with different subscriptions cause it too. Heartbeats come every"
        " heartbeatBrokerInterval (default 30 s); the broker drops a client after 120 s without"
        " one. The group's setting notifyConsumerIdsChangedEnable (default true) turns the notices"
        " off; members then notice changes after 20 s."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_group, requests=frozenset((CHANGED, MEMBERS))),),
    references=(
        "apache/rocketmq#9115",
        "apache/rocketmq#3513",
        "apache/rocketmq#7870",
        "apache/rocketmq#1467",
        "apache/rocketmq-client-cpp#137",
    ),
    limits="Changes are seen only at members whose connections were captured.",
    needs=frozenset((Need.GROUPS,)),
    consequence_of=frozenset(
        (
            "broker-gone",
            "broker-hung",
            "packets-unacknowledged",
            "inconsistent-subscription",
            "duplicate-client-id",
        )
    ),
)
