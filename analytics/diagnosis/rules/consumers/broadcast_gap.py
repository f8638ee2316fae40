"""A member of a broadcasting group starts behind the offset at which the former one stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.remoting.row_facts.ext_fields import PULLS, offsets_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import named_group
from ...need import Need
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    clock,
    clock_after,
    end_of,
    place_of,
    time_of,
)
from ...refusals import counted, listed
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_PULLERS: Final = 5_000
"""members of queues of one group"""


class _Pulls:
    """The pulls of one queue over one connection."""

    __slots__ = ("begin", "end", "first", "first_offset", "last", "position")

    def __init__(self) -> None:
        self.first: Evidence | None = None
        self.first_offset = 0
        self.begin = 0
        """when it was pulled first, ns"""
        self.last: Evidence | None = None
        self.end = 0
        """when the last pull was asked or answered, ns"""
        self.position = 0
        """offset behind the last message that it got"""

    def add(self, row: ExchangeRecord, offset: int, following: int) -> None:
        """Take a pull: what it asked for, and where the next one goes on."""
        begin, end = time_of(row), end_of(row)
        if self.first is None or begin <= self.begin:
            first = asked(row, f"queue {row.queue_id} pulled from offset {offset}")
            if self.first is None or place_of(first) < place_of(self.first):
                self.first, self.first_offset, self.begin = first, offset, begin
        if self.last is None or end > self.end:
            self.end = end
            self.last = asked(row, f"queue {row.queue_id} pulled up to offset {following}")
        self.position = max(self.position, following)


class _Puller(NamedTuple):
    """A connection of a member, and the queue that it pulls."""

    topic: str
    broker: str
    queue: int
    client: str
    """`address:port`"""


class _Gap(NamedTuple):
    """What one member did not get and nobody else did."""

    broker: str
    queue: int
    before: _Pulls
    after: _Pulls


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._pulls: dict[_Puller, _Pulls] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if row.topic is None or row.queue_id is None or row.queue_offset is None:
                continue
            puller = _Puller(row.topic, row.responder, row.queue_id, row.requester)
            pulls = self._pulls.get(puller)
            if pulls is None:
                if len(self._pulls) >= MAX_PULLERS:
                    continue
                pulls = self._pulls[puller] = _Pulls()
            following = offsets_in(row.facts)[1]
            pulls.add(row, row.queue_offset, following or row.queue_offset)

    def cases(self, context: Context) -> Iterable[Case]:
        if self.key not in context.broadcasting:
            return
        queues: dict[tuple[str, str, int], list[tuple[str, _Pulls]]] = {}
        for puller, pulls in sorted(self._pulls.items(), key=lambda one: one[0]):
            queue = puller.topic, context.broker(puller.broker), puller.queue
            queues.setdefault(queue, []).append((context.client(puller.client), pulls))
        gaps: dict[tuple[str, str, str], list[_Gap]] = {}
        for (topic, broker, number), members in sorted(queues.items()):
            members.sort(key=lambda one: (one[1].begin, one[0]))
            for at, (client, pulls) in enumerate(members):
                before = members[:at]
                if not before or any(one.end >= pulls.begin for _, one in before):
                    continue  # another member lives: a new one starts where it wants
                former, last = max(before, key=lambda one: (one[1].end, one[0]))
                if former != client and pulls.first_offset > max(one.position for _, one in before):
                    gap = _Gap(broker, number, last, pulls)
                    gaps.setdefault((topic, former, client), []).append(gap)
        for (topic, former, client), several in sorted(gaps.items()):
            yield _case(self.key, topic, former, client, several)


def _case(group: str, topic: str, former: str, client: str, gaps: list[_Gap]) -> Case:
    tally = Tally()
    for one in gaps:
        for evidence in (one.before.last, one.after.first):
            if evidence is not None:
                tally.add(evidence)
    missed = sum(one.after.first_offset - one.before.position for one in gaps)
    stopped, started = max(one.before.end for one in gaps), min(one.after.begin for one in gaps)
    case = tally.case(
        f"broadcasting group {group} skipped {counted(missed, 'message')} of {topic}: member"
        f" {former} stopped at {clock(stopped)} UTC, and {client} started at"
        f" {clock_after(stopped, started)} behind them",
        Subject(
            topic=topic,
            group=group,
            client=client,
            broker=gaps[0].broker if len({one.broker for one in gaps}) == 1 else None,
            queue=gaps[0].queue if len(gaps) == 1 else None,
        ),
    )
    case.count = missed
    case.details = [
        f"queue {one.queue} of {one.broker}: offset {one.before.position:,} →"
        f" {one.after.first_offset:,}"
        for one in gaps[:8]
    ]
    case.details.append(f"brokers: {listed(one.broker for one in gaps)}")
    return case


RULE = DiagnosisRule(
    id="broadcast-gap",
    severity=ProblemSeverity.WARNING,
    title="A broadcasting group skips messages between two members",
    searched=(
        "broadcasting consumer lost messages after restart",
        "LocalFileOffsetStore",
        "rocketmq.client.localOffsetStoreDir",
        "MessageModel.BROADCASTING messages missing",
    ),
    proof=(
        "Heartbeats announce the group as BROADCASTING. A client with another id pulls a queue for"
        " the first time at a higher offset than the one at which its former members stopped. None"
        " of those pulls any more."
    ),
    explanation=(
        "Members of a broadcasting group keep their offsets in a file of their own"
        " (~/.rocketmq_offsets), named by their client id (address@instanceName). A member with"
        " another id, or on a disk without that file, has no offset and starts as"
        " consumeFromWhere says, by default at the end of the queue. What was stored while no"
        " member ran is delivered to none of them."
    ),
    advice=(
        "Give the consumer the same instanceName and address after each restart, and keep its"
        " offset file: -Drocketmq.client.localOffsetStoreDir (default ~/.rocketmq_offsets) on a"
        " volume that stays. Where every message counts, use clustering with a group for each"
        " member."
    ),
    grpc="gRPC has no broadcasting.",
    fold=_Fold,
    exchanges=(Exchanges(key=named_group, requests=PULLS, of_flow=True),),
    references=("apache/rocketmq#4016", "apache/rocketmq#9281", "apache/rocketmq-spring#458"),
    limits=(
        "A member that runs where nobody captured may have got the messages. Whether the messages"
        " match the subscription is not looked at."
    ),
    needs=frozenset((Need.PULLS, Need.HEARTBEATS)),
    rests_on_absence=True,
    lasts=None,
)
