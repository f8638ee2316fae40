"""A consumer waits at empty queues one by one while another queue has messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import STORED_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import named_group
from ...names import listed
from ...problem import (
    MS,
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    duration,
)
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

MAX_PULLS: Final = 8_192
"""maximum pulls of one group"""
LEAST: Final = 5_000_000_000
"""ns that a message waits for a pull"""
LEAST_PULLS: Final = 2
"""pulls preceded by such a wait"""
SLACK: Final = 50_000_000
"""ns by which consecutive pulls may overlap"""


class _Pull(NamedTuple):
    """One pull with a response."""

    begin: int
    end: int
    topic: str
    broker: str
    queue: int
    messages: int
    stored: int | None
    """store time of its first message, ns in the broker's clock"""
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
        """by client `address:port`"""
        self._count = 0

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            begin, end, queue = row.request_time, row.response_time, row.queue_id
            if begin is None or end is None or queue is None or self._count >= MAX_PULLS:
                continue
            self._count += 1
            stored = number_in(row.facts, STORED_MS)
            messages = row.message_count or 0
            pull = _Pull(
                begin,
                end,
                row.topic or "",
                row.server_address,
                queue,
                messages,
                None if stored is None else stored * MS,
                asked(row, f"pull of queue {queue}, {counted(messages, 'message')}"),
            )
            self._pulls.setdefault(row.client_address, []).append(pull)

    def cases(self, context: Context) -> Iterable[Case]:
        by_client: dict[str, list[_Pull]] = {}
        for client_address, pulls in self._pulls.items():
            by_client.setdefault(context.client(client_address), []).extend(pulls)
        for client, pulls in sorted(by_client.items()):
            pulls.sort(key=lambda pull: (pull.begin, pull.end, pull.place, pull.evidence))
            # a pull in two captures counts once
            pulls = list({(pull.begin, pull.end, pull.place): pull for pull in pulls}.values())
            by_queue: dict[tuple[str, str, int], list[_Starved]] = {}
            for starved in _starved(pulls):
                by_queue.setdefault(starved.pull.place, []).append(starved)
            for found in by_queue.values():
                if len(found) >= LEAST_PULLS:
                    yield self._case(client, found, context)

    def _case(self, client: str, starved_pulls: list[_Starved], context: Context) -> Case:
        tally = Tally.of(starved.pull.evidence for starved in starved_pulls)
        pull = starved_pulls[0].pull
        longest = max(starved.waited for starved in starved_pulls)
        messages = sum(starved.pull.messages for starved in starved_pulls)
        queues = Counter(queue for starved in starved_pulls for queue in starved.at)
        at = f"{'queue' if len(queues) == 1 else 'queues'} {listed(map(str, queues))}"
        return tally.case(
            f"consumer {client} of group {self.key} pulls its queues one by one: while it waited"
            f" for {at}, {counted(messages, 'message')} of queue {pull.queue} of {pull.topic}"
            f" waited up to {duration(longest)} for its next pull",
            Subject(
                broker=context.broker(pull.broker),
                topic=pull.topic,
                group=self.key,
                client=client,
                queue=pull.queue,
            ),
        )


def _starved(pulls: list[_Pull]) -> Iterable[_Starved]:
    """Yield sorted pulls of one client whose messages waited while it waited at other queues."""
    until = 0
    for pull in pulls:
        if pull.begin < until - SLACK:
            return  # parallel pulls do not wait for each other
        until = max(until, pull.end)
    last: dict[tuple[str, str, int], int] = {}
    for number, pull in enumerate(pulls):
        before = last.get(pull.place)
        last[pull.place] = number
        if before is None or not pull.messages or pull.stored is None:
            continue
        since = max(pulls[before].end, pull.stored)
        if pull.begin - since < LEAST:
            continue
        waits = [
            (min(other.end, pull.begin) - max(other.begin, since), other.queue)
            for other in pulls[before + 1 : number]
            if not other.messages and other.end > since
        ]
        # Otherwise the client did something else, such as processing messages.
        if 2 * sum(length for length, _ in waits) >= pull.begin - since:
            yield _Starved(pull, pull.begin - since, tuple(queue for _, queue in waits))


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
        "A client never has two pulls pending at a time. Its pulls of empty queues wait for"
        " seconds, and its next pull of another queue returns messages stored 5 s or more before"
        " it, at least twice."
    ),
    explanation=(
        "A long poll of an empty queue ends when a message arrives or suspendTimeoutMillis expires."
        " If one thread pulls one queue after another, it waits that long at each empty queue, and"
        " messages in other queues wait, too. The more queues are empty, the later it gets the"
        " messages of the others."
    ),
    advice=(
        "Pull without a wait (pull instead of pullBlockIfNotFound), with a short wait"
        " (brokerSuspendMaxTimeMillis, default 20000 ms), or each queue in its own thread."
        " Push consumers pull all their queues at the same time, DefaultLitePullConsumer up to"
        " pullThreadNums (default 20)."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=named_group,
            requests=PULLS,
            responses={ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND},
            with_facts=True,
            of_flow=True,
        ),
    ),
    references=("apache/rocketmq-client-go#1134", "apache/rocketmq-client-go#904"),
    limits=(
        "The store time of the first message of a pull is compared with the capture's clock. A"
        " wait is counted from the previous pull of the queue at the earliest."
    ),
    needs={Need.PULLS},
    consequence_of={"client-hung"},
    lasts=None,
)
