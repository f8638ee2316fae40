"""A consumer waits at empty queues, one after the other, while another queue has messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import STORED_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import named_group
from ...need import Need
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, seconds
from ...refusals import counted, listed, only
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

MAX_PULLS: Final = 8_192
"""pulls of one group"""
LEAST: Final = 5_000_000_000
"""ns that a message waits for a pull"""
LEAST_PULLS: Final = 2
"""pulls before which messages waited so long"""
SLACK: Final = 50_000_000
"""ns that two pulls may overlap and still be one after the other"""
_MS: Final = 1_000_000


class _Pull(NamedTuple):
    """One pull that was answered."""

    begin: int
    end: int
    topic: str
    broker: str
    queue: int
    messages: int
    stored: int | None
    """when its first message was stored, ns by the broker's clock"""
    evidence: Evidence

    @property
    def place(self) -> tuple[str, str, int]:
        """The queue."""
        return self.topic, self.broker, self.queue


class _Starved(NamedTuple):
    """A pull whose messages had waited for it."""

    pull: _Pull
    waited: int
    """ns"""
    at: tuple[int, ...]
    """queues at which the client waited meanwhile"""


class _Fold(Fold):
    """Pulls of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._pulls: dict[str, list[_Pull]] = {}
        """by `address:port` of the client"""
        self._count = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            begin, end, queue = row.request_time, row.response_time, row.queue_id
            if begin is None or end is None or queue is None or self._count >= MAX_PULLS:
                continue
            self._count += 1
            stored = number_in(row.facts, STORED_MS)
            messages = row.message_count or 0
            one = _Pull(
                begin,
                end,
                row.topic or "",
                row.responder,
                queue,
                messages,
                None if stored is None else stored * _MS,
                asked(row, f"pull of queue {queue}, {counted(messages, 'message')}"),
            )
            self._pulls.setdefault(row.requester, []).append(one)

    def cases(self, context: Context) -> Iterable[Case]:
        by_client: dict[str, list[_Pull]] = {}
        for requester, pulls in self._pulls.items():
            by_client.setdefault(context.client(requester), []).extend(pulls)
        for client, pulls in sorted(by_client.items()):
            pulls.sort()
            by_queue: dict[tuple[str, str, int], list[_Starved]] = {}
            for one in _starved(pulls):
                by_queue.setdefault(one.pull.place, []).append(one)
            for found in by_queue.values():
                if len(found) >= LEAST_PULLS:
                    yield self._case(client, found, context)

    def _case(self, client: str, found: list[_Starved], context: Context) -> Case:
        tally = Tally.of(one.pull.evidence for one in found)
        pull = found[0].pull
        longest = max(one.waited for one in found)
        messages = sum(one.pull.messages for one in found)
        queues = Counter(queue for one in found for queue in one.at)
        at = f"{'queue' if len(queues) == 1 else 'queues'} {listed(map(str, queues))}"
        case = tally.case(
            f"consumer {client} of group {self.key} pulls one queue after the other: while it"
            f" waited at {at}, {counted(messages, 'message')} of queue {pull.queue} of"
            f" {pull.topic} waited up to {seconds(longest)} for its next pull",
            Subject(
                broker=only([context.broker(pull.broker)]),
                topic=pull.topic,
                group=self.key,
                client=client,
                queue=pull.queue,
            ),
        )
        return case


def _starved(pulls: list[_Pull]) -> Iterable[_Starved]:
    """Yield pulls, of one client and by time, whose messages waited while it waited elsewhere."""
    until = 0
    for one in pulls:
        if one.begin < until - SLACK:
            return  # several are under way at a time: none waits for another one
        until = max(until, one.end)
    last: dict[tuple[str, str, int], int] = {}
    for number, one in enumerate(pulls):
        before = last.get(one.place)
        last[one.place] = number
        if before is None or not one.messages or one.stored is None:
            continue
        since = max(pulls[before].end, one.stored)
        if one.begin - since < LEAST:
            continue
        waits = [
            (min(other.end, one.begin) - max(other.begin, since), other.queue)
            for other in pulls[before + 1 : number]
            if not other.messages and other.end > since
        ]
        if 2 * sum(length for length, _ in waits) >= one.begin - since:
            yield _Starved(one, one.begin - since, tuple(queue for _, queue in waits))


RULE = DiagnosisRule(
    id="pull-starved",
    severity=ProblemSeverity.WARNING,
    title="A consumer waits at empty queues while another queue has messages",
    searched=(
        "pull consumer slow",
        "messages delivered late by a pull consumer",
        "pullBlockIfNotFound",
        "PULL_NOT_FOUND 20 seconds",
    ),
    proof=(
        "A client never has two pulls under way at a time. Its pulls of empty queues wait for"
        " seconds, and its next pull of another queue returns messages that were stored 5 s or more"
        " before it, twice or more often."
    ),
    explanation=(
        "A long poll of an empty queue ends when a message comes or suspendTimeoutMillis is over."
        " Where one thread pulls one queue after the other, it waits so long at each empty queue,"
        " and messages in other queues wait with it. The more queues are empty, the later the"
        " messages of the others are delivered."
    ),
    advice=(
        "Use pulls without a wait (pull instead of pullBlockIfNotFound), with a short wait"
        " (brokerSuspendMaxTimeMillis, default 20000 ms), or each queue in a thread of its own."
        " DefaultLitePullConsumer and push consumers pull all their queues at a time."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=named_group,
            requests=PULLS,
            responses=frozenset((int(ResponseCode.SUCCESS), int(ResponseCode.PULL_NOT_FOUND))),
            with_facts=True,
            of_flow=True,
        ),
    ),
    references=("apache/rocketmq-client-go#1134", "apache/rocketmq-client-go#904"),
    limits=(
        "The store time of the first message of a pull is compared with the time of the capture. No"
        " message counts as waiting longer than since the pull of its queue before."
    ),
    needs=frozenset((Need.PULLS,)),
    consequence_of=frozenset(("client-hung",)),
    lasts=None,
)
