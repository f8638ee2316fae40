"""A consumer group falls behind: messages come faster than it fetches them, or it stands still."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import joined_key, parts_of
from ...need import Need
from ...problem import (
    Case,
    Confidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
)
from ...refusals import counted, only
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from .consumed import Commits, Stand, longest_stand
from .pulled import Point, Series, says_end
from .queue_began_anew import began_anew

COMMIT: Final = int(RequestCode.UPDATE_CONSUMER_OFFSET)
SECOND: Final = 1_000_000_000
MAX_QUEUES: Final = 256
SHORTEST_NS: Final = 10 * SECOND
"""a burst that is shorter says nothing of the consumer"""
SURE_NS: Final = 60 * SECOND
FEWEST_POINTS: Final = 4
FEWEST_BEHIND: Final = 50
"""messages: more than one pull (pullBatchSize, 32) fetches"""
LEAST_GROWTH: Final = 16
"""messages, in each half of the time"""
SLOWER: Final = 0.9
"""of what arrives, a group that keeps up fetches more"""
CAUGHT_UP: Final = 0.5
"""of the greatest lag: a group that is less behind in the end works it off"""
STANDS_NS: Final = 60 * SECOND
SYSTEM_GROUPS: Final = ("CID_RMQ_SYS_", "TOOLS_CONSUMER", "SELF_TEST_")
"""MixAll: groups of brokers and tools"""
_Queue = tuple[str, int]


class _Fold(Fold):
    """One group and topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.pulled: dict[_Queue, Series] = {}
        self.commits: dict[_Queue, Commits] = {}
        self.clients: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        queue = (row.responder, row.queue_id if row.queue_id is not None else -1)
        if row.request_code == COMMIT:
            offset = row.queue_offset
            if offset is not None:
                self._take_commit(queue, row, offset)
            return
        if not says_end(row):
            return
        series = self.pulled.get(queue)
        if series is None:
            if len(self.pulled) >= MAX_QUEUES:
                return
            series = self.pulled[queue] = Series()
        series.add(row)
        if len(self.clients) < MAX_QUEUES:
            self.clients.add(row.requester)

    def _take_commit(self, queue: _Queue, row: ExchangeRecord, offset: int) -> None:
        commits = self.commits.get(queue)
        if commits is not None:
            commits.add(row, offset)
        elif len(self.commits) < MAX_QUEUES:
            self.commits[queue] = Commits(row, offset)

    def cases(self, context: Context) -> Iterable[Case]:
        group, topic = parts_of(self.key)
        yield from began_anew(topic, self.pulled, context)
        pulled = {queue: one.ordered() for queue, one in self.pulled.items() if not one.is_shared()}
        found = self._growing(group, topic, context, pulled, "fetched")
        if found is None:
            found = self._standing(group, topic, context)
        if found is None:
            consumed = {
                queue: self.commits[queue].against(points)
                for queue, points in pulled.items()
                if queue in self.commits
            }
            found = self._growing(group, topic, context, consumed, "consumed")
        if found is not None:
            yield found

    def _growing(
        self,
        group: str,
        topic: str,
        context: Context,
        every: Mapping[_Queue, list[Point]],
        done: str,
    ) -> Case | None:
        """Return the case of a group that is ever farther behind, by what it does with messages."""
        series = _of_one_hop(every, context)
        if not series:
            return None
        first = min(points[0].time for points in series.values())
        times = sorted({point.time for points in series.values() for point in points})
        behind = [sum(_at(points, time).lag for points in series.values()) for time in times]
        most = max(behind)
        peak = times[behind.index(most)]
        span = peak - first
        if span < SHORTEST_NS:
            return None
        middle = sum(_at(points, first + span // 2).lag for points in series.values())
        ends = [(points[0], _at(points, peak)) for points in series.values()]
        arrived = sum(after.end - before.end for before, after in ends)
        fetched = sum(after.following - before.following for before, after in ends)
        if (
            most < FEWEST_BEHIND
            or behind[-1] < most * CAUGHT_UP
            or middle - behind[0] < LEAST_GROWTH
            or most - middle < LEAST_GROWTH
            or fetched > arrived * SLOWER
        ):
            return None
        tally = Tally()
        for (_, number), points in sorted(series.items()):
            for point in (points[0], _at(points, first + span // 2), _at(points, peak)):
                tally.add(point.evidence(number, done))
        tally.count = most
        seconds = span / SECOND
        brokers = {context.broker(address) for address, _ in series}
        clients = {context.client(one) for one in self.clients}
        case = tally.case(
            f"{group} falls behind in {topic}: from {behind[0]:,} to {most:,} messages in"
            f" {seconds:.0f} s; {arrived / seconds:.1f} a second arrive,"
            f" {fetched / seconds:.1f} are {done}",
            Subject(
                broker=only(brokers),
                topic=topic,
                group=group,
                client=only(clients),
                queue=_only_number(queue for _, queue in series),
            ),
        )
        case.details.append(f"queues: {len(series)}; members seen: {len(clients)}")
        if behind[-1] < most:
            case.details.append(f"at the end of the capture it is {behind[-1]:,} messages behind")
        if span < SURE_NS:
            case.confidence = Confidence.LIKELY
            case.reason = f"it was seen for {seconds:.0f} s only"
        return case

    def _standing(self, group: str, topic: str, context: Context) -> Case | None:
        """Return the case of queues that have more while the stored offset does not move."""
        tally = Tally()
        beyond = fetched = longest = 0
        stands: dict[_Queue, Stand] = {}
        for queue, commits in sorted(self.commits.items()):
            if queue not in self.pulled:
                continue
            stand = longest_stand(commits, self.pulled[queue].ordered(), queue[1])
            if stand is None or stand.until - stand.since < STANDS_NS:
                continue
            for one in (stand.begun, stand.more, stand.ended):
                tally.add(one)
            beyond += stand.end - stand.offset
            fetched += max(0, stand.following - stand.offset)
            longest = max(longest, stand.until - stand.since)
            stands[queue] = stand
        if not stands:
            return None
        tally.count = beyond
        brokers = {context.broker(address) for address, _ in stands}
        queue_id = _only_number(number for _, number in stands)
        where = f"queue {queue_id}" if len(stands) == 1 else f"{len(stands)} queues"
        recovered = all(one.recovered for one in stands.values())
        stood, has, until = (
            ("stood", "did not move", ", and then moved on")
            if recovered
            else ("stands", "has not moved", "")
        )
        are = ("message was", "messages were") if recovered else ("message is", "messages are")
        case = tally.case(
            f"{group} {stood} still in {where} of {topic}: its stored offset {has} for"
            f" {longest / SECOND:.0f} s although {counted(beyond, *are)} behind it{until}",
            Subject(broker=only(brokers), topic=topic, group=group, queue=queue_id),
        )
        if recovered:
            case.state = ProblemState.OVER
        if fetched:
            case.details.append(
                f"{fetched:,} of them were fetched: a consumer that is not orderly may have"
                " consumed them, and gets them again when it is restarted"
            )
        case.confidence = Confidence.LIKELY
        case.reason = "one message may simply take that long"
        return case


def _of_one_hop(every: Mapping[_Queue, list[Point]], context: Context) -> dict[_Queue, list[Point]]:
    """Return the queues with points enough.

    A relay in front of a broker has its name: the same requests are seen at both.
    """
    series = {queue: points for queue, points in every.items() if len(points) >= FEWEST_POINTS}
    places: dict[tuple[str, int], _Queue] = {}
    for queue in sorted(series, key=lambda one: (-len(series[one]), one)):
        places.setdefault((context.broker(queue[0]), queue[1]), queue)
    return {queue: series[queue] for queue in places.values()}


def _only_number(numbers: Iterable[int]) -> int | None:
    """Return the number where there is one only."""
    different = set(numbers)
    return different.pop() if len(different) == 1 else None


def _at(points: list[Point], time: int) -> Point:
    """Return what the last answer until a time said of a queue, else the first."""
    return points[max(bisect_right(points, time, key=attrgetter("time")) - 1, 0)]


def _key(row: ExchangeRecord) -> str | None:
    group, topic = row.group, row.topic
    if not group or not topic or group.startswith(SYSTEM_GROUPS):
        return None
    return joined_key(group, topic)


RULE = DiagnosisRule(
    id="consumer-lag",
    severity=ProblemSeverity.WARNING,
    title="A consumer group falls behind",
    searched=("consumer lag", "message accumulation", "diff total", "consumerProgress diff"),
    proof=(
        "Answers to pulls: maxOffset less nextBeginOffset grows over the time seen and fewer"
        " messages are fetched than arrive; or the same of maxOffset less the offset that the group"
        " stores (15). Or that offset does not move for a minute although the queue has more"
        " messages, whether or not it moves on later."
    ),
    explanation=(
        "Producers store messages faster than the group takes them. A push consumer stops pulling a"
        " queue while 1000 messages of it wait in its memory, so that a slow consumer shows as"
        " pulls that get rare. A queue that stands still is mostly held up by one message: an"
        " orderly consumer tries it again in place, a concurrent one stores no offset beyond it."
    ),
    advice=(
        "Look at what the consumer does for each message: slow calls, locks, one thread."
        " consumeThreadMin and consumeThreadMax (default 20) set the threads,"
        " consumeMessageBatchMaxSize (default 1) how many messages one call gets. More members help"
        " up to the number of queues. pullThresholdForQueue (default 1000 messages) and"
        " pullThresholdSizeForQueue (default 100 MiB) limit what waits in memory."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests=FETCHES, statuses=frozenset(("answered",))),
        Exchanges(key=_key, requests=frozenset((COMMIT,))),
    ),
    references=(
        "apache/rocketmq#6600",
        "apache/rocketmq#5366",
        "apache/rocketmq-client-go#66",
        "apache/rocketmq-client-go#947",
    ),
    limits=(
        "What a consumer holds in its memory and has not consumed is seen only in the offsets that"
        " it stores, which stay at the first message that is not consumed. The end of a queue is"
        " known as of its last pull. POP says no offsets."
    ),
    needs=frozenset((Need.PULLS,)),
    consequence_of=frozenset(
        (
            "client-hung",
            "rebalance-storm",
            "reconsume-growth",
            "inconsistent-subscription",
            "cold-read-throttled",
            "orderly-lock-lost",
        )
    ),
    lasts=None,
)
