"""Two members of a clustering group pull one queue at the same time, or none pulls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import MEMBER, MEMBERS, facts_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord
from dissectors.times import SECOND

from ...context import Context, Need
from ...keys import is_own_topic, named_group
from ...names import listed
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, duration, end_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from .queue_pulls import CLAIM, PulledQueues, QueuePlace, QueuePulls, SharedPeriod

ORPHANED: Final = "queue-orphaned"
"""id of the rule about unassigned queues, reported by the same state"""
TURNS: Final = 3
"""times that a client pulls again after the other, from which a period is reported"""
LEAST: Final = 30 * SECOND
"""duration from which a period is reported: members may rebalance only every 20 s"""
ABANDONED: Final = 45 * SECOND
"""time without a request of any member: one may wait 30 s for the response to an earlier one"""
MAX_LISTS: Final = 1_000
"""maximum responses with member lists"""
_LIST: Final = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._pulls = QueuePulls()
        self._lists: dict[int, frozenset[str]] = {}
        """second -> members of the group at that time"""
        self._cut = False
        """whether a list has more members than its row names"""

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        code, topic = rows[0].request_code, rows[0].topic
        server, client = rows[0].server_address, rows[0].client_address
        if code == _LIST:
            for row in rows:
                self._add_list(row)
            return
        if topic is None:
            return
        for row in rows:
            number, time = row.queue_id, row.request_time
            if number is None or time is None:
                continue
            pulls = self._pulls.of(topic, server, number, client)
            if pulls is None:
                continue
            if code == CLAIM:
                pulls.claims.add(time, time)
                continue
            pulls.add(time, row.response_time)
            if pulls.evidence is None or time < pulls.evidence.time:
                pulls.evidence = asked(row, f"{client} pulls queue {number}")

    def _add_list(self, row: ExchangeRecord) -> None:
        named = facts_in(row.facts, MEMBER)
        self._cut = self._cut or (number_in(row.facts, MEMBERS) or 0) > len(named)
        members = frozenset(named)
        tick = end_of(row) // SECOND
        if members and (tick in self._lists or len(self._lists) < MAX_LISTS):
            # Of several in one second the longest list: their order is undefined.
            before = self._lists.get(tick, frozenset())
            self._lists[tick] = max(before, members, key=lambda item: (len(item), sorted(item)))

    def cases(self, context: Context) -> Iterable[Case]:
        if self.key not in context.clustering or self.key in context.pulling:
            return
        queues = self._pulls.seen(context)
        by_topic: dict[tuple[str, tuple[str, str]], list[SharedPeriod]] = {}
        for period in queues.shared():
            # Clients with one id are the subject of duplicate-client-id.
            if not period.one_id and period.turns >= TURNS and period.length >= LEAST:
                by_topic.setdefault((period.place.topic, period.clients), []).append(period)
        alone: dict[QueuePlace, int] = {}
        # Alone, it is no proof: a member outside the capture may pull it.
        for unpulled in queues.unpulled() if by_topic else ():
            if unpulled.length >= LEAST:
                alone[unpulled.place] = max(alone.get(unpulled.place, 0), unpulled.length)
        for (topic, _), several in sorted(by_topic.items()):
            yield self._case(
                topic, several, {place: alone[place] for place in alone if place.topic == topic}
            )
        for topic in sorted(queues.topics - {topic for topic, _ in by_topic}):
            case = self._orphans(topic, queues, context)
            if case is not None:
                yield case

    def _orphans(self, topic: str, queues: PulledQueues, context: Context) -> Case | None:
        """Return the case of queues that no member pulls, while all members are alive."""
        times = sorted(self._lists)
        if not times or self._cut or is_own_topic(topic):
            return None
        members = self._lists[times[-1]]
        # The last members, and since when they are unchanged.
        others = [tick for tick in times if self._lists[tick] != members]
        since = SECOND * min(tick for tick in times if not others or tick > others[-1])
        end = (context.last_time or 0) // SECOND * SECOND
        # Every member must be in the capture: one that is not may own the queue.
        if end - since < ABANDONED or not members <= set(context.clients.values()):
            return None
        pulled, unpulled = queues.of_route(topic, since)
        brokers = {place.broker for place in pulled}
        # At a broker that nobody pulls, no connection may have been captured.
        orphans = [place for place in unpulled if place.broker in brokers]
        if not orphans:
            return None
        proofs = (pulls.evidence for place in pulled for pulls in queues.pulls(place))
        tally = Tally.of(proof for proof in proofs if proof is not None)
        case = tally.case(
            f"{counted(len(orphans), 'queue')} of {topic}"
            f" ({listed(f'{orphan.broker}:{orphan.number}' for orphan in orphans)})"
            f" {'was' if len(orphans) == 1 else 'were'} not pulled by any member of group"
            f" {self.key} for {duration(end - since)}: messages there wait, although the"
            f" group has {counted(len(members), 'member')}",
            Subject(
                group=self.key,
                topic=topic,
                queue=orphans[0].number if len(orphans) == 1 else None,
            ),
        )
        case.rule = ORPHANED
        case.count = len(orphans)
        case.first_time, case.last_time = since, end
        case.details = [f"members: {listed(members)}"]
        return case

    def _case(self, topic: str, periods: list[SharedPeriod], alone: dict[QueuePlace, int]) -> Case:
        shared = {period.place: period for period in periods}
        tally = Tally.of(proof for period in shared.values() for proof in period.evidence)
        queues = listed(f"{place.broker}:{place.number}" for place in shared)
        nobody = listed(f"{place.broker}:{place.number}" for place in alone)
        longest = duration(max(alone.values(), default=0))
        others = f"; no member pulled {nobody} for up to {longest}" if alone else ""
        case = tally.case(
            f"{counted(len(shared), 'queue')} of {topic} ({queues})"
            f" {'is' if len(shared) == 1 else 'are'} pulled by two members of group"
            f" {self.key} at once, {' and '.join(periods[0].clients)}, for"
            f" {duration(max(period.length for period in periods))}: messages there are delivered"
            f" twice{others}",
            Subject(
                group=self.key,
                topic=topic,
                queue=periods[0].place.number if len(shared) == 1 else None,
            ),
        )
        case.count = len(shared)
        case.first_time = min(period.first for period in periods)
        case.last_time = max(period.last for period in periods)
        return case


RULE = DiagnosisRule(
    id="queue-shared",
    severity=ProblemSeverity.ERROR,
    title="Two members of a group pull one queue at the same time",
    searched=(
        "AllocateMessageQueueStrategy",
        "messages consumed twice by two consumers of a group",
        "some queues have no consumer",
    ),
    proof=(
        "Two clients of a group whose heartbeats say CLUSTERING take turns pulling one queue for 30"
        " s or longer. Each pulls again after the other one, without the offset request (14) of a"
        " client that takes a queue over."
    ),
    explanation=(
        "In a clustering group, each queue belongs to one member. The members compute the"
        " assignment themselves: each sorts members and queues and applies its allocation strategy."
        " If strategies differ, or the members see different lists, two members take the same queue"
        " and consume its messages twice, and other queues get no member: their messages wait."
    ),
    advice=(
        "Use the same AllocateMessageQueueStrategy (default AllocateMessageQueueAveragely), client"
        " library, and version in all members of the group, and give each instance its own client"
        " id. mqadmin consumerProgress -g GROUP -s true shows which client owns which queue."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=named_group, requests=PULLS | {CLAIM, _LIST}, of_flow=True),),
    limits="Groups of pull consumers, which may assign queues manually, are ignored.",
    needs={Need.PULLS, Need.HEARTBEATS},
    consequence_of={"duplicate-client-id", "inconsistent-subscription"},
    lasts=None,
)
