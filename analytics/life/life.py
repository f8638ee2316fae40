"""Trace of one message: its steps in order of time, and what the capture cannot show.

Capture times order the steps; times of client and broker clocks are only displayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from dissectors.broker_store.group_offsets import offsets_of
from dissectors.broker_store.store_folder import StoreFolder
from dissectors.decode.decoded_log import Manifest
from dissectors.decode.totals import DecodeStats
from dissectors.endpoint import split_endpoint
from dissectors.quantities import duration_text
from dissectors.remoting.topic_names import DLQ_PREFIX
from dissectors.replication.progress import Replication, passed_at
from dissectors.rows.message_record import (
    DELIVERED,
    MESSAGE_COLUMNS,
    PREPARED,
    REFUSED,
    RETURNED,
    SENT,
    STORED,
    MessageRecord,
)
from dissectors.rows.outcome import is_send
from dissectors.rows.tables import encodable_value
from dissectors.times import text_of_time

from .again import Again, hop_words, inner_rows, record_of, why_again
from .lanes import CONNECT_FAILED, KINDS, REPLICATED, Lane, Parties
from .search import Found, MessageSearch
from .send_attempts import StitchedSends
from .unseen import (
    Covered,
    LastReturn,
    Surroundings,
    copies_on_disk,
    last_returns,
    stored_anyway,
    unseen_of,
)
from .words import fault_words, step_words, times_text

_HA_PORTS = (1, 3)
"""HA port minus the port of the send: the latter may be the VIP channel"""


def replicated_rows(
    rows: Sequence[MessageRecord], replications: Sequence[Replication]
) -> Iterator[MessageRecord]:
    """Return a row for each replication of a stored record of the message to a slave."""
    for row in rows:
        if row.event not in (STORED, PREPARED) or row.commit_log_offset is None:
            continue
        for replication in replications:
            if not _is_of(replication.master, row.server_address):
                continue
            when = passed_at(replication.transferred, row.commit_log_offset)
            if when is None or (replication.first_offset or 0) > row.commit_log_offset:
                continue  # not transferred in the capture, or before it
            reported = passed_at(replication.reported, row.commit_log_offset)
            yield msgspec.structs.replace(
                row,
                event=REPLICATED,
                conversation=replication.conversation,
                packet=None,
                time=when,
                client_address=replication.slave,
                client_id=None,
                latency_us=None
                if reported is None or reported < when
                else (reported - when) // 1000,
                request_name=None,
                response_code=None,
                response_name=None,
                remark=None,
            )


def _is_of(master: str, broker: str) -> bool:
    """Return whether an HA connection belongs to the broker at this address."""
    ha, listen = split_endpoint(master), split_endpoint(broker)
    if ha is None or listen is None or ha[0] != listen[0]:
        return False
    return ha[1] - listen[1] in _HA_PORTS


class TraceStep(NamedTuple):
    """One step of a trace: what happened, and between which parties."""

    time: int
    """nanoseconds since the epoch, in capture time"""
    source: Lane
    """sender"""
    target: Lane
    """receiver"""
    words: str
    """what happened"""
    why: str
    """cause of this step if an earlier step shows it; otherwise empty"""
    row: MessageRecord
    """the row of this step"""


class MessageTrace(NamedTuple):
    """The trace of one message."""

    name: str
    """unique key, or offset message id, or its place"""
    topic: str | None
    """original topic"""
    keys: str | None
    tags: str | None
    steps: list[TraceStep]
    lanes: list[Lane]
    """all parties, in display order"""
    summary: list[str]
    """duration, and number of stored copies and deliveries"""
    unseen: list[str]
    """what the capture cannot show"""


def lives_found(
    search: MessageSearch,
    inputs: Sequence[DecodeStats | Manifest],
    stores: Sequence[StoreFolder] = (),
) -> list[MessageTrace]:
    """Return the traces of the matching messages in some inputs, which are read."""
    around = Surroundings(
        search.relays.proven(),
        search.fetches,
        search.orderly,
        search.senders_seen,
        search.client_ids,
        sum(input_.gap_bytes for input_ in inputs),
        sum(sum(input_.not_decoded.values()) for input_ in inputs),
        [replication for input_ in inputs for replication in input_.replications],
        stores,
    )
    sends = search.attempts.stitched()
    return [_life_of(found, around, sends) for found in search.messages]


def _life_of(found: Found, around: Surroundings, sends: StitchedSends) -> MessageTrace:
    """Return the trace of a message from its rows."""
    commits = [Covered(group, row) for (group, _), row in found.covered.items()]
    replicated = replicated_rows(found.rows, around.replications)
    rows = _in_order(
        [*found.rows, *_first_commits(commits), *replicated, *sends.failed_connects(found.rows)]
    )
    inner = inner_rows(rows, around.relays)
    relays = {rows[outer].server_address for outer in inner.values()}
    parties = Parties(rows, around.client_ids, relays)
    steps = []
    before = _Before(sends)
    for place, row in enumerate(rows):
        # a proxy or relay caused this step, so it explains no later one
        outer = rows[inner[place]] if place in inner else None
        source, target = parties.ends(row, outer)
        why = before.why(row) if outer is None else hop_words(row, outer)
        fault = found.faults.get((row.capture, row.request_packet))
        words = step_words(row) if fault is None else f"{step_words(row)}{fault_words(fault)}"
        steps.append(TraceStep(row.time or 0, source, target, words, why, row))
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
        unseen.append(f"{found.left_out} more rows omitted")
    return MessageTrace(
        _name_of(found),
        topic,
        _first(own, "keys"),
        _first(own, "tags"),
        steps,
        lanes,
        _summary([row for row in _in_order(own) if id(row) not in caused], around.orderly)
        + stored_anyway(own)
        + _of_stores(own, around.stores),
        unseen,
    )


def _in_order(rows: Sequence[MessageRecord]) -> list[MessageRecord]:
    return sorted(rows, key=lambda row: (row.time or 0, row.packet or 0, row.place))


def _first_commits(commits: Sequence[Covered]) -> list[MessageRecord]:
    """Return each commit once: one may cover a message under the broker's name and address."""
    return list({id(commit.row): commit.row for commit in commits}.values())


def _first(rows: Sequence[MessageRecord], name: str) -> str | None:
    return next((value for row in rows if (value := getattr(row, name)) is not None), None)


def _name_of(found: Found) -> str:
    row = found.rows[0]
    if name := found.unique_key or row.offset_msg_id:
        return name
    if row.queue_offset is None:  # refused, or without a response
        return f"without an id (packet {row.packet})"
    return f"{row.topic}, queue {row.queue_id}, offset {row.queue_offset}"


class _Before:
    """The state from earlier steps that explains the next one."""

    def __init__(self, sends: StitchedSends) -> None:
        self._sends = sends
        self._attempts = 0
        """number of the last attempt"""
        self._last_attempt: MessageRecord | None = None
        self._deliveries: dict[tuple[str | None, object], MessageRecord] = {}

    def add(self, row: MessageRecord) -> None:
        """Add the next step."""
        group = row.consumer_group
        if is_send(row.request_name):
            self._attempts = self._number(row)
            self._last_attempt = row
        if row.event in (DELIVERED, RETURNED):
            self._deliveries[group, row.event] = row
        if row.event == DELIVERED:
            self._deliveries[group, record_of(row)] = row

    def _number(self, row: MessageRecord) -> int:
        """Return the number of an attempt; sends that cannot be stitched are counted."""
        return self._sends.number(row) or self._attempts + 1

    def why(self, row: MessageRecord) -> str:
        """Return the cause of a step if an earlier step shows it."""
        if is_send(row.request_name):
            last, number = self._last_attempt, self._number(row)
            if last is None:
                return ""
            if number == self._attempts:
                return f"attempt {number}, captured twice"
            return _why_sent_again(row, last, number)
        if row.event != DELIVERED:
            return ""
        # the only state of earlier steps on which the result depends
        keys = (DELIVERED, RETURNED, record_of(row))
        deliveries = [self._deliveries.get((row.consumer_group, key)) for key in keys]
        again = why_again(row, [delivery for delivery in deliveries if delivery is not None])
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
    if last.event == CONNECT_FAILED:
        return f"{number}: the connection of the previous one failed"
    if last.event == REFUSED:
        return f"{number}: the previous one was refused, {last.response_name}"
    if last.event == SENT:
        end = f", its connection {last.end}" if last.end in ("reset", "closed") else ""
        return f"{number}: the previous one got no response{end}"
    answered = (last.time or 0) + 1000 * (last.latency_us or 0)
    if answered > (row.time or 0):  # the producer did not wait for it
        took = duration_text(last.latency_us or 0)
        return f"{number}: the previous response took {took}"
    return f"{number}: the producer sent it again although it was stored"


def _summary(rows: Sequence[MessageRecord], orderly: Collection[str]) -> list[str]:
    """Return the duration, and the number of stored copies and deliveries."""
    lines = []
    stored = [row for row in rows if row.event in (STORED, PREPARED)]
    delivered = [row for row in rows if row.event == DELIVERED]
    # The creation time is by the producer's clock, the store time by the broker's, all others are
    # by the capture's.
    created = next((row.born_time for row in rows if row.born_time is not None), None)
    kept = next((row.store_time for row in rows if row.store_time is not None), None)
    parts = []
    if created is not None and stored and stored[0].time is not None:
        done = stored[0].time + 1000 * (stored[0].latency_us or 0)
        # A consumer may receive it before the producer gets the response.
        took = duration_text((done - created) // 1000)
        parts.append(f"confirmed as stored {took} after creation")
    elif created is not None and kept is not None:
        took = duration_text((kept - created) // 1000)
        lines.append(f"stored {took} after creation (producer and broker clocks)")
    if created is not None and delivered and delivered[0].time is not None:
        took = duration_text((delivered[0].time - created) // 1000)
        parts.append(f"first delivered {took} after creation")
    if parts:
        lines.append(f"{', '.join(parts)} (producer and capture clocks)")
    groups: dict[str, int] = {}
    for row in delivered:
        name = row.consumer_group or "an unknown group"
        groups[name] = groups.get(name, 0) + 1
    deliveries = [f"{times_text(times)} to {group}" for group, times in groups.items()]
    if len(stored) > 1:
        lines.append(f"stored {times_text(len(stored))}: consumers may receive it each time")
    if deliveries:
        lines.append(f"delivered {', '.join(deliveries)}")
    topics = dict.fromkeys(row.topic for row in rows if row.topic is not None)
    dead = [topic.removeprefix(DLQ_PREFIX) for topic in topics if topic.startswith(DLQ_PREFIX)]
    lines += [f"ended in the DLQ of {group}" for group in dead]
    returns = last_returns(rows, orderly)
    lines += [_ended(last) for last in returns if last.spent and last.accepted]
    return lines


def _of_stores(rows: Sequence[MessageRecord], stores: Sequence[StoreFolder]) -> list[str]:
    """Return the number of copies in broker stores, and the groups past it in its queue."""
    copies = copies_on_disk(rows)
    if not copies:
        return []
    lines = [f"in the broker's store {times_text(len(copies))}"]
    for row in copies:
        for store in stores:
            if row.capture not in store.files or row.topic is None or row.queue_id is None:
                continue
            for stored in offsets_of(store.offsets, row.topic, row.queue_id):
                is_past = stored.offset > (row.queue_offset or 0)
                lines.append(
                    f"{'consumed' if is_past else 'not consumed'} by {stored.group} according to"
                    f" the broker: its offset in queue {row.queue_id} is {stored.offset}"
                )
    return lines


def _ended(last: LastReturn) -> str:
    """Return a note if a return was the last one: the broker moves the message without a packet."""
    packet = "" if last.row.packet is None else f" with packet {last.row.packet}"
    most, times = last.row.max_reconsume_times, last.redelivered
    why = "its consumer asked for it"
    if last.is_send and most is not None:
        why = f"retried {times_text(most)}, as often as its consumer allows"
    elif times is not None and most is not None and 0 <= most <= times:
        why = f"returned after {times} of {most} redeliveries"
    return f"ended in the DLQ of {last.group}{packet}: {why}"


_GETTERS: Final = [(c.name, c.type, attrgetter(c.name)) for c in MESSAGE_COLUMNS]


def lives_as_json(lives: Sequence[MessageTrace]) -> Iterator[object]:
    """Return one object per message, with JSON types."""
    for life in lives:
        yield encodable_value(
            {
                "message": life.name,
                "topic": life.topic,
                "keys": life.keys,
                "tags": life.tags,
                "summary": life.summary,
                "unseen": life.unseen,
                "steps": [_step(step) for step in life.steps],
            }
        )


def _step(step: TraceStep) -> dict[str, object]:
    return {
        "from": {"kind": step.source.kind, "name": step.source.name},
        "to": {"kind": step.target.kind, "name": step.target.name},
        "words": step.words,
        "why": step.why or None,
        **_row(step.row),
    }


def _row(row: MessageRecord) -> dict[str, object]:
    """Return a row as in the table of messages, without absent values."""
    values: dict[str, object] = {}
    for name, kind, get in _GETTERS:
        value = get(row)
        if value is not None:
            values[name] = text_of_time(value) if kind == "time" else value
    return values
