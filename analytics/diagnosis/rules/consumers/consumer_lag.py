"""A consumer group falls behind: messages arrive faster than it fetches them, or it is stuck."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

from dissectors.grpc.names import OK
from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.rows.outcome import RECEIVE_CALLS, is_call, is_pop
from dissectors.rows.record import ExchangeRecord
from dissectors.times import SECOND

from ...context import Context, Need
from ...keys import COMMIT, Add, Flow, joined_key, keep, parts_of, state_in
from ...names import only
from ...problem import Case, Impact, ProblemSeverity, ProblemState, Subject, Tally, duration
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from .consumed import Commits, Stand, longest_stand
from .pulled import Point, Series, says_end
from .queue_pulls import CLAIM, ConnectionPulls, QueuePlace, QueuePulls
from .queue_truncated import truncated_queues
from .received import Received, Stage

MAX_QUEUES: Final = 256
SHORTEST_NS: Final = 10 * SECOND
"""a shorter burst is no evidence against the consumer"""
SURE_NS: Final = 60 * SECOND
FEWEST_POINTS: Final = 4
FEWEST_BEHIND: Final = 50
"""messages: more than one pull (pullBatchSize, 32) fetches"""
LEAST_GROWTH: Final = 16
"""messages, in each half of the period"""
SLOWER: Final = 0.9
"""share of the arrivals: a group that keeps up fetches more"""
CAUGHT_UP: Final = 0.5
"""share of the maximum lag: a group below it at the end is catching up"""
STANDS_NS: Final = 60 * SECOND
OLDER_NS: Final = 10 * SECOND
"""growth of the age of received messages, half of it in each half of the period"""
_ENDS_OF_CALLS: Final = frozenset(("AckMessage", "ChangeInvisibleDuration"))
_ENDS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
SYSTEM_GROUPS: Final = ("CID_RMQ_SYS_", "TOOLS_CONSUMER", "SELF_TEST_")
"""MixAll: groups of brokers and tools"""
MOST_NAMED: Final = 5
_Queue = tuple[str, int]
_STANDING_ADVICE: Final = (
    "Find out what the consumer does with the message at that offset: take a thread dump (jstack)"
    " and look at the ConsumeMessageThread threads, or look in its log for a repeated exception."
    " Set aside a message that can never succeed, and give slow calls a timeout. A concurrent"
    " consumer returns a message after consumeTimeout (default 15 minutes); an orderly one retries"
    " it without limit by default (maxReconsumeTimes)."
)


class _Fold(Fold):
    """One group and topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.pulled: dict[_Queue, Series] = {}
        self.pulls = QueuePulls()
        self.commits: dict[_Queue, Commits] = {}
        self.clients: set[str] = set()
        self.received = {True: Received(), False: Received()}
        """by gRPC and POP"""

    def adder_of(self, flow: Flow) -> Add:
        return self._add_pulls if flow.request_code in PULLS else self.add_exchanges

    def add_exchange(self, row: ExchangeRecord) -> None:
        code, called = row.request_code, is_call(row.request_name)
        queue = (row.server_address, row.queue_id if row.queue_id is not None else -1)
        if called or is_pop(row.request_name) or code in _ENDS:
            self.received[called].add(row)
            keep(self.clients, row.client_address, MAX_QUEUES)
        elif code == CLAIM:
            pulls = self.pulls.of(row.topic or "", *queue, row.client_address)
            if pulls is not None and row.request_time is not None:
                pulls.claims.add(row.request_time, row.request_time)
        elif code == COMMIT and row.queue_offset is not None:
            commits = state_in(self.commits, queue, Commits, MAX_QUEUES)
            if commits is not None:
                commits.add(row, row.queue_offset)

    def _add_pulls(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add pulls of one flow."""
        topic, server, client = rows[0].topic or "", rows[0].server_address, rows[0].client_address
        of_queue: dict[int, tuple[Series | None, ConnectionPulls | None]] = {}
        for row in rows:
            number = row.queue_id if row.queue_id is not None else -1
            if number not in of_queue:
                pulls = self.pulls.of(topic, server, number, client)
                of_queue[number] = self.pulled.get((server, number)), pulls
            series, pulls = of_queue[number]
            if pulls is not None and row.request_time is not None:
                pulls.requests.add(row.request_time, row.request_time)
            # Not every response has the end of the queue: a refusal has none.
            if not says_end(row):
                continue
            if series is None:
                if len(self.pulled) >= MAX_QUEUES:
                    continue
                series = self.pulled[server, number] = Series()
                of_queue[number] = series, pulls
            series.add(row)
        if any(map(says_end, rows)):
            keep(self.clients, client, MAX_QUEUES)

    def cases(self, context: Context) -> Iterable[Case]:
        group, topic = parts_of(self.key)
        yield from truncated_queues(topic, self.pulled, context)
        # The pulls of two clients, as in broadcasting, are no progress of one: their offsets jump.
        shared = self.pulls.seen(context).mostly_shared()
        pulled = {
            (server, number): series.ordered()
            for (server, number), series in self.pulled.items()
            if QueuePlace(topic, context.broker(server), number) not in shared
        }
        # Fetched first: it is exact. The stored offset is at the first message in memory that is
        # not consumed, so it stays behind also in a healthy group.
        case = self._growing(group, topic, context, pulled, "fetched")
        if case is None:
            case = self._standing(group, topic, context)
        if case is None:
            consumed = {
                queue: self.commits[queue].against(points)
                for queue, points in pulled.items()
                if queue in self.commits
            }
            case = self._growing(group, topic, context, consumed, "consumed")
        if case is None:
            case = self._without_offsets(group, topic, context)
        if case is not None:
            yield case

    def _without_offsets(self, group: str, topic: str, context: Context) -> Case | None:
        """Return the case of a gRPC or POP group that falls further behind in number or age."""
        stages = self.received[True].ordered()
        calls = counted_whole = bool(stages)
        if not stages:
            stages = self.received[False].ordered()
            # Batch acknowledgements name no group: without them, too many messages seem open.
            counted_whole = not context.batch_acks
        open_ones = (
            [(stage, stage.received - stage.done) for stage in stages] if counted_whole else []
        )
        ages = [(stage, stage.age) for stage in stages if stage.age is not None]
        if (piled := _grown(open_ones, FEWEST_BEHIND, LEAST_GROWTH)) is not None:
            before, _, after = piled
            seconds = (after.time - before.time) / SECOND
            came, done = after.received - before.received, after.done - before.done
            if done > came * SLOWER:
                return None
            waiting = after.received - after.done
            title = (
                f"{group} falls behind in {topic}: from {before.received - before.done:,} to"
                f" {waiting:,} unacknowledged messages in {duration(after.time - before.time)};"
                f" {came / seconds:.1f}/s are received, {done / seconds:.1f}/s are acknowledged"
            )
        elif (piled := _grown(ages, OLDER_NS, OLDER_NS // 4)) is not None:
            before, _, after = piled
            waiting = 0
            title = (
                f"{group} falls behind in {topic}: the messages that it receives get older:"
                f" {duration(max(before.age or 0, 0))} at first and {duration(after.age or 0)}"
                f" after {duration(after.time - before.time)}"
            )
        else:
            return None
        clients = {context.client(address) for address in self.clients}
        case = Tally.of(place.evidence for place in piled).case(
            title, Subject(topic=topic, group=group, client=only(clients))
        )
        case.grpc = calls
        case.impact = {Impact.NOT_CONSUMED: waiting}
        case.details.append(f"members seen: {len(clients)}")
        if piled[2].time - piled[0].time < SURE_NS:
            case.doubt(f"it was observed for only {duration(piled[2].time - piled[0].time)}")
        return case

    def _growing(
        self,
        group: str,
        topic: str,
        context: Context,
        every: Mapping[_Queue, list[Point]],
        done: str,
    ) -> Case | None:
        """Return the case of a group whose lag grows, by how it consumes."""
        series = _of_one_hop(every, context)
        if not series:
            return None
        first = min(points[0].time for points in series.values())
        times, behind = _lags(series.values())
        most = max(behind)
        peak = times[behind.index(most)]
        # Up to the peak: the group may have caught up a little by the end.
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
            # Growth in both halves: a single burst grows in one of them only.
            or middle - behind[0] < LEAST_GROWTH
            or most - middle < LEAST_GROWTH
            or fetched > arrived * SLOWER
        ):
            return None
        tally = Tally()
        for (_, number), points in sorted(series.items()):
            for point in (points[0], _at(points, first + span // 2), _at(points, peak)):
                tally.add(point.evidence(number, done))
        tally.count = behind[-1]
        seconds = span / SECOND
        brokers = {context.broker(address) for address, _ in series}
        clients = {context.client(address) for address in self.clients}
        case = tally.case(
            f"{group} falls behind in {topic}: from {behind[0]:,} to {most:,} messages in"
            f" {duration(span)}; {arrived / seconds:.1f}/s arrive, {fetched / seconds:.1f}/s are"
            f" {done}",
            Subject(
                broker=only(brokers),
                topic=topic,
                group=group,
                client=only(clients),
                queue=only(queue for _, queue in series),
            ),
        )
        case.details.append(f"queues: {len(series)}; members seen: {len(clients)}")
        if behind[-1] < most:
            case.details.append(f"at the end of the capture it is {behind[-1]:,} messages behind")
        if span < SURE_NS:
            case.doubt(f"it was observed for only {duration(span)}")
        return case

    def _standing(self, group: str, topic: str, context: Context) -> Case | None:
        """Return the case of queues with more messages whose stored offset does not move."""
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
        # Messages, not the pieces of evidence.
        tally.count = beyond
        brokers = {context.broker(address) for address, _ in stands}
        queue_id = only(number for _, number in stands)
        where = f"queue {queue_id}" if len(stands) == 1 else f"{len(stands)} queues"
        recovered = all(stand.recovered for stand in stands.values())
        stood, has, until = (
            ("was", "did not move", ", and then moved on")
            if recovered
            else ("is", "has not moved", "")
        )
        are = ("message was", "messages were") if recovered else ("message is", "messages are")
        blocking: dict[_Queue, str] = {}
        for queue, stand in stands.items():
            key = self.pulled[queue].key_at(stand.offset)
            blocking[queue] = f"message {key}" if key else f"offset {stand.offset:,}"
        at = only(blocking.values()) if len(stands) == 1 else None
        case = tally.case(
            f"{group} {stood} stuck in {where} of {topic}{f' at {at}' if at else ''}: its committed"
            f" offset {has} for {duration(longest)} although {counted(beyond, *are)} behind"
            f" it{until}",
            Subject(broker=only(brokers), topic=topic, group=group, queue=queue_id),
        )
        case.advice = _STANDING_ADVICE
        if recovered:
            case.state = ProblemState.OVER
        if len(stands) > 1:
            case.details += [
                f"queue {number} of {context.broker(address)}: {blocking[address, number]}"
                for address, number in sorted(stands)[:MOST_NAMED]
            ]
        if group in context.orderly:
            case.details.append(
                "the group is orderly: it retries this message in place before it consumes the next"
                " one"
            )
        elif fetched:
            case.details.append(
                f"{fetched:,} of these messages were fetched: a concurrent consumer may have"
                " consumed them, and gets them again after a restart"
            )
        # The stored offset cannot pass a message that is still being consumed.
        case.doubt("one message may simply take that long")
        return case


def _grown(
    values: Sequence[tuple[Stage, int]], least: int, each_half: int
) -> tuple[Stage, Stage, Stage] | None:
    """Return the first, a middle, and the maximum stage if a value grows steadily."""
    if len(values) < FEWEST_POINTS:
        return None
    (first, begin), (_, end) = values[0], values[-1]
    peak, most = max(values, key=lambda item: item[1])
    half = first.time + (peak.time - first.time) // 2
    middle, between = max(
        (value for value in values if value[0].time <= half), key=lambda item: item[0]
    )
    grows = between - begin >= each_half and most - between >= each_half
    if peak.time - first.time < SHORTEST_NS or most - begin < least or not grows:
        return None
    # A group far below its peak at the end is catching up.
    return (first, middle, peak) if end >= most * CAUGHT_UP else None


def _of_one_hop(every: Mapping[_Queue, list[Point]], context: Context) -> dict[_Queue, list[Point]]:
    """Return the queues with enough points, each at one hop."""
    series = {queue: points for queue, points in every.items() if len(points) >= FEWEST_POINTS}
    places: dict[tuple[str, int], _Queue] = {}
    # A relay in front of a broker has its name: the same requests are captured at both.
    for queue in sorted(series, key=lambda queue: (-len(series[queue]), queue)):
        place = context.broker(queue[0]), queue[1]
        of_place = places.setdefault(place, queue)[0]
        if of_place != queue[0] and context.is_master(of_place) and context.is_master(queue[0]):
            places[queue] = queue  # a broker of this name in another cluster
    return {queue: series[queue] for queue in places.values()}


def _lags(series: Collection[list[Point]]) -> tuple[list[int], list[int]]:
    """Return the times of all points, sorted, and the lag of all queues together at each."""
    # One pass: with many queues, a look at each queue for each time takes seconds.
    growths = Counter[int]()
    for points in series:
        before = points[0].lag
        for point in points:
            growths[point.time] += point.lag - before
            before = point.lag
    times = sorted(growths)
    begin = sum(points[0].lag for points in series)
    return times, [begin + grown for grown in accumulate(growths[time] for time in times)]


def _at(points: list[Point], time: int) -> Point:
    """Return the latest response for a queue up to a time, or the first one."""
    return points[max(bisect_right(points, time, key=attrgetter("time")) - 1, 0)]


def _key(row: ExchangeRecord) -> str | None:
    group, topic = row.group, row.topic
    if not group or not topic or group.startswith(SYSTEM_GROUPS):
        return None
    return joined_key(group, topic)


def _key_of_call(row: ExchangeRecord) -> str | None:
    name = row.request_name
    return _key(row) if name in RECEIVE_CALLS or name in _ENDS_OF_CALLS else None


RULE = DiagnosisRule(
    id="consumer-lag",
    severity=ProblemSeverity.WARNING,
    title="A consumer group falls behind",
    searched=(
        "consumer lag",
        "message accumulation",
        "diff total",
        "consumerProgress diff",
        "span too long, so do flow control",
    ),
    proof=(
        "In responses to pulls, maxOffset minus nextBeginOffset grows, and fewer messages are"
        " fetched than arrive; or maxOffset minus the offset that the group commits (15) grows. Or"
        " that offset does not move for a minute although the queue has more messages, whether or"
        " not it moves later. With gRPC or POP: more and more messages are received and not"
        " acknowledged, or received messages get older."
    ),
    explanation=(
        "Producers store messages faster than the group consumes them. A push consumer stops"
        " pulling a queue while 1000 of its messages wait in memory, so a slow consumer shows as"
        " infrequent pulls. A stuck queue is usually blocked by one message: an orderly consumer"
        " retries it in place, a concurrent one stores no offset beyond it."
    ),
    advice=(
        "Check what the consumer does for each message: slow calls, locks, a single thread."
        " consumeThreadMin and consumeThreadMax (default 20) set the threads,"
        " consumeMessageBatchMaxSize (default 1) the messages per call. More members help up to the"
        " number of queues. pullThresholdForQueue (default 1000 messages) and"
        " pullThresholdSizeForQueue (default 100 MiB) limit what waits in memory."
    ),
    grpc_explanation=(
        "Producers store messages faster than the group consumes them. A push consumer receives no"
        " more while its cache is full, so a slow consumer shows as infrequent ReceiveMessage"
        " calls. A received message stays invisible to other members until it is acknowledged or"
        " its invisible duration ends."
    ),
    grpc_advice=(
        "Check what the consumer does for each message: slow calls, locks, a single thread."
        " setConsumptionThreadCount (default 20) sets the threads of a push consumer. More members"
        " help, even more than the topic has queues, unless the group is FIFO."
        " setMaxCacheMessageCount (default 1024) and setMaxCacheMessageSizeInBytes (default 64 MiB)"
        " limit what waits in memory."
    ),
    grpc=COVERED,
    impact=Impact.NOT_CONSUMED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests=FETCHES, statuses={"answered"}, of_flow=True),
        Exchanges(key=_key, requests={COMMIT, CLAIM}, of_flow=True),
        Exchanges(key=_key, requests=_ENDS, responses={ResponseCode.SUCCESS}),
        Exchanges(key=_key_of_call, responses={OK}),
    ),
    references=(
        "apache/rocketmq#6600",
        "apache/rocketmq#5366",
        "apache/rocketmq-client-go#66",
        "apache/rocketmq-client-go#947",
    ),
    limits=(
        "Messages in a consumer's memory are visible only through the offsets it stores, which stay"
        " at the first message that is not consumed. The end of a queue is known as of its last"
        " pull. The rule does not use the offsets of gRPC and POP: if a client receives nothing"
        " more, its lag is not visible."
    ),
    needs={Need.PULLS},
    consequence_of={
        "client-hung",
        "offset-reset",
        "rebalance-storm",
        "reconsume-growth",
        "inconsistent-subscription",
        "cold-read-throttled",
        "orderly-lock-lost",
    },
    lasts=None,
)
