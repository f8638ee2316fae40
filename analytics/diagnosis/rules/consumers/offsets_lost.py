"""A broker returns a lower offset than the group had committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import COMMIT, SUCCESS, state_in, whole
from ...names import listed
from ...problem import (
    Case,
    Evidence,
    Impact,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    shown,
    time_of,
)
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from .offset_reset import RESETS

MAX_QUEUES: Final = 5_000
MAX_EVENTS: Final = 256
"""maximum commits and queries of one queue: the latest are kept"""
MAX_RESETS: Final = 1_000
MOST_NAMED: Final = 8
SETTLED: Final = 1_000_000_000
"""ns after which a oneway commit is in the broker's table"""
_QUERY: Final = int(RequestCode.QUERY_CONSUMER_OFFSET)


class _Queue(NamedTuple):
    """A queue of a topic at one broker, as used by a group."""

    group: str
    topic: str
    broker: str
    """`address:port`"""
    number: int


class _Event(NamedTuple):
    """A committed or a returned offset."""

    time: int
    is_query: bool
    offset: int
    evidence: Evidence


class _Loss(NamedTuple):
    """A commit, and the later response with a lower offset."""

    queue: _Queue
    before: _Event
    after: _Event


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._events: dict[_Queue, list[_Event]] = {}
        self._resets: list[tuple[int, str | None, str | None]] = []
        """time, group, topic"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code in RESETS:
            if len(self._resets) < MAX_RESETS:
                self._resets.append((time_of(row), row.group, row.topic))
            return
        if not row.group or not row.topic or row.queue_id is None or row.queue_offset is None:
            return
        queue = _Queue(row.group, row.topic, row.server_address, row.queue_id)
        events = self._events.get(queue) or state_in(self._events, queue, list, MAX_QUEUES)
        if events is None:
            return
        is_query = row.request_code == _QUERY
        what = f"{'offset' if is_query else 'commit'} {row.queue_offset} of queue {row.queue_id}"
        # A query matters at its response; a commit is oneway.
        evidence = shown(row, what) if is_query else asked(row, what)
        events.append(_Event(time_of(row), is_query, row.queue_offset, evidence))
        if len(events) > 2 * MAX_EVENTS:
            events.sort()
            del events[:-MAX_EVENTS]

    def cases(self, context: Context) -> Iterable[Case]:
        losses: dict[tuple[str, str], list[_Loss]] = {}
        for queue, events in sorted(self._events.items()):
            loss = self._loss_of(queue, sorted(events)[-MAX_EVENTS:])
            if loss is not None:
                broker = context.broker(queue.broker)
                losses.setdefault((broker, queue.group), []).append(loss)
        for (broker, group), several in sorted(losses.items()):
            yield _case(broker, group, several)

    def _loss_of(self, queue: _Queue, events: list[_Event]) -> _Loss | None:
        """Return the first response below the preceding commit, unless the offsets were reset."""
        commits: list[_Event] = []
        for event in events:
            if not event.is_query:
                commits.append(event)
                continue
            settled = [commit for commit in commits if commit.time <= event.time - SETTLED]
            if not settled:
                continue
            # A commit of the last second may not be stored yet; a later, lower
            # commit is from a consumer that rewound by itself.
            commit = min([settled[-1], *commits[len(settled) :]], key=lambda item: item.offset)
            if event.offset < commit.offset:
                if not self._was_reset(queue, commit.time, event.time):
                    return _Loss(queue, commit, event)
                # After a reset, the earlier commits are no measure any more.
                commits.clear()
        return None

    def _was_reset(self, queue: _Queue, since: int, until: int) -> bool:
        return any(
            since <= time <= until and group in (None, queue.group) and topic in (None, queue.topic)
            for time, group, topic in self._resets
        )


def _span(offsets: Sequence[int]) -> str:
    least, most = min(offsets), max(offsets)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _case(broker: str, group: str, losses: list[_Loss]) -> Case:
    tally = Tally()
    for loss in losses:
        tally.add(loss.before.evidence, count=0)
        tally.add(loss.after.evidence, count=loss.before.offset - loss.after.offset)
    topics = sorted({loss.queue.topic for loss in losses})
    had = [loss.before.offset for loss in losses]
    has = [loss.after.offset for loss in losses]
    offsets = "offset" if min(had) == max(had) else "offsets"
    case = tally.case(
        f"{broker} lost offsets of group {group} in {counted(len(losses), 'queue')} of"
        f" {listed(topics)}: {offsets} {_span(had)} became {_span(has)}; up to"
        f" {counted(sum(had) - sum(has), 'message')} redelivered",
        Subject(
            broker=broker,
            group=group,
            topic=topics[0] if len(topics) == 1 else None,
            queue=losses[0].queue.number if len(losses) == 1 else None,
        ),
    )
    case.details = [
        f"queue {loss.queue.number} of {loss.queue.topic}: offset {loss.before.offset:,} →"
        f" {loss.after.offset:,}"
        for loss in losses[:MOST_NAMED]
    ]
    return case


RULE = DiagnosisRule(
    id="offsets-lost",
    severity=ProblemSeverity.ERROR,
    title="A broker lost the offsets that a group had committed",
    searched=(
        "messages consumed again after broker restart",
        "consumerOffset.json lost",
        "consumer offset went back to 0",
    ),
    proof=(
        "A response to QUERY_CONSUMER_OFFSET (14) has a lower offset than the group committed"
        " before with UPDATE_CONSUMER_OFFSET (15), without a reset (220, 222) in between."
    ),
    explanation=(
        "A broker keeps committed offsets in memory and writes them to config/consumerOffset.json"
        " every 5 s. After a crash, with a lost or older disk, or on another machine, it has older"
        " offsets or none. Consumers continue at its offset and get the messages in between again."
    ),
    advice=(
        "Check why the broker lost config/consumerOffset.json: a crash, a replaced disk,"
        " storePathRootDir on a volume that is not persistent. To skip messages that were already"
        " consumed, reset the group to the time of the loss: mqadmin resetOffsetByTime. Make"
        " consumers idempotent."
    ),
    grpc=NO_OFFSETS,
    impact=Impact.REDELIVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={_QUERY}, responses={SUCCESS}),
        Exchanges(key=whole, requests={COMMIT} | RESETS),
    ),
    limits=(
        "Visible only if commits and queries went to the same address. Offsets committed by pulls"
        " are not compared. A reset that was not captured looks the same."
    ),
    needs={Need.GROUPS},
    consequence_of={"broker-gone"},
    lasts=None,
)
