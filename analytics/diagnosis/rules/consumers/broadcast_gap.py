"""A member of a broadcasting group starts behind the offset at which its predecessor stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.row_facts.ext_fields import PULLS, following_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import named_group, state_in
from ...names import listed, only
from ...problem import (
    Case,
    Evidence,
    Impact,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    clock,
    clock_after,
    end_of,
    time_of,
)
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_PULLERS: Final = 5_000
"""maximum members and queues of one group"""


class _Pulls:
    """The pulls of one queue over one connection."""

    __slots__ = ("_last", "begin", "end", "first", "first_offset", "position")

    def __init__(self) -> None:
        self.first: Evidence | None = None
        self.first_offset = 0
        self.begin = 0
        """first pull, ns"""
        self._last: tuple[ExchangeRecord, int] | None = None
        """the last pull, and the offset after it"""
        self.end = 0
        """request or response of the last pull, ns"""
        self.position = 0
        """offset after its last received message"""

    def add(self, row: ExchangeRecord, offset: int, following: int) -> None:
        """Add a pull: its offset, and the next one."""
        begin, end = time_of(row), end_of(row)
        if self.first is None or begin <= self.begin:
            first = asked(row, f"queue {row.queue_id} pulled from offset {offset}")
            if self.first is None or first < self.first:
                self.first, self.first_offset, self.begin = first, offset, begin
        if self._last is None or end > self.end:
            self.end = end
            self._last = row, following
        if following > self.position:
            self.position = following

    @property
    def last(self) -> Evidence | None:
        """The last pull, built on demand because almost every pull is the last one for a while."""
        if self._last is None:
            return None
        row, following = self._last
        return asked(row, f"queue {row.queue_id} pulled up to offset {following}")


class _Puller(NamedTuple):
    """A connection of a member, and a queue that it pulls."""

    topic: str
    broker: str
    queue: int
    client: str
    """`address:port`"""


class _Gap(NamedTuple):
    """Messages that one member missed and no other member received."""

    broker: str
    queue: int
    before: _Pulls
    """of the member that stopped last"""
    reached: int
    """offset after the last message that any former member received"""
    after: _Pulls

    @property
    def missed(self) -> int:
        """The number of messages."""
        return self.after.first_offset - self.reached


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._pulls: dict[_Puller, _Pulls] = {}

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if row.topic is None or row.queue_id is None or row.queue_offset is None:
                continue
            puller = _Puller(row.topic, row.server_address, row.queue_id, row.client_address)
            pulls = self._pulls.get(puller) or state_in(self._pulls, puller, _Pulls, MAX_PULLERS)
            if pulls is not None:
                following = following_in(row.facts)
                pulls.add(row, row.queue_offset, following or row.queue_offset)

    def cases(self, context: Context) -> Iterable[Case]:
        # Members of other groups hand a queue over with its stored offset, so nothing is skipped.
        if self.key not in context.broadcasting:
            return
        queues: dict[tuple[str, str, int], list[tuple[str, _Pulls]]] = {}
        for puller, pulls in sorted(self._pulls.items(), key=lambda item: item[0]):
            queue = puller.topic, context.broker(puller.broker), puller.queue
            queues.setdefault(queue, []).append((context.client(puller.client), pulls))
        gaps: dict[tuple[str, str, str], list[_Gap]] = {}
        for (topic, broker, number), members in sorted(queues.items()):
            members.sort(key=lambda item: (item[1].begin, item[0]))
            for at, (client, pulls) in enumerate(members):
                before = members[:at]
                if not before or any(one.end >= pulls.begin for _, one in before):
                    continue  # another member is active: a new one starts at its own position
                former, last = max(before, key=lambda item: (item[1].end, item[0]))
                # Broadcasting members store offsets in a local file: a new container has none, and
                # starts at the end of the queue by default.
                reached = max(pulls.position for _, pulls in before)
                if pulls.first_offset > reached:
                    gap = _Gap(broker, number, last, reached, pulls)
                    gaps.setdefault((topic, former, client), []).append(gap)
        for (topic, former, client), several in sorted(gaps.items()):
            yield _case(self.key, topic, former, client, several)


def _case(group: str, topic: str, former: str, client: str, gaps: list[_Gap]) -> Case:
    tally = Tally()
    for gap in gaps:
        for evidence in (gap.before.last, gap.after.first):
            if evidence is not None:
                tally.add(evidence)
    missed = sum(gap.missed for gap in gaps)
    stopped, started = max(gap.before.end for gap in gaps), min(gap.after.begin for gap in gaps)
    again = "started again" if former == client else f"and {client} started"
    case = tally.case(
        f"broadcasting group {group} skipped {counted(missed, 'message')} of {topic}: member"
        f" {former} stopped at {clock(stopped)} UTC{' and' if former == client else ','} {again} at"
        f" {clock_after(stopped, started)} behind them",
        Subject(
            topic=topic,
            group=group,
            client=client,
            broker=only(gap.broker for gap in gaps),
            queue=gaps[0].queue if len(gaps) == 1 else None,
        ),
    )
    case.count = missed
    case.details = [
        f"queue {gap.queue} of {gap.broker}: offset {gap.reached:,} → {gap.after.first_offset:,}"
        for gap in gaps[:8]
    ]
    case.details.append(f"brokers: {listed(gap.broker for gap in gaps)}")
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
        "Heartbeats announce the group as BROADCASTING. A client with another id, or with the same"
        " id over a new connection, starts pulling a queue at a higher offset than the one at which"
        " its former members stopped. None of the former members still pulls."
    ),
    explanation=(
        "Members of a broadcasting group keep their offsets in a local file (~/.rocketmq_offsets),"
        " named by their client id (address@instanceName). A member with another id, or without"
        " that file, has no offset and starts according to consumeFromWhere, by default at the end"
        " of the queue. Messages that were stored while no member ran are delivered to none of"
        " them."
    ),
    advice=(
        "Give the consumer the same instanceName and address after each restart, and keep its"
        " offset file: -Drocketmq.client.localOffsetStoreDir (default ~/.rocketmq_offsets) on a"
        " persistent volume. If every message counts, use clustering with a group for each member."
    ),
    grpc="Not covered: gRPC has no broadcasting.",
    impact=Impact.SKIPPED,
    fold=_Fold,
    exchanges=(Exchanges(key=named_group, requests=PULLS, of_flow=True),),
    references=("apache/rocketmq#4016", "apache/rocketmq#9281", "apache/rocketmq-spring#458"),
    limits=(
        "A member outside the capture may have received the messages. The rule does not check"
        " whether the messages match the subscription."
    ),
    needs={Need.PULLS, Need.HEARTBEATS},
    rests_on_absence=True,
    lasts=None,
)
