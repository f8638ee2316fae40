"""A queue ends before its former end: the broker lost stored messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from dissectors.quantities import counted

from ...context import Context, Need
from ...problem import Case, Impact, ProblemSeverity, Subject, Tally, clock, clock_after
from ...rule import NO_OFFSETS, DiagnosisRule, Fold
from .pulled import Point, Series

TRUNCATED: Final = "queue-truncated"


class _Drop(NamedTuple):
    """Two responses for one queue, the later one with a lower end."""

    queue: int
    before: Point
    after: Point
    confirmed: bool
    """a further response also has an end below that of the first one"""


def truncated_queues(
    topic: str, pulled: Mapping[tuple[str, int], Series], context: Context
) -> Iterable[Case]:
    """Return a case per broker whose queues have a lower end than before.

    `pulled`: (broker address, queue) -> pulls of one group and topic.
    """
    drops: dict[str, list[_Drop]] = {}
    for (address, queue), series in sorted(pulled.items()):
        drop = _drop_of(queue, series.ordered())
        if drop is not None:
            drops.setdefault(address, []).append(drop)
    for address, several in drops.items():
        yield _case(several, topic, context.broker(address))


def _drop_of(queue: int, points: list[Point]) -> _Drop | None:
    """Return the first drop, or None."""
    # Behind a proxy, one address has queues of several brokers. Clocks of two captures may differ,
    # so the order of their responses is unknown.
    comparable: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        comparable.setdefault((point.capture, point.broker_name), []).append(point)
    for alike in comparable.values():
        for number, (before, after) in enumerate(pairwise(alike)):
            if after.end < before.end:
                later = alike[number + 2 : number + 3]
                confirmed = any(point.end < before.end for point in later)
                return _Drop(queue, before, after, confirmed)
    return None


def _case(drops: list[_Drop], topic: str, broker: str) -> Case:
    tally = Tally()
    for drop in drops:
        tally.add(drop.before.evidence(drop.queue), count=drop.before.end - drop.after.end)
        tally.add(drop.after.evidence(drop.queue), count=0)
    first = min(drops, key=lambda drop: drop.before.time)
    one = len(drops) == 1
    had, has = sum(drop.before.end for drop in drops), sum(drop.after.end for drop in drops)
    queues_text = f"queue {drops[0].queue}" if one else f"{len(drops)} queues"
    together = "" if one else " together"
    case = tally.case(
        f"{broker} lost stored messages: {queues_text} of {topic} ended{together} at offset {had:,}"
        f" at {clock(first.before.time)}, and at {has:,} at"
        f" {clock_after(first.before.time, first.after.time)} UTC:"
        f" {counted(had - has, 'message is', 'messages are')} gone",
        Subject(broker=broker, topic=topic, queue=drops[0].queue if one else None),
    )
    if not any(drop.confirmed for drop in drops):
        case.doubt("only one response to a pull shows it")
    case.rule = TRUNCATED
    case.details = [
        f"queue {drop.queue}: ended at {drop.before.end:,}, then at {drop.after.end:,}"
        for drop in drops[:8]
    ]
    return case


RULE = DiagnosisRule(
    id=TRUNCATED,
    severity=ProblemSeverity.ERROR,
    title="A broker has lost messages that it had stored",
    searched=("messages lost after restart", "maxOffset smaller than before", "empty store"),
    proof=(
        "In responses to pulls of one queue at one broker, maxOffset is lower than in an earlier"
        " response. In a store that keeps its messages, it only grows."
    ),
    explanation=(
        "Each stored message makes its queue longer, and deleting old messages does not make it"
        " shorter. So messages that the broker had confirmed are gone. It came back with an empty"
        " or older disk, or a crash left files half written (ASYNC_FLUSH loses data not yet on"
        " disk). Or another machine took over its address. Or the topic was deleted and created"
        " again. Messages that no group had consumed are lost. Consumers request offsets that no"
        " longer exist, and may skip messages until they are restarted."
    ),
    advice=(
        "Check whether the broker's disk or storePathRootDir changed, and look in its log for the"
        " recovery at its start. If messages must survive a crash: flushDiskType=SYNC_FLUSH"
        " (default ASYNC_FLUSH), brokerRole=SYNC_MASTER with a slave (default ASYNC_MASTER)."
        " Compare the offsets of groups with mqadmin consumerProgress."
    ),
    grpc=NO_OFFSETS,
    impact=Impact.LOST,
    fold=Fold,
    found_by="consumer-lag",
    limits=(
        "Visible only if a consumer pulls before and after, from the same address, while the queue"
        " is shorter than before, in one capture (clocks of two captures may differ). A slave that"
        " takes over with fewer messages has another address and is not compared, nor is POP."
    ),
    needs={Need.PULLS},
    consequence_of={"broker-gone"},
    lasts=None,
)
