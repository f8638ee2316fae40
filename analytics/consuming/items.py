"""Turn rows into items: the part of a row that a fold needs, with the key to group it by.

Items of a key are folded in the order of (`at`, `then`, `text`), which does not depend on how rows
were partitioned. The first character of a key selects the fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.remoting.topic_names import group_of, is_group_topic
from dissectors.rows.message_record import (
    ACKNOWLEDGED,
    BEFORE,
    CHECKED,
    DELIVERED,
    STORED,
    VIEWED,
    MessageRecord,
)
from dissectors.rows.record import ExchangeRecord

from ..diagnosis.keys import joined_key
from ..inputs.rows import json_text_of
from .known import Known

MESSAGE: Final = "m"
"""fold of one message"""
QUEUE: Final = "q"
"""fold of one queue, by offset"""
LAG: Final = "l"
"""fold of one group and topic, by time"""
ASKED: Final = "asked"
"""event of a fetch: the offset it started from"""
# Offsets start at 0, so this sorts before all records of a queue.
_COMMITS_FIRST: Final = -1


class Item(NamedTuple):
    """A row for one fold."""

    key: str
    at: int
    then: int
    text: str
    """a struct as JSON"""


class SeenMessage(msgspec.Struct, array_like=True, gc=False):
    """Fields of a message row that the folds need; named as in `MessageRecord`."""

    time: int
    event: str
    topic: str | None
    origin: str
    """topic that it was sent to, if known"""
    queue_id: int | None
    queue_offset: int | None
    broker_name: str
    server_address: str
    client_address: str
    consumer_group: str | None
    capture: str
    covers: str | None = None
    client_id: str | None = None
    request_name: str | None = None
    latency_us: int | None = None
    packet: int | None = None
    unique_key: str | None = None
    commit_log_offset: int | None = None
    offset_msg_id: str | None = None
    tags: str | None = None
    born_time: int | None = None
    store_time: int | None = None
    is_delayed: bool = False
    reconsume_times: int | None = None
    max_reconsume_times: int | None = None


class SeenFetch(msgspec.Struct, array_like=True, gc=False):
    """Offsets of a queue in a fetch or an offset commit."""

    time: int
    broker: str
    queue: int
    following: int | None
    """next offset to fetch"""
    end: int | None
    """end offset of the queue"""
    committed: int | None
    """committed offset"""
    client: str
    """client that fetches; empty for a commit"""


def items_of_messages(rows: Sequence[MessageRecord], known: Known) -> Iterator[Item]:
    """Yield the items of message rows."""
    for row in rows:
        if row.event in (VIEWED, CHECKED):  # tools and check-backs deliver nothing
            continue
        seen = seen_message(row, known)
        if row.covers == BEFORE:
            yield from _of_commit(seen)
            continue
        text = ""
        message = _key_of(seen)
        if message is not None:
            text = json_text_of(seen)
            yield Item(message, seen.time, row.packet or 0, text)
        # the same row again, for the fold of its queue, in which offsets give the order
        placed = row.event in (DELIVERED, STORED) or row.covers is not None
        if placed and row.queue_id is not None and row.queue_offset is not None:
            key = joined_key(QUEUE, row.topic, seen.broker_name, str(row.queue_id))
            yield Item(key, row.queue_offset, seen.time, text or json_text_of(seen))


def _key_of(seen: SeenMessage) -> str | None:
    """Return the key of a message: its UNIQ_KEY, or its place in the commit log, or None."""
    if seen.unique_key is not None:
        return joined_key(MESSAGE, seen.unique_key)
    if seen.event not in (DELIVERED, STORED) or seen.commit_log_offset is None:
        return None
    return joined_key(MESSAGE, "", seen.broker_name, str(seen.commit_log_offset))


def _of_commit(seen: SeenMessage) -> Iterator[Item]:
    """Yield an offset commit for its queue, sorted before all messages, and for the lag."""
    group, queue, offset = seen.consumer_group, seen.queue_id, seen.queue_offset
    if seen.event != ACKNOWLEDGED or group is None or queue is None or offset is None:
        return
    key = joined_key(QUEUE, seen.topic, seen.broker_name, str(queue))
    yield Item(key, _COMMITS_FIRST, seen.time, json_text_of(seen))
    if is_own(seen.topic):  # lag is shown for original topics only
        return
    fetch = SeenFetch(seen.time, seen.broker_name, queue, None, None, offset, "")
    yield Item(joined_key(LAG, seen.topic, group), seen.time, 0, json_text_of(fetch))


def items_of_exchanges(rows: Iterable[ExchangeRecord], known: Known) -> Iterator[Item]:
    """Yield the items of fetches: clients, offsets, and ends of queues."""
    lowest: dict[tuple[str, str, str, int], SeenMessage] = {}
    for row in rows:
        if row.request_code not in FETCHES or row.request_time is None:
            continue
        if row.group is None or row.topic is None or is_own(row.topic):
            continue
        asked, following, _, end = offsets_in(row.facts)
        time = row.request_time if row.response_time is None else row.response_time
        broker = known.broker(row.broker_name, row.server_address)
        queue = -1 if row.queue_id is None else row.queue_id  # POP asks for any queue
        client = known.context.client(row.client_address)
        fetch = SeenFetch(time, broker, queue, following, end, None, client)
        yield Item(joined_key(LAG, row.topic, row.group), time, 1, json_text_of(fetch))
        if asked is not None and asked >= 0:
            # only the lowest offset matters: it is where the group begins in the queue
            place = (row.topic, row.group, broker, queue)
            before = lowest.get(place)
            if before is None or asked < (before.queue_offset or 0):
                lowest[place] = _position(row, broker, time, asked)
    for seen in lowest.values():
        key = joined_key(QUEUE, seen.topic, seen.broker_name, str(seen.queue_id))
        yield Item(key, _COMMITS_FIRST, seen.time, json_text_of(seen))


def _position(row: ExchangeRecord, broker: str, time: int, asked: int) -> SeenMessage:
    """Return the start offset of a fetch as a row for the fold of its queue."""
    return SeenMessage(
        time=time,
        event=ASKED,
        topic=row.topic,
        origin=row.topic or "",
        queue_id=row.queue_id,
        queue_offset=asked,
        broker_name=broker,
        server_address=row.server_address,
        client_address=row.client_address,
        consumer_group=row.group,
        covers=BEFORE,
        capture=row.capture,
    )


def seen_message(row: MessageRecord, known: Known) -> SeenMessage:
    """Return the fields of a row that the folds need."""
    topic = row.topic or ""
    group = row.consumer_group
    if group is None and is_group_topic(topic):
        # Logs of older versions lack the group of a message that a consumer sent back itself.
        group = group_of(topic)
    client = row.client_id or known.context.clients.get(row.client_address)
    return SeenMessage(
        time=row.time or 0,
        event=row.event,
        topic=row.topic,
        origin=row.original_topic or topic,
        queue_id=row.queue_id,
        queue_offset=row.queue_offset,
        broker_name=known.broker(row.broker_name, row.server_address),
        server_address=row.server_address,
        client_address=row.client_address,
        consumer_group=group,
        capture=row.capture,
        covers=row.covers,
        client_id=client,
        request_name=row.request_name,
        latency_us=row.latency_us,
        packet=row.packet,
        unique_key=row.unique_key,
        commit_log_offset=row.commit_log_offset,
        offset_msg_id=row.offset_msg_id,
        tags=row.tags,
        born_time=row.born_time,
        store_time=row.store_time,
        is_delayed=bool(row.delay_level) or row.deliver_time is not None,
        reconsume_times=row.reconsume_times,
        max_reconsume_times=row.max_reconsume_times,
    )


def is_own(topic: str | None) -> bool:
    """Return whether RocketMQ created the topic for a group (retry or DLQ)."""
    return topic is None or is_group_topic(topic)
