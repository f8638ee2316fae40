"""A consumer is alive and owns queues, but does not pull them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import COMMIT, Add, Flow, is_own_topic, state_in, whole
from ...names import listed
from ...problem import (
    Case,
    Evidence,
    Impact,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    asked,
    clock,
    clock_after,
    duration,
    end_of,
    shown,
    time_of,
)
from ...rule import DiagnosisRule, Exchanges, Fold
from .pulled import messages_behind

MAX_QUEUES: Final = 20_000
"""maximum queues, counted per client"""
QUIET: Final = 40_000_000_000
"""ns between the end of the last pull and a commit: a long poll takes 30 s at most"""
ENDED: Final = 15_000_000_000
"""maximum ns between the last commit and the end of the capture if the problem is ongoing"""


class _Owned(NamedTuple):
    """A queue as used by one connection of a client."""

    group: str
    client: str
    """`address:port`"""
    topic: str
    broker: str
    """`address:port`"""
    number: int


class _Use:
    """The last pull of a queue, and the last commit of its offset."""

    __slots__ = ("commit", "commit_time", "offset", "pending", "pull", "pull_end")

    def __init__(self) -> None:
        self.pull: Evidence | None = None
        self.pull_end = 0
        self.pending = False
        """a pull has no response yet, or its response was not captured"""
        self.commit: Evidence | None = None
        self.commit_time = 0
        self.offset = 0
        """the last committed offset"""


class _Silent(NamedTuple):
    """A queue that is committed but not pulled."""

    owned: _Owned
    use: _Use
    since: int
    """end of the last pull, ns"""
    waiting: int
    """messages that were sent to it and not committed"""


_Queue = tuple[str, str, str, str, int]
"""group, host of the client, topic, broker, queue"""


def _queue_of(owned: _Owned, context: Context) -> _Queue:
    """Return the queue, whichever connection its client uses."""
    broker = context.broker(owned.broker)
    return owned.group, host_of(owned.client), owned.topic, broker, owned.number


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._queues: dict[_Owned, _Use] = {}
        self._ends: dict[tuple[str, str, int], int] = {}
        """topic, broker address, queue -> offset after the last sent message"""

    def adder_of(self, flow: Flow) -> Add:
        if flow.request_code in SENDS:
            return self._add_sends
        return self._add_commits if flow.request_code == COMMIT else self._add_pulls

    def _add_sends(self, rows: Sequence[ExchangeRecord]) -> None:
        ends, topic, broker = self._ends, rows[0].topic or "", rows[0].server_address
        for row in rows:
            if row.queue_id is not None and row.queue_offset is not None:
                queue = topic, broker, row.queue_id
                if queue in ends or len(ends) < MAX_QUEUES:
                    ends[queue] = max(ends.get(queue, 0), row.queue_offset + 1)

    def _use_of(self, row: ExchangeRecord) -> _Use | None:
        if row.topic is None or row.queue_id is None or row.group is None:
            return None
        owned = _Owned(row.group, row.client_address, row.topic, row.server_address, row.queue_id)
        return self._queues.get(owned) or state_in(self._queues, owned, _Use, MAX_QUEUES)

    def _add_pulls(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            use = self._use_of(row)
            if use is None:
                continue
            # It may still wait at the broker, or its response was lost: nothing is proved.
            use.pending = use.pending or row.status == UNANSWERED
            ended = end_of(row)
            if use.pull is None or ended > use.pull_end:
                use.pull, use.pull_end = shown(row), ended

    def _add_commits(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            use = self._use_of(row)
            if use is None or row.queue_offset is None:
                continue
            time = time_of(row)
            if use.commit is None or time > use.commit_time:
                use.commit = asked(row, f"offset {row.queue_offset} committed again")
                use.commit_time, use.offset = time, row.queue_offset

    def cases(self, context: Context) -> Iterable[Case]:
        by_client: dict[tuple[str, str, str], list[_Silent]] = {}
        ends: dict[tuple[str, str, int], int] = {}
        for (topic, address, number), end in self._ends.items():
            name = topic, context.broker(address), number
            ends[name] = max(end, ends.get(name, 0))
        pulled = self._pulled(context)
        for owned, use in sorted(self._queues.items(), key=lambda item: item[0]):
            known = pulled.get(_queue_of(owned, context))
            if known is None or use.commit is None:
                continue
            since, pending = known
            # Commits prove that the client is alive and owns the queue: it commits only its own.
            if not pending and use.commit_time - since >= QUIET:
                client = context.client(owned.client)
                end = ends.get((owned.topic, context.broker(owned.broker), owned.number), 0)
                one = _Silent(owned, use, since, messages_behind(end, use.offset))
                by_client.setdefault((owned.group, client, owned.topic), []).append(one)
        with_topics = {
            (group, client) for group, client, topic in by_client if not is_own_topic(topic)
        }
        for (group, client, topic), silent in sorted(by_client.items()):
            if (group, client) in with_topics and is_own_topic(topic):
                continue  # the retry topic of a stuck consumer
            yield _case(group, client, topic, silent, context)

    def _pulled(self, context: Context) -> dict[_Queue, tuple[int, bool]]:
        """Return by client and queue when the last pull ended, and whether one may be pending."""
        last_pulls: dict[_Queue, tuple[int, bool]] = {}
        for owned, use in self._queues.items():
            if use.pull is None:
                continue
            # Not by connection: a client that pulls from a slave commits at the master.
            queue = _queue_of(owned, context)
            end, pending = last_pulls.get(queue, (0, False))
            last_pulls[queue] = max(end, use.pull_end), pending or use.pending
        return last_pulls


def _case(group: str, client: str, topic: str, silent: list[_Silent], context: Context) -> Case:
    tally = Tally()
    for use in silent:
        for evidence in (use.use.pull, use.use.commit):
            if evidence is not None:
                tally.add(evidence)
    since = max(use.since for use in silent)
    until = max(use.use.commit_time for use in silent)
    queues = counted(len(silent), "queue")
    brokers = {context.broker(use.owned.broker) for use in silent}
    waiting = sum(use.waiting for use in silent)
    wait = f": {counted(waiting, 'message')} wait{'s' if waiting == 1 else ''}" if waiting else ""
    case = tally.case(
        f"consumer {client} of group {group} owns {queues} of {topic} on {listed(brokers)} and has"
        f" not pulled since {clock(since)} UTC, although it committed offsets until"
        f" {clock_after(since, until)} ({duration(until - since)}){wait}",
        Subject(
            group=group,
            topic=topic,
            client=client,
            queue=silent[0].owned.number if len(silent) == 1 else None,
        ),
    )
    case.count = len(silent)
    case.impact = {Impact.NOT_CONSUMED: waiting}
    case.first_time = since
    case.details = [
        f"queue {use.owned.number}: last pull ended {clock(use.since)} UTC, offset"
        f" {use.use.offset:,} committed repeatedly"
        + (f", {counted(use.waiting, 'message')} stored behind it" if use.waiting else "")
        for use in sorted(silent, key=lambda use: use.owned)[:8]
    ]
    case.evidence.sort()
    if context.last_time is not None:
        goes_on = context.last_time - until <= ENDED
        case.state = ProblemState.GOING_ON if goes_on else ProblemState.OVER
    return case


RULE = DiagnosisRule(
    id="consumer-not-pulling",
    severity=ProblemSeverity.ERROR,
    title="A consumer owns queues and does not pull them",
    searched=(
        "consumer online but not consuming",
        "consumer suspend",
        "the cached message count exceeds the threshold, so do flow control",
        "pullThresholdForQueue",
    ),
    proof=(
        "A client commits the offset of a queue (UPDATE_CONSUMER_OFFSET) 40 s or longer after its"
        " last pull of that queue ended, and no pull is pending."
    ),
    explanation=(
        "A consumer commits the offsets of all queues that it owns every 5 s, and pulls each of"
        " them continuously: a long poll ends after 30 s at the latest. So this client owns the"
        " queues, which no other member may consume, but does not request their messages. Its"
        " program suspended it, or its listener is blocked and the client's cache is full (flow"
        " control)."
    ),
    advice=(
        "Check whether the program called suspend() or paused its listener container. Otherwise,"
        " take a thread dump (jstack) and look at the ConsumeMessageThread threads: a client stops"
        " pulling a queue when pullThresholdForQueue (default 1000) messages wait in it. If it does"
        " not resume, restart it to give its queues to other members."
    ),
    grpc="`grpc-consumer-stuck` covers consumers that send no requests.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests=PULLS | {COMMIT}, of_flow=True),
        Exchanges(key=whole, requests=SENDS, responses={ResponseCode.SUCCESS}, of_flow=True),
    ),
    limits="Queues without a captured pull, and POP consumers, which own no queues, are ignored.",
    needs={Need.PULLS, Need.GROUPS},
    rests_on_absence=True,
    consequence_of={"broker-gone", "broker-hung", "packets-unacknowledged"},
    lasts=None,
)
