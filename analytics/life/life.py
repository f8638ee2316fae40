"""The life of one message: its steps in order of time, and what the capture cannot show.

Times of the capture order the steps; times of the clients' and brokers' clocks are only told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dissectors.quantities import duration_text
from dissectors.remoting.topic_names import DLQ_PREFIX
from dissectors.rows.message_record import (
    DELIVERED,
    PREPARED,
    REFUSED,
    RETURNED,
    SENT,
    STORED,
    MessageRecord,
)
from dissectors.rows.outcome import is_send

from .again import Again, record_of, why_again
from .hops import hop_words, inner_rows
from .lanes import KINDS, Lane, Parties
from .replicated import replicated_rows
from .search import Fetches, Found
from .unseen import Covered, Surroundings, unseen_of
from .words import step_words, times_text

__all__ = ["Covered", "Fetches", "Life", "LifeStep", "Surroundings", "life_of"]


class LifeStep(NamedTuple):
    """One step of a life: what happened, and between whom."""

    time: int
    """nanoseconds since the epoch, of the capture"""
    source: Lane
    """who spoke"""
    target: Lane
    """to whom"""
    words: str
    """what happened"""
    why: str
    """why this step came, where the step before says it; else empty"""
    row: MessageRecord
    """the row that says so"""


class Life(NamedTuple):
    """All that is known of one message."""

    name: str
    """unique key, else offset message id, else where it was"""
    topic: str | None
    """topic that it was sent to"""
    keys: str | None
    tags: str | None
    steps: list[LifeStep]
    lanes: list[Lane]
    """all who took part, side by side"""
    summary: list[str]
    """how long it took, how often it was stored and delivered"""
    unseen: list[str]
    """what the capture cannot show"""


def life_of(found: Found, around: Surroundings) -> Life:
    """Return the life of a message whose rows were found."""
    commits = [Covered(group, row) for (group, _), row in found.covered.items()]
    replicated = replicated_rows(found.rows, around.replications)
    rows = _in_order([*found.rows, *_first_commits(commits), *replicated])
    inner = inner_rows(rows)
    relays = {rows[outer].broker_address for outer in inner.values()}
    parties = Parties(rows, around.client_ids, relays)
    steps = []
    before = _Before()
    for place, row in enumerate(rows):
        outer = rows[inner[place]] if place in inner else None
        source, target = parties.ends(row, outer)
        why = before.why(row) if outer is None else hop_words(row, outer)
        steps.append(LifeStep(row.time or 0, source, target, step_words(row), why, row))
        if outer is None:
            before.add(row)
    lanes = sorted(
        dict.fromkeys(lane for step in steps for lane in (step.source, step.target)),
        key=lambda lane: KINDS.index(lane.kind),
    )
    own, caused = found.rows, {id(rows[place]) for place in inner}
    topic = _first(own, "original_topic") or _first(own, "topic")
    unseen = unseen_of(found, topic, around)
    if found.left_out:
        unseen.append(f"{found.left_out} more rows are not shown")
    return Life(
        _name_of(found),
        topic,
        _first(own, "keys"),
        _first(own, "tags"),
        steps,
        lanes,
        _summary([row for row in _in_order(own) if id(row) not in caused]),
        unseen,
    )


def _in_order(rows: Sequence[MessageRecord]) -> list[MessageRecord]:
    return sorted(rows, key=lambda row: (row.time or 0, row.packet or 0, row.place))


def _first_commits(commits: Sequence[Covered]) -> list[MessageRecord]:
    """Return each commit once: one may cover a message under the name and the address of a
    broker."""
    return list({id(one.row): one.row for one in commits}.values())


def _first(rows: Sequence[MessageRecord], name: str) -> str | None:
    return next((value for row in rows if (value := getattr(row, name)) is not None), None)


def _name_of(found: Found) -> str:
    row = found.rows[0]
    return (
        found.unique_key
        or row.offset_msg_id
        or f"{row.topic}, queue {row.queue_id}, offset {row.queue_offset}"
    )


def _is_send(row: MessageRecord) -> bool:
    return is_send(row.request_name)


class _Before:
    """What the steps so far say of why the next one comes."""

    def __init__(self) -> None:
        self._attempts = 0
        self._last_attempt: MessageRecord | None = None
        self._told: dict[tuple[str | None, object], MessageRecord] = {}

    def add(self, row: MessageRecord) -> None:
        """Take the next step."""
        group = row.consumer_group
        if _is_send(row):
            self._attempts += 1
            self._last_attempt = row
        if row.event in (DELIVERED, RETURNED):
            self._told[group, row.event] = row
        if row.event == DELIVERED:
            self._told[group, record_of(row)] = row

    def why(self, row: MessageRecord) -> str:
        """Return why a step comes, where a step before it says so."""
        if _is_send(row):
            last = self._last_attempt
            return "" if last is None else _why_sent_again(row, last, self._attempts + 1)
        if row.event != DELIVERED:
            return ""
        # of all steps before, these are what the answer depends on
        keys = (DELIVERED, RETURNED, record_of(row))
        told = [self._told.get((row.consumer_group, key)) for key in keys]
        again = why_again(row, [one for one in told if one is not None])
        return "" if again is None else _AGAIN[again]


_AGAIN: Final = {
    Again.RETURNED: "redelivered: it was returned",
    **dict.fromkeys(
        (Again.EXPIRED, Again.RETURNED_UNSEEN),
        "redelivered: returned, or not acknowledged in time (not captured)",
    ),
    **dict.fromkeys(
        (Again.OTHER_CLIENT, Again.OTHER_CONNECTION),
        "redelivered: another connection of the group fetched from this offset",
    ),
    Again.SAME: "redelivered: the same offset was fetched again",
    Again.STORED_AGAIN: "duplicate: stored more than once",
}


def _why_sent_again(row: MessageRecord, last: MessageRecord, attempt: int) -> str:
    number = f"attempt {attempt}"
    if last.event == REFUSED:
        return f"{number}: the previous one was refused, {last.response_name}"
    if last.event == SENT:
        end = f", its connection {last.end}" if last.end in ("reset", "closed") else ""
        return f"{number}: the previous one got no response{end}"
    answered = (last.time or 0) + 1000 * (last.latency_us or 0)
    if answered > (row.time or 0):
        took = duration_text(last.latency_us or 0)
        return f"{number}: the previous response took {took}"
    return f"{number}: the producer sent it again although it was stored"


def _summary(rows: Sequence[MessageRecord]) -> list[str]:
    """Return how long it took, and how often it was stored and delivered."""
    lines = []
    stored = [row for row in rows if row.event in (STORED, PREPARED)]
    delivered = [row for row in rows if row.event == DELIVERED]
    born = next((row.born_time for row in rows if row.born_time is not None), None)
    kept = next((row.store_time for row in rows if row.store_time is not None), None)
    parts = []
    if born is not None and stored and stored[0].time is not None:
        done = stored[0].time + 1000 * (stored[0].latency_us or 0)
        parts.append(f"stored {duration_text((done - born) // 1000)} after creation")
    elif born is not None and kept is not None:
        parts.append(f"stored {duration_text((kept - born) // 1000)} after creation (two clocks)")
    if born is not None and delivered and delivered[0].time is not None:
        took = duration_text((delivered[0].time - born) // 1000)
        parts.append(f"first delivered {took} after creation")
    if parts:
        lines.append(f"{', '.join(parts)} (producer clock)")
    groups: dict[str, int] = {}
    for row in delivered:
        name = row.consumer_group or "who asked"
        groups[name] = groups.get(name, 0) + 1
    told = [f"{times_text(times)} to {group}" for group, times in groups.items()]
    if len(stored) > 1:
        lines.append(f"stored {times_text(len(stored))}: consumers may receive each copy")
    if told:
        lines.append(f"delivered {', '.join(told)}")
    topics = dict.fromkeys(row.topic for row in rows if row.topic is not None)
    dead = [topic.removeprefix(DLQ_PREFIX) for topic in topics if topic.startswith(DLQ_PREFIX)]
    lines += [f"ended in the dead-letter queue of {group}" for group in dead]
    return lines
