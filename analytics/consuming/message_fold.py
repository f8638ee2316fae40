"""Fold of all rows with one UNIQ_KEY, by time: sends, copies, deliveries, and redeliveries.

Dead letters follow the rule of the diagnosis (`ReturnedMessage`), causes of redelivery
`analytics.life.again`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.topic_names import names_itself
from dissectors.rows.message_record import COMMITTED, DEAD, DELIVERED, RETURNED, STORED
from dissectors.rows.outcome import is_send

from ..diagnosis.names import only
from ..diagnosis.rules.consumers.returns import ReturnedMessage, is_spent
from ..life.again import Again, inner_rows, record_of, why_again
from .items import SeenMessage, is_own
from .known import Known
from .sums import Sums

MAX_ROWS: Final = 2000
"""most rows of one message"""
MAX_CLIENTS: Final = 1024
"""most distinct clients of a group"""
CREATED_STORED, STORED_DELIVERED, CREATED_DELIVERED = (
    "creation to stored",
    "stored to delivered",
    "creation to delivered",
)
CAPTURE, PRODUCERS, BROKERS = "capture", "producer and capture", "broker and capture"
"""clocks of a measured time"""


def fold_messages(rows: Sequence[SeenMessage], known: Known, sums: Sums) -> None:
    """Add the messages with one UNIQ_KEY, one for each topic that it was sent to."""
    for message in messages_among(rows):
        _add_message(without_inner_hops(message, known), known, sums)


def messages_among(rows: Sequence[SeenMessage]) -> list[list[SeenMessage]]:
    """Return the rows of each message; rows without topic match by log position or group."""
    # a forwarder sends a message on with its UNIQ_KEY, to another topic
    topics = dict.fromkeys(row.origin for row in rows if row.origin and names_itself(row.origin))
    if len(topics) < 2:
        return [list(rows)]
    of_record: dict[tuple[str, int | None], str] = {}
    of_group: dict[str | None, set[str]] = {}
    for row in rows:
        if row.origin in topics:
            if row.commit_log_offset is not None:
                of_record[row.broker_name, row.commit_log_offset] = row.origin
            of_group.setdefault(row.consumer_group, set()).add(row.origin)
    messages: dict[str | None, list[SeenMessage]] = {topic: [] for topic in topics}
    for row in rows:
        topic = of_record.get((row.broker_name, row.commit_log_offset))
        if row.origin in topics:
            topic = row.origin
        elif topic is None and row.consumer_group is not None:
            # only if the group got the message from a single topic
            topic = only(of_group.get(row.consumer_group, ()))
        # A row that fits several topics, or none, is left out: it would count for each of them.
        messages.get(topic, []).append(row)
    return list(messages.values())


def _add_message(rows: Sequence[SeenMessage], known: Known, sums: Sums) -> None:
    origins = [row.origin for row in rows if row.origin]
    default = origins[0] if origins else ""
    topic = next((origin for origin in origins if not is_own(origin)), default)
    stored_at = _add_sends(rows, topic, sums)
    groups: dict[str, list[SeenMessage]] = {}
    for row in rows:
        if row.consumer_group is not None and row.event in (DELIVERED, RETURNED, DEAD):
            groups.setdefault(row.consumer_group, []).append(row)
    for group, group_rows in groups.items():
        _add_group(group_rows, topic, group, known, sums)
        delivered = next((row for row in group_rows if row.event == DELIVERED), None)
        # the delay that the producer asked for is no latency
        if delivered is not None and not delivered.is_delayed:
            _add_times(delivered, stored_at, topic, group, sums)


def without_inner_hops(rows: Sequence[SeenMessage], known: Known) -> list[SeenMessage]:
    """Return the rows by time, without those caused by a relay."""
    # A relay doubles an exchange; only that of the client counts.
    first = sorted(rows, key=lambda row: (row.time, row.packet or 0))[:MAX_ROWS]
    inner = inner_rows(first, known.context.relays)
    return [row for place, row in enumerate(first) if place not in inner]


def _end_of(row: SeenMessage) -> int:
    return row.time if row.event == DELIVERED else row.time + 1000 * (row.latency_us or 0)


def _add_sends(rows: Sequence[SeenMessage], topic: str, sums: Sums) -> int | None:
    """Add the producer's side; return the capture time of the first store in ns, or None."""
    sends = [row for row in rows if is_send(row.request_name) and not is_own(row.topic)]
    ends = [row for row in rows if row.event == COMMITTED]
    stored = [row for row in (*sends, *ends) if row.event in (STORED, COMMITTED)]
    if not sends and not ends:
        return None
    topic_sums = sums.topic(topic)
    topic_sums.sent += 1
    # A delivery proves that the message was stored even if its send was not captured.
    records = {
        record_of(row)
        for row in rows
        if row.event in (STORED, DELIVERED) and row.queue_offset is not None
        if not is_own(row.topic)
    }
    topic_sums.stored += bool(stored or records)
    # Each record is a copy with an offset of its own; the first is no repetition.
    topic_sums.stored_again += max(0, len(records) - 1)
    if not stored:
        return None
    first = stored[0]
    end = _end_of(first)
    if first.event == STORED and first.born_time is not None:
        spread = sums.time(topic, "", CREATED_STORED, PRODUCERS)
        spread.add((end - first.born_time) // 1000)
    return end


def _add_group(
    rows: Sequence[SeenMessage], topic: str, group: str, known: Known, sums: Sums
) -> None:
    group_sums = sums.group(topic, group)
    returned = ReturnedMessage("")
    deliveries = [row for row in rows if row.event == DELIVERED]
    group_sums.delivered += bool(deliveries)
    group_sums.deliveries += len(deliveries)
    causes = []
    for row in rows:
        group_sums.seen(row.time)
        if row.event != DELIVERED:
            # without redeliveries, the broker moves the message to the DLQ at once
            limit, made = row.max_reconsume_times, row.reconsume_times
            at_once = row.event == DEAD or limit == 0
            if made is not None and limit is not None and limit >= 0 and is_send(row.request_name):
                at_once = at_once or is_spent(made, limit, group in known.context.orderly)
            returned.take(row.commit_log_offset, limit, at_once)
            group_sums.returned += 1
    for received in _by_receiver(rows, group in known.context.broadcasting):
        for index, row in enumerate(received):
            cause = why_again(row, received[:index]) if row.event == DELIVERED else None
            if cause is not None:
                causes.append((cause, row))
    group_sums.again += len(causes)
    group_sums.dead += returned.dead
    for row in deliveries:
        if len(group_sums.clients) < MAX_CLIENTS:
            group_sums.clients.add(row.client_id or host_of(row.client_address))
    _add_duplicates(causes, topic, group, sums)


def _by_receiver(rows: Sequence[SeenMessage], broadcast: bool) -> Iterable[list[SeenMessage]]:
    """Group rows by member for broadcasting groups, in which every member gets every message."""
    if not broadcast:
        return [list(rows)]
    clients: dict[str, list[SeenMessage]] = {}
    for row in rows:
        clients.setdefault(row.client_id or row.client_address, []).append(row)
    return clients.values()


def _add_duplicates(
    causes: Sequence[tuple[Again, SeenMessage]], topic: str, group: str, sums: Sums
) -> None:
    for cause in dict.fromkeys(cause for cause, _ in causes):
        redeliveries = [row for row_cause, row in causes if row_cause is cause]
        duplicates = sums.duplicate(topic, group, cause)
        duplicates.count += len(redeliveries)
        duplicates.messages += 1
        first = redeliveries[0]
        stored_at = first.commit_log_offset or 0  # tells messages of one response apart
        place = (first.time, first.capture, first.packet or 0, stored_at, first.unique_key or "")
        duplicates.first = place if duplicates.first is None else min(duplicates.first, place)
        duplicates.last_time = max(duplicates.last_time, redeliveries[-1].time)


def _add_times(row: SeenMessage, stored_at: int | None, topic: str, group: str, sums: Sums) -> None:
    """Add the latency of the first delivery, by the capture's clock if both ends were captured."""
    if stored_at is not None:
        spread = sums.time(topic, group, STORED_DELIVERED, CAPTURE)
        # A long poll may be answered before the producer is.
        spread.add(max(0, (row.time - stored_at) // 1000))
    elif row.store_time is not None and not is_own(row.topic):
        spread = sums.time(topic, group, STORED_DELIVERED, BROKERS)
        spread.add((row.time - row.store_time) // 1000)
    if row.born_time is not None:
        spread = sums.time(topic, group, CREATED_DELIVERED, PRODUCERS)
        spread.add((row.time - row.born_time) // 1000)
