"""A queue ends before the place where it ended already: the broker lost what it had stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from ...context import Context
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, clock, clock_after
from ...refusals import counted
from ...rule import NO_OFFSETS, DiagnosisRule, Fold
from .pulled import Point, Series

BEGAN_ANEW: Final = "queue-began-anew"


class _Drop(NamedTuple):
    """Two answers of one queue, the later one with the earlier end."""

    queue: int
    before: Point
    after: Point
    confirmed: bool
    """a further answer has an end below that of the first one, too"""


def began_anew(
    topic: str, pulled: Mapping[tuple[str, int], Series], context: Context
) -> Iterable[Case]:
    """Return a case for each broker whose queues ended earlier than before.

    `pulled`: (address of the broker, queue) -> what was pulled from it by one group of one topic.
    """
    drops: dict[str, list[_Drop]] = {}
    for (address, queue), series in sorted(pulled.items()):
        found = _drop_of(queue, series.ordered())
        if found is not None:
            drops.setdefault(address, []).append(found)
    for address, several in drops.items():
        yield _case(several, topic, context.broker(address))


def _drop_of(queue: int, points: list[Point]) -> _Drop | None:
    """Return the first drop.

    Answers of two brokers, as from a proxy, are not compared, nor those of two captures: the
    clocks of their hosts may differ.
    """
    comparable: dict[tuple[str, str], list[Point]] = {}
    for one in points:
        comparable.setdefault((one.capture, one.broker_name), []).append(one)
    for alike in comparable.values():
        for number, (before, after) in enumerate(pairwise(alike)):
            if after.end < before.end:
                later = alike[number + 2 : number + 3]
                confirmed = any(one.end < before.end for one in later)
                return _Drop(queue, before, after, confirmed)
    return None


def _case(drops: list[_Drop], topic: str, broker: str) -> Case:
    tally = Tally()
    for drop in drops:
        tally.add(drop.before.evidence(drop.queue), count=drop.before.end - drop.after.end)
        tally.add(drop.after.evidence(drop.queue), count=0)
    first = min(drops, key=lambda one: one.before.time)
    one = len(drops) == 1
    had, has = sum(drop.before.end for drop in drops), sum(drop.after.end for drop in drops)
    what = f"queue {drops[0].queue}" if one else f"{len(drops)} queues"
    together = "" if one else " together"
    case = tally.case(
        f"{broker} lost stored messages: {what} of {topic} ended{together} at offset {had:,} at"
        f" {clock(first.before.time)}, and at {has:,} at"
        f" {clock_after(first.before.time, first.after.time)} UTC:"
        f" {counted(had - has, 'message is', 'messages are')} gone",
        Subject(broker=broker, topic=topic, queue=drops[0].queue if one else None),
    )
    if not any(drop.confirmed for drop in drops):
        case.confidence = Confidence.LIKELY
        case.reason = "only one answer to a pull shows it"
    case.rule = BEGAN_ANEW
    case.details = [
        f"queue {drop.queue}: ended at {drop.before.end:,}, then at {drop.after.end:,}"
        for drop in drops[:8]
    ]
    return case


RULE = DiagnosisRule(
    id=BEGAN_ANEW,
    severity=ProblemSeverity.ERROR,
    title="A broker has lost messages that it had stored",
    searched=("messages lost after restart", "maxOffset smaller than before", "empty store"),
    proof=(
        "Answers to pulls of one queue at one broker: maxOffset is smaller than in an earlier"
        " answer. In a store that keeps its messages it only grows."
    ),
    explanation=(
        "Each stored message makes its queue longer, and messages that are deleted by age do not"
        " make it shorter. So messages that the broker had confirmed are gone. It came back with an"
        " empty or older disk, or with files that a crash left half written (ASYNC_FLUSH loses what"
        " was not on disk). Or another machine took over its address. Or somebody deleted the topic"
        " and created it again. What no group had consumed is lost. Consumers ask for offsets that"
        " the queue does not have any more, and may skip messages until they are restarted."
    ),
    advice=(
        "Compare the broker's disk and storePathRootDir with before; look in its log for the"
        " recovery at its start. Where messages must survive a crash: flushDiskType=SYNC_FLUSH"
        " (default ASYNC_FLUSH), brokerRole=SYNC_MASTER with a slave (default ASYNC_MASTER)."
        " Compare the offsets of groups with mqadmin consumerProgress."
    ),
    grpc=NO_OFFSETS,
    fold=Fold,
    found_by="consumer-lag",
    limits=(
        "It is seen only where a consumer pulls before and after, from the same address, and while"
        " the queue is shorter than before; in one capture, as clocks of two may differ. A slave"
        " that takes over with fewer messages has another address and is not compared. POP says no"
        " offsets. Judged with consumer-lag, by the same state."
    ),
    needs=frozenset((Need.PULLS,)),
    consequence_of=frozenset(("broker-gone",)),
    lasts=None,
)
